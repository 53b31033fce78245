//! Where findings go: stdout, without a word when nobody reads on.

use super::trouble::Trouble;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use terminal_size::terminal_size;

/// stdout, and how to write to it.
pub struct Out {
    stream: io::BufWriter<io::Stdout>,
    /// One JSON document instead of text.
    pub json: bool,
    terminal: bool,
}

impl Out {
    #[must_use]
    pub fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        Self { stream: io::BufWriter::new(stdout), json, terminal }
    }

    /// Whether colours are wanted: on a terminal, unless `NO_COLOR` is set.
    #[must_use]
    pub fn colours(&self) -> bool {
        self.terminal && !self.json && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Columns to lay tables out for: what `COLUMNS` says, else what the terminal has, else 80.
    #[must_use]
    pub fn width(&self) -> usize {
        let said: Option<usize> = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let has = || if self.terminal { terminal_size().map(|(width, _)| usize::from(width.0)) } else { None };
        said.or_else(has).filter(|columns| (40..=400).contains(columns)).unwrap_or(80)
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

    /// One JSON value on one line.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<(), Trouble> {
        self.json_text(value)?;
        self.text("\n")
    }

    /// Text without a line's end.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn text(&mut self, text: &str) -> Result<(), Trouble> {
        self.stream.write_all(text.as_bytes())?;
        Ok(())
    }

    /// One JSON value without a line's end.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn json_text(&mut self, value: &impl Serialize) -> Result<(), Trouble> {
        serde_json::to_writer(&mut self.stream, value).map_err(io::Error::from)?;
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

    /// Text that is shown at once, without a line's end.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn piece(&mut self, text: &str) -> Result<(), Trouble> {
        self.text(text)?;
        self.flush()
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
