//! The text of an answer: a pure function of the seed and the question, so that the same request gets the same answer
//! and a continuation can go on exactly where a partial ended.
//!
//! Every text holds characters of one, two, three and four bytes, so that whoever cuts it between bytes is found out.

use sha2::{Digest, Sha256};

/// Characters that count as one token, in prompts and answers alike.
pub(super) const CHARS_PER_TOKEN: usize = 4;

/// Nothing here needs escaping in JSON, and nothing reads like a refusal.
const WORDS: [&str; 48] = [
    "harbour",
    "lantern",
    "quay",
    "ledger",
    "brücke",
    "tide",
    "sailor",
    "naïve",
    "compass",
    "rope",
    "schönes",
    "mast",
    "cargo",
    "東京",
    "captain",
    "smørrebrød",
    "beacon",
    "pier",
    "ølbryg",
    "north",
    "crate",
    "signal",
    "café",
    "island",
    "voyage",
    "λιμάνι",
    "anchor",
    "drift",
    "море",
    "salt",
    "storm",
    "calm",
    "rigging",
    "🌿",
    "keel",
    "chart",
    "gull",
    "fjord",
    "evening",
    "señal",
    "wharf",
    "barrel",
    "⚓",
    "current",
    "bell",
    "deck",
    "horizon",
    "wave",
];

/// FNV-1a over the parts, each closed by a byte that UTF-8 does not use, then mixed so that near inputs part.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&[0xff_u8]) {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    mix(state)
}

/// The first eight bytes of the SHA-256 of a question: anybody can compute it, and nobody reads the question from it.
pub(super) fn digest(question: &str) -> u64 {
    let whole = Sha256::digest(question.as_bytes());
    whole.iter().take(8).fold(0, |digits, byte| digits << 8 | u64::from(*byte))
}

/// The finaliser of `SplitMix64`.
pub(super) fn mix(mut state: u64) -> u64 {
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// The whole answer to a question: `chars` characters, with no white space at either end.
pub(super) fn full(seed: u64, question: &str, chars: usize) -> String {
    let mut draw = hash(&[&seed.to_le_bytes(), question.as_bytes()]);
    let mut text = String::with_capacity(chars.saturating_mul(5) / 4);
    let mut length = 0;
    let mut sentence = 0_u64;
    while length < chars {
        draw = mix(draw);
        if length > 0 {
            let stop = sentence >= 6 + (draw >> 32) % 7;
            text.push_str(if stop { ". " } else { " " });
            length += if stop { 2 } else { 1 };
            sentence = if stop { 0 } else { sentence + 1 };
        }
        // The remainder is below 48.
        let word = WORDS[usize::try_from(draw % 48).unwrap_or(0)];
        text.push_str(word);
        length += word.chars().count();
    }
    if let Some((end, _)) = text.char_indices().nth(chars) {
        text.truncate(end);
    }
    // A cut behind a space would leave white space at the end, which some clients trim away.
    while text.ends_with(' ') {
        text.pop();
        text.push('.');
    }
    text
}

/// Where to cut `text` after about `chars` characters, as a byte offset: the last place not beyond them with no white
/// space on either side, since some clients trim what they receive and a joined text would lack it. The end of the text
/// where it is no longer than that; at least one character, so that pieces always make progress.
pub(super) fn seam(text: &str, chars: usize) -> usize {
    let mut best = None;
    let mut before = ' ';
    for (nth, (offset, character)) in text.char_indices().enumerate() {
        if nth > chars {
            return best.unwrap_or_else(|| text.chars().next().map_or(0, char::len_utf8));
        }
        if nth > 0 && !before.is_whitespace() && !character.is_whitespace() {
            best = Some(offset);
        }
        before = character;
    }
    text.len()
}

/// Tokens of a text that has this many characters.
pub(super) fn tokens(chars: usize) -> u64 {
    u64::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_told_by_the_digest_that_everybody_computes() {
        // `printf abc | sha256sum`
        assert_eq!(digest("abc"), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn the_same_question_gets_the_same_text_and_another_seed_another() {
        assert_eq!(full(1, "q", 200), full(1, "q", 200));
        assert_ne!(full(1, "q", 200), full(2, "q", 200));
        assert_ne!(full(1, "q", 200), full(1, "r", 200));
    }

    #[test]
    fn lengths_are_exact_and_ends_are_no_white_space() {
        for chars in [1, 2, 3, 17, 64, 240, 5_000] {
            for question in ["", "a", "b", "c", "d"] {
                let text = full(7, question, chars);
                assert_eq!(text.chars().count(), chars, "{text:?}");
                assert_eq!(text.trim(), text);
                assert_eq!(serde_json::to_string(&text).unwrap(), format!("\"{text}\""), "needs no escaping");
            }
        }
    }

    #[test]
    fn pieces_join_to_the_whole_and_survive_trimming() {
        let text = full(3, "a question", 2_000);
        for step in [1, 3, 8, 40, 3_000] {
            let mut rest = text.as_str();
            let mut joined = String::new();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(seam(rest, step));
                assert!(!piece.is_empty());
                // One character may have to stand alone beside white space; from two on there is always a seam.
                if step >= 8 {
                    assert_eq!(piece.trim(), piece);
                }
                joined.push_str(piece);
                rest = after;
            }
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn a_long_text_holds_characters_of_every_width() {
        let text = full(0, "", 2_000);
        for width in 1..=4 {
            assert!(text.chars().any(|character| character.len_utf8() == width));
        }
    }
}
