//! How a refusal names its reset: every convention that the failure contract reads, written as the vendors write it.
//!
//! In comes the true instant and a list of conventions; out come header values, body members, details and a sentence.

use super::ask::Dialect;
use super::refusal::Kind;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One way to name a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Naming {
    /// `retry-after`, whole seconds, rounded up.
    RetryAfter,
    /// `retry-after`, seconds with decimals.
    RetryAfterDecimal,
    /// `retry-after`, an HTTP-date.
    RetryAfterDate,
    RetryAfterMs,
    /// `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` with compound durations (`6m0s`, `120ms`).
    XRatelimit,
    /// `x-ratelimit-reset`: compound duration, seconds, epoch seconds, epoch milliseconds, RFC 3339.
    XRatelimitReset,
    XRatelimitResetSeconds,
    XRatelimitResetEpoch,
    XRatelimitResetEpochMs,
    XRatelimitResetRfc3339,
    /// `ratelimit-reset`, seconds.
    RatelimitReset,
    /// `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`, RFC 3339.
    Anthropic,
    /// `anthropic-ratelimit-unified-*`, epoch seconds, the five-hour window rejected.
    AnthropicUnified,
    /// `x-codex-primary-*`.
    Codex,
    /// `google.rpc.RetryInfo`.
    RetryInfo,
    /// `quotaResetDelay` and `quotaResetTimeStamp` in `ErrorInfo.metadata`.
    QuotaReset,
    BodyResetsAt,
    BodyResetsInSeconds,
    BodyResetAt,
    BodyResetAtMs,
    BodyRetryAfter,
    BodyRetryAfterSeconds,
    BodyRetryAfterMs,
    /// A sentence in the message.
    Prose,
}

/// What a vendor names where a scenario does not say.
pub(super) fn usual(dialect: Dialect, kind: Kind) -> &'static [Naming] {
    match (dialect, kind) {
        (Dialect::OpenAi, Kind::PlanWindow) => &[Naming::BodyResetsAt, Naming::BodyResetsInSeconds, Naming::Codex],
        (Dialect::OpenAi, _) => &[Naming::XRatelimit, Naming::RetryAfterMs, Naming::RetryAfter, Naming::Prose],
        (Dialect::Anthropic, Kind::PlanWindow) => &[Naming::AnthropicUnified, Naming::RetryAfter],
        (Dialect::Anthropic, _) => &[Naming::Anthropic, Naming::RetryAfter],
        (Dialect::Gemini, Kind::PlanWindow) => &[Naming::QuotaReset],
        (Dialect::Gemini, _) => &[Naming::RetryInfo, Naming::Prose],
    }
}

/// What is being named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    /// The simulator's true clock.
    pub now_ms: i64,
    /// When it says it will answer again, on its true clock.
    pub named_ms: i64,
    /// Added to every absolute instant, as a provider with a wrong clock would have it.
    pub skew_ms: i64,
    /// The window's size, for the headers that state it.
    pub limit: u64,
}

/// A reset as named.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Members of the error object.
    pub members: Map<String, Value>,
    /// Members of Google's `details`.
    pub details: Vec<Value>,
    pub sentence: Option<String>,
    /// The latest instant named, on the true clock; `None`: nothing was named.
    pub until_ms: Option<i64>,
}

impl Named {
    pub(super) fn new(reset: Reset, kind: Kind, conventions: &[Naming]) -> Self {
        let mut named = Self::default();
        for convention in conventions {
            let until_ms = named.add(reset, kind, *convention);
            named.until_ms = named.until_ms.max(Some(until_ms));
        }
        named
    }

    /// Writes one convention; returns the instant it names after rounding, on the true clock.
    fn add(&mut self, reset: Reset, kind: Kind, convention: Naming) -> i64 {
        let Reset { now_ms, named_ms, skew_ms, limit } = reset;
        let wait_ms = named_ms - now_ms;
        let seconds = ceil_s(wait_ms);
        let at_ms = named_ms + skew_ms;
        let epoch_s = ceil_s(at_ms);
        // What whole seconds and whole epoch seconds come to on the true clock.
        let (by_wait_ms, by_epoch_ms) = (now_ms + seconds * 1_000, epoch_s * 1_000 - skew_ms);
        let counted = if kind == Kind::RateLimitTokens { "tokens" } else { "requests" };
        match convention {
            Naming::RetryAfter => self.header("retry-after", &seconds.to_string(), by_wait_ms),
            Naming::RetryAfterDecimal => self.header("retry-after", &decimal_s(wait_ms), named_ms),
            Naming::RetryAfterDate => self.header("retry-after", &http_date(epoch_s), by_epoch_ms),
            Naming::RetryAfterMs => self.header("retry-after-ms", &wait_ms.to_string(), named_ms),
            Naming::XRatelimit => {
                let other = if counted == "tokens" { "requests" } else { "tokens" };
                for (what, value) in [("limit", limit.to_string()), ("remaining", "0".to_owned())] {
                    self.header(&format!("x-ratelimit-{what}-{counted}"), &value, named_ms);
                }
                self.header(&format!("x-ratelimit-remaining-{other}"), "1", named_ms);
                self.header(&format!("x-ratelimit-reset-{other}"), "1ms", named_ms);
                self.header(&format!("x-ratelimit-reset-{counted}"), &compound(wait_ms), named_ms)
            }
            Naming::XRatelimitReset => self.x_ratelimit_reset(&compound(wait_ms), named_ms),
            Naming::XRatelimitResetSeconds => self.x_ratelimit_reset(&seconds.to_string(), by_wait_ms),
            Naming::XRatelimitResetEpoch => self.x_ratelimit_reset(&epoch_s.to_string(), by_epoch_ms),
            Naming::XRatelimitResetEpochMs => self.x_ratelimit_reset(&at_ms.to_string(), named_ms),
            Naming::XRatelimitResetRfc3339 => self.x_ratelimit_reset(&rfc3339(at_ms), named_ms),
            Naming::RatelimitReset => self.header("ratelimit-reset", &seconds.to_string(), by_wait_ms),
            Naming::Anthropic => {
                let prefix = format!("anthropic-ratelimit-{counted}");
                self.header(&format!("{prefix}-limit"), &limit.to_string(), named_ms);
                self.header(&format!("{prefix}-remaining"), "0", named_ms);
                self.header(&format!("{prefix}-reset"), &rfc3339(epoch_s * 1_000), by_epoch_ms)
            }
            Naming::AnthropicUnified => {
                for (name, value) in [
                    ("anthropic-ratelimit-unified-status", "rejected"),
                    ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
                    ("anthropic-ratelimit-unified-5h-status", "rejected"),
                    ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
                    ("anthropic-ratelimit-unified-7d-status", "allowed"),
                ] {
                    self.header(name, value, by_epoch_ms);
                }
                self.header("anthropic-ratelimit-unified-reset", &epoch_s.to_string(), by_epoch_ms);
                self.header("anthropic-ratelimit-unified-5h-reset", &epoch_s.to_string(), by_epoch_ms)
            }
            Naming::Codex => {
                self.header("x-codex-primary-used-percent", "100", named_ms);
                self.header("x-codex-primary-reset-after-seconds", &seconds.to_string(), by_wait_ms);
                self.header("x-codex-primary-reset-at", &epoch_s.to_string(), by_epoch_ms);
                by_wait_ms.max(by_epoch_ms)
            }
            Naming::RetryInfo => {
                self.details.push(json!({
                    "@type": "type.googleapis.com/google.rpc.RetryInfo",
                    "retryDelay": format!("{}s", decimal_s(wait_ms)),
                }));
                named_ms
            }
            Naming::QuotaReset => {
                self.details.push(json!({
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "QUOTA_EXHAUSTED",
                    "domain": "cloudcode-pa.googleapis.com",
                    "metadata": {"quotaResetDelay": compound(wait_ms), "quotaResetTimeStamp": rfc3339(at_ms)},
                }));
                named_ms
            }
            Naming::BodyResetsAt => self.member("resets_at", epoch_s, by_epoch_ms),
            Naming::BodyResetsInSeconds => self.member("resets_in_seconds", seconds, by_wait_ms),
            Naming::BodyResetAt => self.member("reset_at", epoch_s, by_epoch_ms),
            Naming::BodyResetAtMs => self.member("reset_at_ms", at_ms, named_ms),
            Naming::BodyRetryAfter => self.member("retry_after", seconds, by_wait_ms),
            Naming::BodyRetryAfterSeconds => self.member("retry_after_seconds", seconds, by_wait_ms),
            Naming::BodyRetryAfterMs => self.member("retry_after_ms", wait_ms, named_ms),
            Naming::Prose => {
                self.sentence = Some(format!("Please try again in {}.", compound(wait_ms)));
                named_ms
            }
        }
    }

    fn header(&mut self, name: &str, value: &str, until_ms: i64) -> i64 {
        // Every name and value above is plain ASCII.
        if let (Ok(name), Ok(value)) = (name.parse(), value.parse()) {
            self.headers.push((name, value));
        }
        until_ms
    }

    fn x_ratelimit_reset(&mut self, value: &str, until_ms: i64) -> i64 {
        if !self.headers.iter().any(|(name, _)| name == "x-ratelimit-remaining") {
            self.header("x-ratelimit-remaining", "0", until_ms);
        }
        self.header("x-ratelimit-reset", value, until_ms)
    }

    fn member(&mut self, name: &str, value: i64, until_ms: i64) -> i64 {
        self.members.insert(name.to_owned(), value.into());
        until_ms
    }
}

fn ceil_s(ms: i64) -> i64 {
    ms.div_euclid(1_000) + i64::from(ms.rem_euclid(1_000) > 0)
}

/// Seconds with the decimals that are needed: `38`, `38.5`.
fn decimal_s(ms: i64) -> String {
    let text = format!("{}.{:03}", ms / 1_000, (ms % 1_000).abs());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A compound duration: `120ms`, `1.2s`, `6m0s`, `1h0m5s`, `1d2h0m0s`.
fn compound(ms: i64) -> String {
    let ms = ms.max(0);
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    let (days, hours, minutes) = (ms / 86_400_000, ms / 3_600_000 % 24, ms / 60_000 % 60);
    let seconds = decimal_s(ms % 60_000);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{seconds}s"),
        (0, ..) => format!("{hours}h{minutes}m{seconds}s"),
        _ => format!("{days}d{hours}h{minutes}m{seconds}s"),
    }
}

pub(super) fn http_date(at_s: i64) -> String {
    let since_epoch = std::time::Duration::from_secs(u64::try_from(at_s).unwrap_or(0));
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + since_epoch)
}

fn rfc3339(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_790_000_000_250;

    fn named(wait_ms: i64, convention: Naming) -> Named {
        let reset = Reset { now_ms: NOW_MS, named_ms: NOW_MS + wait_ms, skew_ms: 0, limit: 60 };
        Named::new(reset, Kind::RateLimitRequests, &[convention])
    }

    fn header(wait_ms: i64, convention: Naming, name: &str) -> (String, i64) {
        let named = named(wait_ms, convention);
        let (_, value) = named.headers.iter().find(|(candidate, _)| candidate == name).unwrap();
        (value.to_str().unwrap().to_owned(), named.until_ms.unwrap() - NOW_MS)
    }

    #[test]
    fn headers_are_written_as_the_vendors_write_them_and_never_name_an_instant_before_the_true_one() {
        let of = |convention, name| header(12_300, convention, name);
        assert_eq!(of(Naming::RetryAfter, "retry-after"), ("13".into(), 13_000));
        assert_eq!(of(Naming::RetryAfterDecimal, "retry-after"), ("12.3".into(), 12_300));
        assert_eq!(of(Naming::RetryAfterMs, "retry-after-ms"), ("12300".into(), 12_300));
        assert_eq!(of(Naming::RetryAfterDate, "retry-after"), ("Mon, 21 Sep 2026 14:13:33 GMT".into(), 12_750));
        assert_eq!(of(Naming::XRatelimit, "x-ratelimit-reset-requests"), ("12.3s".into(), 12_300));
        assert_eq!(of(Naming::XRatelimitResetEpoch, "x-ratelimit-reset"), ("1790000013".into(), 12_750));
        assert_eq!(of(Naming::XRatelimitResetEpochMs, "x-ratelimit-reset"), ("1790000012550".into(), 12_300));
        assert_eq!(of(Naming::XRatelimitResetRfc3339, "x-ratelimit-reset"), ("2026-09-21T14:13:32.55Z".into(), 12_300));
        assert_eq!(
            of(Naming::Anthropic, "anthropic-ratelimit-requests-reset"),
            ("2026-09-21T14:13:33Z".into(), 12_750)
        );
        assert_eq!(of(Naming::AnthropicUnified, "anthropic-ratelimit-unified-5h-reset"), ("1790000013".into(), 12_750));
        assert_eq!(of(Naming::Codex, "x-codex-primary-reset-after-seconds"), ("13".into(), 13_000));
    }

    #[test]
    fn compound_durations() {
        for (ms, text) in [
            (120, "120ms"),
            (1_200, "1.2s"),
            (360_000, "6m0s"),
            (3_605_000, "1h0m5s"),
            (93_600_000, "1d2h0m0s"),
            (61_050, "1m1.05s"),
        ] {
            assert_eq!(compound(ms), text);
        }
    }

    #[test]
    fn a_skewed_clock_moves_absolute_instants_and_not_what_they_mean() {
        let reset = Reset { now_ms: NOW_MS, named_ms: NOW_MS + 5_000, skew_ms: -600_000, limit: 1 };
        let named = Named::new(reset, Kind::PlanWindow, &[Naming::BodyResetAtMs, Naming::RetryAfterMs]);
        assert_eq!(named.members["reset_at_ms"], NOW_MS + 5_000 - 600_000);
        assert_eq!(named.headers[0].1, "5000");
        assert_eq!(named.until_ms, Some(NOW_MS + 5_000));
    }
}
