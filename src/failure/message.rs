//! A vendor's sentences: relay prefixes taken off, and split where a sentence ends.
//!
//! This prepares prose for the rules' anchored templates; it decides nothing.

/// At most this much of a message is looked at, in bytes.
pub(super) const MAX_MESSAGE: usize = 4 * 1024;
/// How many prefixes are taken off, one after the other.
const MAX_PREFIXES: usize = 8;
/// The longest prefix that a relay puts before an upstream's sentence, in bytes.
const MAX_PREFIX: usize = 96;

/// The start of a text, at most [`MAX_MESSAGE`] bytes, cut between characters.
pub(super) fn cap(text: &str) -> &str {
    let mut end = text.len().min(MAX_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The message as it stands, and after each relay prefix that could be taken off.
pub(super) fn stripped(text: &str) -> Vec<&str> {
    let mut out = vec![text.trim()];
    let mut rest = text.trim();
    for _ in 0..MAX_PREFIXES {
        let Some(next) = without_prefix(rest) else { break };
        out.push(next);
        rest = next;
    }
    out
}

/// The code in brackets with which some relays begin (`[rate_limit_exceeded] …`).
pub(super) fn bracketed(text: &str) -> Option<&str> {
    if let Some((code, _)) = boxed(text) {
        return Some(code);
    }
    let inside = text.trim_start().strip_prefix('[')?.split_once(']')?.0;
    let word =
        !inside.is_empty() && inside.len() <= 64 && inside.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (word && inside.contains('_')).then_some(inside)
}

/// The class names with which `LiteLLM` begins a message (`litellm.BadRequestError: litellm.ContentPolicyViolationError: …`).
pub(super) fn litellm_classes(text: &str) -> impl Iterator<Item = &str> {
    text.split(": ").take(MAX_PREFIXES).map_while(|part| {
        let part = part.trim();
        (part.starts_with("litellm.") && !part.contains(' ') && part.len() <= MAX_PREFIX).then_some(part)
    })
}

/// The vendor's number in brackets with which some sentences end (`… (1008)`).
pub(super) fn suffixed(text: &str) -> Option<&str> {
    let inside = text.trim_end().trim_end_matches('.').strip_suffix(')')?.rsplit_once('(')?.1;
    ((3..=6).contains(&inside.len()) && inside.bytes().all(|b| b.is_ascii_digit())).then_some(inside)
}

/// Sentences: they end at `.`, `!`, `?` or `。` before space or end, or with their line.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            loop {
                rest = rest.trim_start();
                if rest.is_empty() {
                    return None;
                }
                let end = sentence_end(rest);
                let (sentence, next) = rest.split_at_checked(end)?;
                rest = next;
                let sentence = sentence.trim_end_matches(['.', '!', '?', '。', ' ']).trim();
                if !sentence.is_empty() {
                    return Some(sentence);
                }
            }
        })
    })
}

/// Where the first sentence ends, its mark included.
fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match chars.peek() {
            None => true,
            Some((_, next)) => next.is_whitespace(),
        };
        if c == '。' || (matches!(c, '.' | '!' | '?') && ends) {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// What follows one relay prefix, where the text begins with one.
fn without_prefix(text: &str) -> Option<&str> {
    if let Some((_, rest)) = boxed(text) {
        return Some(rest.trim_start());
    }
    if let Some(rest) = after_status(text) {
        return Some(rest.trim_start());
    }
    if let Some((inside, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let rest = rest.strip_prefix(':').unwrap_or(rest).strip_prefix(' ')?;
        return (inside.len() <= MAX_PREFIX && !inside.contains(' ')).then(|| rest.trim_start());
    }
    if let Some(rest) = after_boto(text) {
        return Some(rest.trim_start());
    }
    let (prefix, rest) = [": ", " - ", ":\n", " · ", "："]
        .iter()
        .filter_map(|mark| text.split_once(mark))
        .min_by_key(|(prefix, _)| prefix.len())?;
    (prefix.len() <= MAX_PREFIX && is_relay_prefix(prefix)).then(|| rest.trim_start())
}

/// The vendor's number and what its sentence's own brackets hold: `[1308][Usage limit reached.][20260901]`.
fn boxed(text: &str) -> Option<(&str, &str)> {
    let (code, rest) = text.trim_start().strip_prefix('[')?.split_once("][")?;
    ((3..=6).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_digit())).then_some((code, rest))
}

/// `An error occurred (Exception) when calling the X operation (reached max retries: 4): …`, as AWS's Python client words it.
fn after_boto(text: &str) -> Option<&str> {
    let (named, rest) = text.strip_prefix("An error occurred (")?.split_once(" operation")?;
    let (between, rest) = match rest.strip_prefix(" (") {
        Some(rest) => rest.split_once("): ")?,
        None => ("", rest.strip_prefix(": ")?),
    };
    (named.len() <= MAX_PREFIX && between.len() <= MAX_PREFIX).then_some(rest)
}

/// What follows a status with which a client library begins its message: `429 Too many`, `<400> Range.Error: …`.
fn after_status(text: &str) -> Option<&str> {
    let (status, rest) = match text.strip_prefix('<') {
        Some(text) => text.split_once("> ")?,
        None => text.split_once(' ')?,
    };
    let is_status = status.len() == 3 && status.starts_with(['4', '5']) && status.bytes().all(|b| b.is_ascii_digit());
    // `500 Internal error` is a status and its message, `500 - tokens` and `429: x` are the marks' own.
    (is_status && rest.starts_with(|c: char| c.is_alphabetic() || matches!(c, '"' | '\'' | '`'))).then_some(rest)
}

/// `litellm.RateLimitError`, `AzureException`, `API error (status 403 Forbidden)`, `Error code: 400`, `azure-openai error`,
/// `Error from provider (X)`, `Upstream request failed`, `permission-denied`, `REQUEST_LIMIT_EXCEEDED`, `A.B.C`, `429`.
fn is_relay_prefix(prefix: &str) -> bool {
    let prefix = prefix.trim();
    let lower = prefix.to_ascii_lowercase();
    let last = lower.rsplit(' ').next().unwrap_or_default();
    let first_word_only = !prefix.contains(' ');
    let ends_as_fault = ["error", "exception", "failed", "failure", "errors"].iter().any(|word| last.ends_with(word));
    let numbered = first_word_only && prefix.len() == 3 && prefix.bytes().all(|b| b.is_ascii_digit());
    let coded = first_word_only
        && prefix.contains(['-', '_'])
        && (prefix.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'_')
            || prefix.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'));
    let dotted = first_word_only
        && prefix.split('.').count() > 1
        && prefix.split('.').all(|part| part.starts_with(|c: char| c.is_ascii_uppercase()))
        && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    let status = lower.starts_with("api error (")
        || lower.starts_with("error from provider")
        || lower.starts_with("error code")
        || lower.starts_with("http ")
        || lower.starts_with("status code")
        || lower.starts_with("invalid status code")
        || lower.starts_with("provider returned error")
        || lower.starts_with("received error from")
        || lower.starts_with("request rejected (")
        || lower == "bad request";
    ends_as_fault || numbered || coded || dotted || status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_relays_come_off_one_by_one() {
        let last = |text| stripped(text).last().copied().unwrap_or_default().to_owned();
        assert_eq!(last("litellm.BadRequestError: AzureException - The prompt is long."), "The prompt is long.");
        assert_eq!(last("API error (status 403 Forbidden): permission-denied: Your team is out."), "Your team is out.");
        assert_eq!(last("azure-openai error: The system is busy."), "The system is busy.");
        assert_eq!(last("Error code: 400 - prompt is too long"), "prompt is too long");
        assert_eq!(last("429 Too many."), "Too many.");
        assert_eq!(last("<400> InternalError.Algo.InvalidParameter: Range is 5."), "Range is 5.");
        assert_eq!(last("REQUEST_LIMIT_EXCEEDED: Slow down."), "Slow down.");
        assert_eq!(last("Bad request: prompt is too long"), "prompt is too long");
        assert_eq!(last("[1308][Limit reached. Wait.][2026]"), "Limit reached. Wait.][2026]");
        assert_eq!(last("[a/b-4] [400]: You're out."), "You're out.");
        assert_eq!(last("API Error: Request rejected (429) - Too many."), "Too many.");
        let boto = "An error occurred (ThrottlingException) when calling the Converse operation";
        for after in [" (reached max retries: 4): Too many.", ": Too many."] {
            assert_eq!(stripped(&format!("{boto}{after}")).last(), Some(&"Too many."));
        }
        assert_eq!(
            last("Error from provider (Go): Upstream request failed: [rate_limit_exceeded] Slow down."),
            "Slow down."
        );
        assert_eq!(last("Rate limit exceeded: free-models-per-day"), "Rate limit exceeded: free-models-per-day");
    }

    #[test]
    fn a_sentence_ends_at_a_mark_before_space_or_end() {
        let split: Vec<_> = sentences("Use gpt-4.1 in a.b now. Try again! 余额不足。请充值\nNext line").collect();
        assert_eq!(split, ["Use gpt-4.1 in a.b now", "Try again", "余额不足", "请充值", "Next line"]);
    }

    #[test]
    fn codes_in_brackets() {
        assert_eq!(bracketed("[rate_limit_exceeded] Slow"), Some("rate_limit_exceeded"));
        assert_eq!(bracketed("[1308][Limit reached.][2026]"), Some("1308"));
        assert_eq!(bracketed("[see here] Slow"), None);
        assert_eq!(suffixed("insufficient balance (1008)"), Some("1008"));
        assert_eq!(suffixed("limit reached (33/32)"), None);
    }
}
