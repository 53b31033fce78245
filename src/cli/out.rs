//! Where findings go: stdout, without a word when nobody reads on.

use super::trouble::Trouble;
use serde::Serialize;
use std::io::{self, Write};

/// stdout, and how to write to it.
pub struct Out {
    stream: io::BufWriter<io::Stdout>,
    /// One JSON document instead of text.
    pub json: bool,
}

impl Out {
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self { stream: io::BufWriter::new(io::stdout()), json }
    }

    /// One line of text.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<(), Trouble> {
        self.stream.write_all(text.as_ref().as_bytes())?;
        self.stream.write_all(b"\n")?;
        Ok(())
    }

    /// The one document of `--json`, for people and programs: indented.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn document(&mut self, value: &impl Serialize) -> Result<(), Trouble> {
        serde_json::to_writer_pretty(&mut self.stream, value).map_err(io::Error::from)?;
        self.stream.write_all(b"\n")?;
        Ok(())
    }

    /// Hands over what was written.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn flush(&mut self) -> Result<(), Trouble> {
        self.stream.flush()?;
        Ok(())
    }
}
