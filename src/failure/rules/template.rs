//! Anchored templates: one whole sentence with named holes. `{n}` holds a number, `{w}` one word without a space, any
//! other name any text. Letters are compared without regard to ASCII case, `’` as `'`.
//!
//! Matching takes each literal where it first occurs: linear in the sentence, whatever the template.

use std::collections::HashMap;

/// How many bytes of a template's beginning it is looked up by.
const START: usize = 4;

/// Where a template stands: the index of its rule, and its own in that rule.
type Place = (usize, usize);

/// Templates by how they begin, so that a sentence is compared with few of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts {
    by_start: HashMap<[u8; START], Vec<Place>>,
    /// Those that begin with a hole, or with less than a start.
    others: Vec<Place>,
}

impl Starts {
    pub(super) fn add(&mut self, template: &Template, place: Place) {
        match template.parts.first() {
            Some(Part::Literal(literal)) if literal.len() >= START => {
                if let Some(start) = literal.as_bytes().first_chunk() {
                    self.by_start.entry(*start).or_default().push(place);
                }
            }
            _ => self.others.push(place),
        }
    }

    /// The templates that a folded sentence could match.
    pub(super) fn of(&self, sentence: &str) -> impl Iterator<Item = Place> {
        let begun = sentence.as_bytes().first_chunk().and_then(|start| self.by_start.get(start));
        begun.into_iter().flatten().chain(&self.others).copied()
    }
}

/// A sentence with holes, made ready to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// In lower case.
    Literal(String),
    Hole(Hole),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Number,
    Word,
    Text,
}

impl Template {
    /// # Errors
    /// What is wrong with the template, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let folded = fold(text);
        let mut parts = Vec::new();
        let mut rest = folded.trim().trim_end_matches(['.', '!', '?', '。']);
        let mut literals = 0;
        while !rest.is_empty() {
            let (literal, after) = match rest.split_once('{') {
                Some((literal, after)) => (literal, Some(after)),
                None => (rest, None),
            };
            if !literal.is_empty() {
                literals += literal.trim().len();
                parts.push(Part::Literal(literal.to_owned()));
            }
            let Some(after) = after else { break };
            if matches!(parts.last(), Some(Part::Hole(_))) {
                return Err("two holes stand side by side: put a literal between them".into());
            }
            let Some((name, next)) = after.split_once('}') else {
                return Err("a `{` is not closed by `}`".into());
            };
            parts.push(Part::Hole(match name {
                "n" => Hole::Number,
                "w" => Hole::Word,
                _ => Hole::Text,
            }));
            rest = next;
        }
        if literals < 4 {
            return Err("a template needs at least four letters outside its holes".into());
        }
        Ok(Self { parts })
    }

    /// Whether the template is the whole of a sentence that was folded by [`fold`].
    pub(super) fn matches(&self, sentence: &str) -> bool {
        let mut rest = sentence;
        let mut hole: Option<Hole> = None;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Hole(kind) => hole = Some(*kind),
                Part::Literal(literal) => {
                    let last = index + 1 == self.parts.len();
                    let held = match hole.take() {
                        None => match rest.strip_prefix(literal.as_str()) {
                            Some(next) => {
                                rest = next;
                                continue;
                            }
                            None => return false,
                        },
                        Some(kind) => {
                            let found = if last && rest.ends_with(literal.as_str()) {
                                Some(rest.len() - literal.len())
                            } else {
                                rest.find(literal.as_str())
                            };
                            let Some((held, next)) = found.and_then(|at| rest.split_at_checked(at)) else {
                                return false;
                            };
                            rest = next.get(literal.len()..).unwrap_or_default();
                            (kind, held)
                        }
                    };
                    if !held.0.holds(held.1) {
                        return false;
                    }
                }
            }
        }
        match hole {
            Some(kind) => kind.holds(rest),
            None => rest.is_empty(),
        }
    }
}

#[cfg(test)]
impl Template {
    /// A folded sentence that it matches.
    pub(super) fn example(&self) -> String {
        let part = |part: &Part| match part {
            Part::Literal(literal) => literal.clone(),
            Part::Hole(Hole::Number) => "12".to_owned(),
            Part::Hole(Hole::Word) => "word".to_owned(),
            Part::Hole(Hole::Text) => "some text".to_owned(),
        };
        self.parts.iter().map(part).collect()
    }
}

impl Hole {
    fn holds(self, text: &str) -> bool {
        match self {
            Self::Text => !text.is_empty(),
            Self::Word => !text.is_empty() && !text.contains(char::is_whitespace),
            Self::Number => {
                text.bytes().any(|b| b.is_ascii_digit())
                    && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'_' | b'k' | b'm'))
            }
        }
    }
}

/// Lower case in ASCII, one apostrophe, one kind of space.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '’' | '‘' => '\'',
            '\u{a0}' | '\t' => ' ',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(template: &str, sentence: &str) -> bool {
        Template::parse(template).unwrap().matches(&fold(sentence))
    }

    #[test]
    fn a_template_is_the_whole_sentence_or_nothing() {
        let prompt = "prompt is too long: {n} tokens > {n} maximum";
        assert!(matches(prompt, "Prompt is too long: 1036683 tokens > 1,000,000 maximum"));
        assert!(!matches(prompt, "my prompt is too long: 1 tokens > 2 maximum"));
        assert!(!matches(prompt, "prompt is too long: 1 tokens > 2 maximum indeed"));
        assert!(!matches(prompt, "prompt is too long: many tokens > 2 maximum"));
        assert!(matches("Model {w} is gone", "Model a/b-c is gone"));
        assert!(!matches("Model {w} is gone", "Model a b is gone"));
        assert!(matches("isn't {x}", "isn’t so, is it"));
        assert!(matches("{x} on tokens per day (TPD): Limit {n}", "a. b on tokens per day (TPD): Limit 3"));
    }

    #[test]
    fn a_template_that_would_match_nearly_anything_is_refused() {
        for bad in ["{x}", "{a}{b} enough", "a {x", "{x}abc"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
