//! Lines out of bytes as they come: numbered, bounded, in constant memory.

/// A line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text {
        number: u64,
        text: String,
    },
    /// It is no UTF-8.
    NoText {
        number: u64,
    },
    /// It is longer than the bound; it was skipped, not kept.
    TooLong {
        number: u64,
    },
}

/// Cuts pieces of any size into lines. Blank lines count and are left out.
#[derive(Debug)]
pub struct Lines {
    /// Bytes that a line may have.
    most: usize,
    /// Of the line that has begun.
    begun: Vec<u8>,
    too_long: bool,
    /// Of lines that have ended.
    ended: u64,
}

impl Lines {
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, begun: Vec::new(), too_long: false, ended: 0 }
    }

    /// Takes a piece in; what ends in it comes out, in order.
    pub fn push(&mut self, piece: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = piece;
        while let Some(newline) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(newline);
            self.take(line);
            lines.extend(self.end());
            rest = after.get(1..).unwrap_or_default();
        }
        self.take(rest);
        lines
    }

    /// The last line, where no newline ended it.
    pub fn finish(&mut self) -> Option<Line> {
        self.end()
    }

    fn take(&mut self, part: &[u8]) {
        if self.too_long || self.begun.len() + part.len() > self.most {
            self.too_long = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(part);
        }
    }

    fn end(&mut self) -> Option<Line> {
        self.ended += 1;
        let number = self.ended;
        if std::mem::take(&mut self.too_long) {
            return Some(Line::TooLong { number });
        }
        match String::from_utf8(std::mem::take(&mut self.begun)) {
            Ok(text) if text.trim().is_empty() => None,
            Ok(text) => Some(Line::Text { number, text }),
            Err(_) => Some(Line::NoText { number }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(pieces: &[&[u8]], most: usize) -> Vec<Line> {
        let mut lines = Lines::new(most);
        let mut all: Vec<Line> = pieces.iter().flat_map(|piece| lines.push(piece)).collect();
        all.extend(lines.finish());
        all
    }

    #[test]
    fn lines_are_numbered_and_bounded() {
        let text = |number, text: &str| Line::Text { number, text: text.into() };
        assert_eq!(cut(&[b"a\n\nb", b"c\n"], 9), [text(1, "a"), text(3, "bc")]);
        assert_eq!(cut(&[b"aaaa\nb\n"], 3), [Line::TooLong { number: 1 }, text(2, "b")]);
        assert_eq!(cut(&[b"\xff\nb"], 3), [Line::NoText { number: 1 }, text(2, "b")]);
        assert_eq!(cut(&[], 3), []);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..80), at in 0_usize..80) {
            let at = at.min(bytes.len());
            prop_assert_eq!(cut(&[&bytes[..at], &bytes[at..]], 7), cut(&[&bytes], 7));
        }
    }
}
