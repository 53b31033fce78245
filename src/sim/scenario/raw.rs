//! The scenario file as written, and its way to the checked shapes.

use super::deeds::{RawAfter, RawAnswer, RawAt, RawErrorFrame, RawRespond, RawStall, RawTruncate};
use super::values::{Glob, Share, Shift, Span, Status};
use super::{
    Anchor, Count, Deed, Dialect, Kind, Limit, Manner, Naming, Pick, Reach, Refuse, Rule, Scenario, ScenarioError,
    Shape, Since, Who,
};
use serde::Deserialize;
use std::num::{NonZeroU64, NonZeroUsize};
use toml::Spanned;

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

fn who(models: Vec<Glob>, keys: Vec<Glob>) -> Who {
    let patterns = |globs: Vec<Glob>| globs.into_iter().map(|glob| glob.0).collect();
    Who { models: patterns(models), keys: patterns(keys) }
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
