//! Texts that Postgres cannot hold. Its TEXT has no U+0000, and everything here comes back byte for byte; so a NUL is
//! written as U+001A `0`, and a U+001A as U+001A `1`. No JSON text has either of them raw: documents stand as they are.

use std::borrow::Cow;

const MARK: char = '\u{1a}';

/// As it is written.
pub(super) fn keep(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == 0 || byte == 0x1a) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            '\0' => kept.extend([MARK, '0']),
            MARK => kept.extend([MARK, '1']),
            other => kept.push(other),
        }
    }
    Cow::Owned(kept)
}

/// As it was given. What another hand wrote behind a mark is left as it stands.
pub(super) fn give(kept: String) -> String {
    if !kept.contains(MARK) {
        return kept;
    }
    let mut given = String::with_capacity(kept.len());
    let mut chars = kept.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            (MARK, Some('0')) => given.push('\0'),
            (MARK, Some('1')) => given.push(MARK),
            _ => {
                given.push(char);
                continue;
            }
        }
        chars.next();
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_kept_comes_back_and_holds_no_nul(text in "[\\x00\\x1a01aé\u{1d11e}]{0,40}") {
            let kept = keep(&text).into_owned();
            prop_assert!(!kept.contains('\0'));
            prop_assert_eq!(give(kept), text);
        }
    }

    #[test]
    fn documents_are_not_copied() {
        assert!(matches!(keep("{\"a\":\"\\u0000 İ\"}"), Cow::Borrowed(_)));
        assert_eq!(give("\u{1a}x\u{1a}".into()), "\u{1a}x\u{1a}");
    }
}
