//! Tables: aligned by what letters take on a terminal, flexible columns giving way so that a row fits the width.

use unicode_width::UnicodeWidthStr;

/// What a cell's colour stands for; always beside the word, never instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Good,
    Bad,
    Held,
    Busy,
}

impl Paint {
    /// The colour of a state's or outcome's word.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "succeeded" | "completed" | "kept" | "set" => Self::Good,
            "failed" | "lost" | "refused_again" | "missing" => Self::Bad,
            "deferred" => Self::Held,
            "running" => Self::Busy,
            _ => Self::Plain,
        }
    }

    /// A word in this colour, where colours are wanted.
    #[must_use]
    pub fn on(self, word: &str, colours: bool) -> String {
        if colours && self != Self::Plain { format!("{}{word}\u{1b}[0m", self.code()) } else { word.to_owned() }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[31m",
            Self::Held => "\u{1b}[35m",
            Self::Busy => "\u{1b}[34m",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
    /// Left, and cut where a row would not fit; of several the widest first.
    Flexible,
    /// The same for names, which differ at both ends: cut in the middle.
    Name,
}

impl Align {
    fn gives_way(self) -> bool {
        matches!(self, Self::Flexible | Self::Name)
    }
}

/// Rows under a head.
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<(String, Paint)>>,
}

const GAP: usize = 2;
/// A flexible column is never cut below this.
const LEAST: usize = 12;

impl Table {
    #[must_use]
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; the first cell's colour is that of its word.
    pub fn row(&mut self, cells: Vec<String>) {
        let painted = cells.into_iter().enumerate().map(|(at, cell)| {
            let paint = if at == 0 { Paint::of(&cell) } else { Paint::Plain };
            (printable(&cell), paint)
        });
        self.rows.push(painted.collect());
    }

    /// The lines, head first, none wider than `width` where the flexible column can give way enough.
    #[must_use]
    pub fn lines(&self, width: usize, colours: bool) -> Vec<String> {
        let widths = self.widths(width);
        let head: Vec<(String, Paint)> =
            self.columns.iter().map(|(name, _)| ((*name).to_owned(), Paint::Plain)).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| self.line(row, &widths, colours)).collect()
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| name.width()).collect();
        for row in &self.rows {
            for (widest, (cell, _)) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(cell.width());
            }
        }
        let mut over = (widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)).saturating_sub(width);
        while over > 0 {
            let flexible = widths.iter_mut().zip(&self.columns).filter(|(_, (_, align))| align.gives_way());
            let Some((widest, _)) = flexible.max_by_key(|(width, _)| **width).filter(|(width, _)| **width > LEAST)
            else {
                break;
            };
            *widest -= 1;
            over -= 1;
        }
        widths
    }

    fn line(&self, row: &[(String, Paint)], widths: &[usize], colours: bool) -> String {
        let mut line = String::new();
        for (at, ((cell, paint), width)) in row.iter().zip(widths).enumerate() {
            let align = self.columns.get(at).map_or(Align::Left, |(_, align)| *align);
            let cell = match align {
                Align::Flexible => cut(cell, *width),
                Align::Name => cut_within(cell, *width),
                Align::Left | Align::Right => cell.clone(),
            };
            let blank = " ".repeat(width.saturating_sub(cell.width()));
            if at > 0 {
                line.push_str("  ");
            }
            if align == Align::Right {
                line.push_str(&blank);
            }
            if colours && *paint != Paint::Plain {
                line.extend([paint.code(), &cell, "\u{1b}[0m"]);
            } else {
                line.push_str(&cell);
            }
            if align != Align::Right {
                line.push_str(&blank);
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// At most `width` columns, `…` where something was cut.
#[must_use]
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if kept.width() + letter.to_string().width() + 1 > width {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}

/// At most `width` columns, `…` in place of what was cut from the middle.
fn cut_within(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let head = cut(text, width / 2);
    let mut tail: Vec<char> = Vec::new();
    for letter in text.chars().rev() {
        let so_far: usize = tail.iter().map(|letter| letter.to_string().width()).sum();
        if head.width() + so_far + letter.to_string().width() > width {
            break;
        }
        tail.push(letter);
    }
    head.chars().chain(tail.into_iter().rev()).collect()
}

/// Text of others made safe for a terminal: control characters as their pictures, direction marks as a replacement.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}'),
            '\u{7f}' => '␡',
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("STATE", Align::Left), ("WHY", Align::Flexible), ("N", Align::Right)]);
        table.row(vec!["failed".into(), "a sentence that is too long for this".into(), "1".into()]);
        table.row(vec!["queued".into(), "日本語の文章はとても長い".into(), "1,204".into()]);
        table.row(vec!["queued".into(), "\u{1b}[31mred\u{202e}".into(), "12".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_by_what_letters_take() {
        insta::assert_snapshot!(table().lines(32, false).join("\n"));
        assert!(table().lines(32, false).iter().all(|line| line.width() <= 32));
        assert!(table().lines(80, false).iter().all(|line| !line.contains('…') && !line.contains('\u{1b}')));
    }

    #[test]
    fn a_name_shows_both_its_ends() {
        let mut table = Table::new(&[("SOURCE", Align::Name), ("N", Align::Right)]);
        for name in ["x-ratelimit-reset-tokens", "x-ratelimit-reset-requests", "日本語の文章はとても長い", "short"]
        {
            table.row(vec![name.to_owned(), "1".to_owned()]);
        }
        let lines = table.lines(20, false);
        assert!(lines.iter().all(|line| line.width() <= 20), "{lines:?}");
        assert_eq!(&lines[1..3], ["x-ratel…et-tokens  1", "x-ratel…-requests  1"]);
        assert!(lines[3].starts_with("日本語…"), "{lines:?}");
        assert!(lines[4].starts_with("short  "), "{lines:?}");
    }

    #[test]
    fn colours_stand_beside_words_and_move_nothing() {
        let lines = table().lines(32, true);
        assert!(lines[1].starts_with("\u{1b}[31mfailed\u{1b}[0m  "));
        assert_eq!(lines[2], table().lines(32, false)[2]);
    }
}
