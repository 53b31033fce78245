//! What `submit` reads: a file, or stdin spooled to a temporary one, so that it can be checked whole before its first line
//! is submitted. One JSON object that may span lines, or one a line; never more than a line in memory.

use super::trouble::Trouble;
use crate::agent::limits;
use crate::api::lines::{Line, Lines};
use crate::api::{Kind, Problem};
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// Jobs to submit.
pub struct Input {
    file: File,
    /// As messages call it.
    pub name: String,
    pub bytes: u64,
    /// The whole input is one object.
    single: bool,
}

impl Input {
    /// Opens a file, or with `-` spools stdin.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        let (mut file, name) = if path.as_os_str() == "-" {
            (spooled()?, "stdin".to_owned())
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| {
                Trouble::usage(format!("{name} cannot be read ({error}); name a file of jobs, or - for stdin"))
            })?;
            if file.metadata().is_ok_and(|data| data.is_dir()) {
                return Err(Trouble::usage(format!("{name} is a directory; name a file of jobs, or - for stdin")));
            }
            // A pipe cannot be read twice.
            let file = if file.metadata().is_ok_and(|data| data.is_file()) { file } else { spool(file)? };
            (file, name)
        };
        let bytes = file.seek(SeekFrom::End(0))?;
        let mut input = Self { file, name, bytes, single: false };
        input.single = input.is_single()?;
        Ok(input)
    }

    /// Calls `each` with every line, in order, and with the bytes read so far. A single object is line 1.
    ///
    /// # Errors
    /// When it cannot be read, or `each` fails.
    pub fn each(&mut self, mut each: impl FnMut(Line, u64) -> Result<(), Trouble>) -> Result<(), Trouble> {
        if self.single {
            let text = self.whole()?;
            let bytes = self.bytes;
            return each(text, bytes);
        }
        let mut pieces = self.pieces()?;
        while let Some((lines, read)) = pieces.next()? {
            for line in lines {
                each(line, read)?;
            }
        }
        Ok(())
    }

    /// The lines in pieces, for a caller that awaits in between.
    ///
    /// # Errors
    /// When the input cannot be read from its start.
    pub fn pieces(&mut self) -> Result<Pieces<'_>, Trouble> {
        self.file.rewind()?;
        Ok(Pieces { input: self, lines: Lines::new(limits::JOB_BYTES), buffer: vec![0; PIECE], read: 0, over: false })
    }

    /// All of it, as one line.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn whole(&mut self) -> Result<Line, Trouble> {
        self.file.rewind()?;
        let mut bytes = Vec::new();
        let most = limits::JOB_BYTES;
        (&mut self.file).take(most as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > most {
            return Ok(Line::TooLong { number: 1 });
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Line::Text { number: 1, text },
            Err(_) => Line::NoText { number: 1 },
        })
    }

    /// Whether it is one object that spans lines: its first line alone is no whole value, and no other line is one either,
    /// or all of it together is.
    fn is_single(&mut self) -> Result<bool, Trouble> {
        let first = self.first_texts()?;
        let whole = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
        match first.as_slice() {
            [first, rest @ ..] if begins_only(first) => {
                let together = match self.whole()? {
                    Line::Text { text, .. } => whole(&text),
                    Line::NoText { .. } | Line::TooLong { .. } => false,
                };
                Ok(together || !rest.iter().any(|line| line.trim_start().starts_with('{') && whole(line)))
            }
            _ => Ok(false),
        }
    }

    /// The first two lines that are not blank.
    fn first_texts(&mut self) -> Result<Vec<String>, Trouble> {
        let mut texts = Vec::new();
        let mut pieces = self.pieces()?;
        while let Some((lines, _)) = pieces.next()? {
            for line in lines {
                if let Line::Text { text, .. } = line {
                    texts.push(text);
                }
                if texts.len() == 2 {
                    return Ok(texts);
                }
            }
        }
        Ok(texts)
    }
}

/// Whether a text begins a JSON value and does not end it.
fn begins_only(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// Reading in progress.
pub struct Pieces<'i> {
    input: &'i mut Input,
    lines: Lines,
    buffer: Vec<u8>,
    read: u64,
    over: bool,
}

impl Pieces<'_> {
    /// The lines that ended in the next piece, and the bytes read so far; `None`: that was all.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn next(&mut self) -> Result<Option<(Vec<Line>, u64)>, Trouble> {
        if self.over {
            return Ok(None);
        }
        if self.input.single {
            self.over = true;
            let line = self.input.whole()?;
            return Ok(Some((vec![line], self.input.bytes)));
        }
        let got = self.input.file.read(&mut self.buffer)?;
        if got == 0 {
            self.over = true;
            return Ok(Some((self.lines.finish().into_iter().collect(), self.read)));
        }
        self.read += got as u64;
        Ok(Some((self.lines.push(self.buffer.get(..got).unwrap_or_default()), self.read)))
    }
}

/// A text as it was given, or with `-` that of stdin. `at` is the argument's name.
///
/// # Errors
/// When stdin holds nothing, too much, or no text.
pub fn prompt<'a>(said: &'a str, at: &str) -> Result<Cow<'a, str>, Trouble> {
    if said != "-" {
        return Ok(said.into());
    }
    let most = limits::JOB_BYTES;
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let what = format!("stdin has more than the {most} bytes that are taken");
        return Err(Problem::new(Kind::TooLarge, what).at(at).into());
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => Err(Trouble::misused(at, "stdin holds no text")),
        Ok(text) => Ok(text.into()),
        Err(_) => Err(Trouble::misused(at, "stdin is no UTF-8 text")),
    }
}

fn spooled() -> Result<File, Trouble> {
    spool(std::io::stdin().lock())
}

/// Copies what can be read once into an unnamed temporary file.
fn spool(mut from: impl Read) -> Result<File, Trouble> {
    let failed = |error: std::io::Error| {
        Trouble::new(Kind::Internal, format!("the input cannot be kept in a temporary file ({error}); see TMPDIR"))
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    std::io::copy(&mut from, &mut file).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(text: &str) -> Vec<(u64, String)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut input = Input::open(file.path()).unwrap();
        let mut all = Vec::new();
        input
            .each(|line, _| {
                let Line::Text { number, text } = line else { panic!("{line:?}") };
                all.push((number, text));
                Ok(())
            })
            .unwrap();
        all
    }

    #[test]
    fn an_object_may_span_lines_or_stand_on_one_each() {
        assert_eq!(lines("{\"a\":1}\n\n{\"a\":2}\n"), [(1, "{\"a\":1}".into()), (3, "{\"a\":2}".into())]);
        assert_eq!(lines("{\n \"a\": 1\n}\n"), [(1, "{\n \"a\": 1\n}\n".into())]);
        assert_eq!(lines("{\"a\":1}").len(), 1);
        // A first line that breaks off is that line's mistake where others stand alone.
        assert_eq!(lines("{\"a\":1\n{\"a\":2}\n").len(), 2);
        // One object with a mistake in it stays one object.
        assert_eq!(lines("{\n \"a\": 1,,\n}\n").len(), 1);
        assert_eq!(lines("").len(), 0);
    }
}
