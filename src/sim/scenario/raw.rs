//! The scenario file as written, and its way to the checked shapes.

use super::{
    Anchor, At, Count, Deed, Dialect, Framing, Kind, Limit, Manner, Naming, Pattern, Pick, Reach, Refuse, Rule,
    Scenario, ScenarioError, Shape, Since, Who,
};
use crate::duration;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use toml::Spanned;

/// Past a year, a duration is a slip of the pen.
const MAX_DURATION_MS: i64 = 366 * 86_400_000;

/// What an answer is like where a scenario says nothing.
const DEFAULT_CHARS: usize = 240;
const DEFAULT_CHUNK_CHARS: usize = 24;
/// A client's request can be this long on its way while a refusal is answered to another of its requests.
const DEFAULT_GRACE_MS: i64 = 50;

pub(super) fn parse(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
    let place = Place { text, origin };
    let file: File = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        place.error(start, error.message())
    })?;
    let limits = file.limits.into_iter().map(|limit| place.build(limit, RawLimit::build)).collect::<Result<_, _>>()?;
    let rules = file.rules.into_iter().map(|rule| place.build(rule, RawRule::build)).collect::<Result<_, _>>()?;
    Ok(Scenario {
        name: file.name,
        seed: file.seed,
        grace_ms: file.grace.map_or(DEFAULT_GRACE_MS, |grace| grace.0),
        answer: file.answer.build(),
        limits,
        rules,
    })
}

struct Place<'a> {
    text: &'a str,
    origin: &'a str,
}

impl Place<'_> {
    fn error(&self, offset: usize, problem: &str) -> ScenarioError {
        let line = self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
        ScenarioError::Invalid { origin: self.origin.to_owned(), line, problem: problem.to_owned() }
    }

    fn build<R, T>(&self, raw: Spanned<R>, build: fn(R) -> Result<T, String>) -> Result<T, ScenarioError> {
        let start = raw.span().start;
        build(raw.into_inner()).map_err(|problem| self.error(start, &problem))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    seed: u64,
    grace: Option<Span>,
    #[serde(default)]
    answer: RawManner,
    #[serde(default)]
    limits: Vec<Spanned<RawLimit>>,
    #[serde(default)]
    rules: Vec<Spanned<RawRule>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawManner {
    chars: Option<NonZeroUsize>,
    chunk_chars: Option<NonZeroUsize>,
    latency: Option<Span>,
    chunk_latency: Option<Span>,
    date_skew: Option<Shift>,
}

impl RawManner {
    fn build(self) -> Manner {
        Manner {
            chars: self.chars.map_or(DEFAULT_CHARS, NonZeroUsize::get),
            chunk_chars: self.chunk_chars.map_or(DEFAULT_CHUNK_CHARS, NonZeroUsize::get),
            latency_ms: self.latency.map_or(0, |span| span.0),
            chunk_latency_ms: self.chunk_latency.map_or(0, |span| span.0),
            date_skew_ms: self.date_skew.map_or(0, |shift| shift.0),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimit {
    name: String,
    #[serde(default)]
    models: Vec<Glob>,
    #[serde(default)]
    keys: Vec<Glob>,
    count: Count,
    limit: NonZeroU64,
    per: Option<Span>,
    #[serde(default)]
    shape: RawShape,
    burst: Option<NonZeroU64>,
    anchor: Option<Anchor>,
    #[serde(default)]
    scope: Reach,
    refuse: Option<RawRefuse>,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawShape {
    #[default]
    Bucket,
    Window,
}

impl RawLimit {
    fn build(self) -> Result<Limit, String> {
        let per_ms = match (self.count, self.per) {
            (Count::InFlight, None) => 0,
            (Count::InFlight, Some(_)) => return Err("`per` has no meaning with `count = \"in_flight\"`".into()),
            (_, None) => return Err("a limit needs `per`, such as `per = \"1m\"`".into()),
            (_, Some(Span(0))) => return Err("`per` must be longer than nothing".into()),
            (_, Some(Span(per_ms))) => per_ms,
        };
        let shape = match self.shape {
            RawShape::Bucket if self.anchor.is_some() => {
                return Err("`anchor` belongs to `shape = \"window\"`".into());
            }
            RawShape::Window if self.burst.is_some() => return Err("`burst` belongs to `shape = \"bucket\"`".into()),
            RawShape::Bucket => Shape::Bucket { burst: self.burst.unwrap_or(self.limit).get() },
            RawShape::Window => Shape::Window { anchor: self.anchor.unwrap_or_default() },
        };
        let kind = match self.count {
            Count::Requests => Kind::RateLimitRequests,
            Count::Tokens => Kind::RateLimitTokens,
            Count::InFlight => Kind::Concurrency,
        };
        let refuse = match self.refuse {
            None => Refuse { kind, status: None, dialect: None, naming: None, named_off_ms: 0 },
            Some(refuse) => {
                if refuse.reset_in.is_some() || refuse.closes.is_some() {
                    return Err("a limit knows its reset: `reset_in` and `closes` belong to rules".into());
                }
                refuse.build(Some(kind))?
            }
        };
        Ok(Limit {
            name: self.name,
            who: who(self.models, self.keys),
            count: self.count,
            size: self.limit.get(),
            per_ms,
            shape,
            reach: self.scope,
            refuse,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRefuse {
    kind: Option<Kind>,
    status: Option<Status>,
    dialect: Option<Dialect>,
    reset: Option<Vec<Naming>>,
    named_off: Option<Shift>,
    reset_in: Option<Span>,
    closes: Option<Closes>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Closes {
    KeyModel,
    Key,
    Nothing,
}

impl RawRefuse {
    fn build(self, default: Option<Kind>) -> Result<Refuse, String> {
        let kind = self.kind.or(default).ok_or("`refuse` needs a `kind`")?;
        Ok(Refuse {
            kind,
            status: self.status.map(|status| status.0),
            dialect: self.dialect,
            naming: self.reset,
            named_off_ms: self.named_off.map_or(0, |shift| shift.0),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: String,
    #[serde(default)]
    models: Vec<Glob>,
    #[serde(default)]
    keys: Vec<Glob>,
    dialect: Option<Dialect>,
    stream: Option<bool>,
    contains: Option<String>,
    nth: Option<NonZeroU64>,
    first: Option<NonZeroU64>,
    every: Option<NonZeroU64>,
    probability: Option<Share>,
    #[serde(default)]
    since: Since,
    from: Option<Span>,
    until: Option<Span>,
    latency: Option<Span>,
    chunk_latency: Option<Span>,
    date_skew: Option<Shift>,
    refuse: Option<RawRefuse>,
    respond: Option<RawRespond>,
    drop: Option<RawAt>,
    stall: Option<RawStall>,
    truncate: Option<RawTruncate>,
    end: Option<RawAfter>,
    error_frame: Option<RawErrorFrame>,
    garble: Option<RawAfter>,
    answer: Option<RawAnswer>,
}

impl RawRule {
    fn build(self) -> Result<Rule, String> {
        let pick = match (self.nth, self.first, self.every) {
            (None, None, None) => Pick::All,
            (Some(nth), None, None) => Pick::Nth(nth.get()),
            (None, Some(first), None) => Pick::First(first.get()),
            (None, None, Some(every)) => Pick::Every(every.get()),
            _ => return Err("a rule takes one of `nth`, `first` and `every`".into()),
        };
        let deeds = [
            self.refuse.map(RawRefuse::deed),
            self.respond.map(RawRespond::deed),
            self.drop.map(|at| at.at().map(|at| Deed::Drop { at })),
            self.stall.map(RawStall::deed),
            self.truncate.map(RawTruncate::deed),
            self.end.map(|end| Ok(Deed::End { after_chunks: end.after_chunks })),
            self.error_frame.map(RawErrorFrame::deed),
            self.garble.map(|garble| Ok(Deed::Garble { after_chunks: garble.after_chunks })),
            self.answer.map(RawAnswer::deed),
        ];
        let mut deeds = deeds.into_iter().flatten();
        let (Some(deed), None) = (deeds.next(), deeds.next()) else {
            return Err(
                "a rule does one thing: `refuse`, `respond`, `drop`, `stall`, `truncate`, `end`, `error_frame`, \
                        `garble` or `answer`"
                    .into(),
            );
        };
        Ok(Rule {
            name: self.name,
            who: who(self.models, self.keys),
            dialect: self.dialect,
            stream: self.stream,
            contains: self.contains,
            pick,
            probability: self.probability.map(|share| share.0),
            since: self.since,
            from_ms: self.from.map_or(0, |span| span.0),
            until_ms: self.until.map(|span| span.0),
            deed: deed?,
            latency_ms: self.latency.map(|span| span.0),
            chunk_latency_ms: self.chunk_latency.map(|span| span.0),
            date_skew_ms: self.date_skew.map(|shift| shift.0),
        })
    }
}

impl RawRefuse {
    fn deed(self) -> Result<Deed, String> {
        let reset_in_ms = self.reset_in.map(|span| span.0);
        let closes = match (reset_in_ms, self.closes) {
            (None, Some(_)) => return Err("`closes` needs a `reset_in`".into()),
            (None, None) | (Some(_), Some(Closes::Nothing)) => None,
            (Some(_), None | Some(Closes::KeyModel)) => Some(Reach::KeyModel),
            (Some(_), Some(Closes::Key)) => Some(Reach::Key),
        };
        if reset_in_ms.is_none()
            && (self.named_off.is_some() || self.reset.as_ref().is_some_and(|names| !names.is_empty()))
        {
            return Err("`reset` and `named_off` need a `reset_in`".into());
        }
        Ok(Deed::Refuse { refuse: self.build(None)?, reset_in_ms, closes })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRespond {
    status: Status,
    #[serde(default)]
    headers: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl RawRespond {
    fn deed(self) -> Result<Deed, String> {
        let mut headers = Vec::new();
        for (name, values) in self.headers {
            let values = match values {
                OneOrMany::One(value) => vec![value],
                OneOrMany::Many(values) => values,
            };
            let parsed: http::HeaderName =
                name.parse().map_err(|_| format!("`{name}` is no header that HTTP can carry"))?;
            for value in values {
                headers.push((parsed.clone(), header_value(&value)?));
            }
        }
        Ok(Deed::Respond { status: self.status.0, headers, body: self.body.into() })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAt {
    after_bytes: Option<u64>,
    after_chunks: Option<u64>,
}

impl RawAt {
    fn at(self) -> Result<At, String> {
        match (self.after_bytes, self.after_chunks) {
            (None, None) => Ok(At::Head),
            (Some(bytes), None) => Ok(At::Bytes(bytes)),
            (None, Some(chunks)) => Ok(At::Chunks(chunks)),
            (Some(_), Some(_)) => Err("it is after bytes or after chunks, not both".into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStall {
    after_bytes: Option<u64>,
    after_chunks: Option<u64>,
    #[serde(rename = "for")]
    lasts: Option<Span>,
}

impl RawStall {
    fn deed(self) -> Result<Deed, String> {
        let at = RawAt { after_bytes: self.after_bytes, after_chunks: self.after_chunks }.at()?;
        Ok(Deed::Stall { at, for_ms: self.lasts.map(|span| span.0) })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTruncate {
    after_bytes: Option<u64>,
    after_chunks: Option<u64>,
    #[serde(default)]
    framing: Framing,
}

impl RawTruncate {
    fn deed(self) -> Result<Deed, String> {
        match (RawAt { after_bytes: self.after_bytes, after_chunks: self.after_chunks }).at()? {
            At::Head => Err("`truncate` needs `after_bytes` or `after_chunks`".into()),
            at => Ok(Deed::Truncate { at, how: self.framing }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAfter {
    after_chunks: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawErrorFrame {
    #[serde(default)]
    after_chunks: u64,
    kind: Option<Kind>,
    body: Option<String>,
}

impl RawErrorFrame {
    fn deed(self) -> Result<Deed, String> {
        if self.kind.is_some() == self.body.is_some() {
            return Err("`error_frame` takes a `kind` or a `body`".into());
        }
        let kind = self.kind.unwrap_or(Kind::Overloaded);
        Ok(Deed::ErrorFrame { after_chunks: self.after_chunks, kind, body: self.body })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    chars: Option<NonZeroUsize>,
    max_tokens: Option<NonZeroU64>,
    finish: Option<String>,
    content_type: Option<String>,
}

impl RawAnswer {
    fn deed(self) -> Result<Deed, String> {
        let content_type = self.content_type.as_deref().map(header_value).transpose()?;
        let (chars, max_tokens) = (self.chars.map(NonZeroUsize::get), self.max_tokens.map(NonZeroU64::get));
        Ok(Deed::Answer { chars, max_tokens, finish: self.finish, content_type })
    }
}

fn header_value(text: &str) -> Result<http::HeaderValue, String> {
    // Header values outside ASCII are on real wires, too.
    http::HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| format!("`{text}` is no header value that HTTP can carry"))
}

fn who(models: Vec<Glob>, keys: Vec<Glob>) -> Who {
    let patterns = |globs: Vec<Glob>| globs.into_iter().map(|glob| glob.0).collect();
    Who { models: patterns(models), keys: patterns(keys) }
}

struct Glob(Pattern);

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.matches('*').count() > 1 {
            return Err(de::Error::custom(format!("`{text}` has more than one `*`")));
        }
        Ok(Self(Pattern::new(&text)))
    }
}

/// A status that can stand in an answer's head.
#[derive(Clone, Copy)]
struct Status(u16);

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let status = u16::deserialize(deserializer)?;
        if (200..=599).contains(&status) {
            Ok(Self(status))
        } else {
            Err(de::Error::custom(format!("{status} is no status in 200..=599")))
        }
    }
}

/// A probability.
#[derive(Clone, Copy)]
struct Share(f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(de::Error::custom(format!("{share} is no probability in 0..=1")))
        }
    }
}

/// A duration in milliseconds: digits with `ms`, `s`, `m`, `h` or `d`, concatenable.
#[derive(Clone, Copy)]
struct Span(i64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span_ms(&text).map(Self)
    }
}

/// A duration that may be negative.
#[derive(Clone, Copy)]
struct Shift(i64);

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(&text)),
        };
        span_ms(rest).map(|ms| Self(sign * ms))
    }
}

fn span_ms<E: de::Error>(text: &str) -> Result<i64, E> {
    let ms = duration::parse_ms(text).map_err(|malformed| E::custom(format!("`{text}` {malformed}")))?;
    if ms > MAX_DURATION_MS {
        return Err(E::custom(format!("`{text}` is more than a year")));
    }
    Ok(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(text, "s.toml").unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        assert!(problem("name = \"x\"\nsed = 1\n").starts_with("s.toml:2: unknown field `sed`"));
        assert!(
            problem("name = \"x\"\n\n[answer]\nlatency = \"5\"\n")
                .starts_with("s.toml:4: `5` has a number without a unit")
        );
        let rule = "name = \"x\"\n\n[[rules]]\nname = \"r\"\nnth = 1\nfirst = 2\ndrop = {}\n";
        assert!(problem(rule).starts_with("s.toml:3: a rule takes one of"), "{}", problem(rule));
        let rule = "name = \"x\"\n[[rules]]\nname = \"r\"\n";
        assert!(problem(rule).starts_with("s.toml:2: a rule does one thing"));
        let limit = "name = \"x\"\n\n\n[[limits]]\nname = \"l\"\ncount = \"requests\"\nlimit = 5\n";
        assert!(problem(limit).starts_with("s.toml:4: a limit needs `per`"));
        assert!(
            problem("name = \"x\"\n[[limits]]\nname=\"l\"\ncount = \"words\"\n")
                .starts_with("s.toml:4: unknown variant")
        );
        assert!(problem("seed = 1\n").contains("missing field `name`"));
        assert!(
            problem(
                "name = \"x\"\n[[rules]]\nname = \"r\"\nrefuse = { kind = \"bad_key\", reset = [\"retry-after\"] }\n"
            )
            .starts_with("s.toml:2: `reset` and `named_off` need a `reset_in`")
        );
    }

    #[test]
    fn a_missing_reset_in_is_fine_where_nothing_names_it() {
        let scenario = parse(
            "name = \"x\"\n[[rules]]\nname = \"r\"\nrefuse = { kind = \"rate_limit_requests\", reset = [] }\n",
            "-",
        )
        .unwrap();
        assert_eq!(scenario.rules.len(), 1);
    }
}
