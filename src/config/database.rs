//! Where jobs live: the URL, and what holds for Postgres alone.

use super::Postgres;
use super::read::{Findings, Read, Section};
use super::schema::{shown, shown_ms};
use serde_json::json;

const WANT: &str = "write sqlite://PATH or postgres://USER@HOST/DATABASE, for instance \"sqlite://reprieve.db\"";
const MEMORY: &str = "a database in memory ends with each of its connections, and several are used";

/// The URL. In a Postgres one `${VARIABLE}` stands for a variable's value: alone for the whole URL, within it for a part,
/// whose special characters are then escaped as a URL wants it.
pub(super) fn url(
    root: &mut Section<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> String {
    let Some(Read { value: written, origin }) = root.read("database", WANT, findings, super::read::text) else {
        return String::new();
    };
    let read = filled_in(&written, environment).and_then(|url| check(&url).map(|()| url));
    match read {
        Ok(url) => {
            findings.setting(&origin, "database", json!(without_secrets(&url)));
            url
        }
        Err(why) => {
            findings.problem(&origin, "database", format!("{why}; {WANT}"));
            written
        }
    }
}

fn filled_in(written: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    if !written.contains("${") {
        return Ok(written.to_owned());
    }
    let whole = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|name| !name.contains('$'));
    if whole.is_none() && !is_postgres(written) {
        return Err("`${…}` stands for secrets only, and the path of a file is none".into());
    }
    let mut url = String::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}').ok_or("a `${` has no `}`")?;
        let fits = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !fits {
            return Err("what stands in `${…}` is no name of a variable".into());
        }
        let value = environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let value = value.ok_or_else(|| format!("the variable {name} is not set"))?;
        url.push_str(before);
        url.push_str(&if whole.is_some() { value } else { escaped(&value) });
        rest = behind;
    }
    Ok(url + rest)
}

/// As a part of a URL.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Only the scheme of a wrong one is repeated: a URL may hold a password.
fn check(url: &str) -> Result<(), String> {
    let (scheme, path) = url.split_once(':').ok_or("this is no database URL")?;
    match (scheme, path.strip_prefix("//")) {
        ("postgres" | "postgresql", Some("")) => Err("the host and the database are missing".into()),
        ("postgres" | "postgresql", Some(_)) => match reqwest::Url::parse(url) {
            Ok(_) => Ok(()),
            Err(_) => Err("this is no URL (what is special in a password is escaped there: `@` as %40)".into()),
        },
        ("sqlite", Some(path)) if path.contains(":memory:") => Err(MEMORY.into()),
        ("sqlite", Some("")) => Err("the path is missing".into()),
        ("sqlite", Some(path)) if path.contains(['?', '#']) => Err("a path with `?` or `#` is not supported".into()),
        ("sqlite", Some(_)) => Ok(()),
        ("sqlite", None) if path == ":memory:" => Err(MEMORY.into()),
        _ => Err(format!("`{}:` is no known kind of database", scheme.escape_debug())),
    }
}

/// As it may be shown: a Postgres URL without its password and parameters.
fn without_secrets(url: &str) -> String {
    if !is_postgres(url) {
        return url.to_owned();
    }
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    match plain.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (who, place))) => {
            format!("{scheme}://{}@{place}", who.split(':').next().unwrap_or_default())
        }
        None => plain.to_owned(),
    }
}

pub(super) fn postgres(mut section: Section<'_>, findings: &mut Findings) -> Postgres {
    const SCHEMA: &str = "write small letters, digits and `_` (no digit first), at most 48, for instance \"reprieve\"";
    const NOTIFY: &str = "write \"listen\", or \"poll\" behind a transaction pooler";
    let schema = section.text("schema", SCHEMA, findings).map_or_else(String::new, |read| {
        let key = section.key("schema");
        if !is_schema(&read.value) {
            let what = format!("`{}` is no name of a schema; {SCHEMA}", read.value.escape_debug());
            findings.problem(&read.origin, &key, what);
        }
        findings.setting(&read.origin, &key, json!(read.value));
        read.value
    });
    let poll = section.text("notify", NOTIFY, findings).is_some_and(|read| {
        let key = section.key("notify");
        if !matches!(read.value.as_str(), "listen" | "poll") {
            let what = format!("`{}` is no way to be notified; {NOTIFY}", read.value.escape_debug());
            findings.problem(&read.origin, &key, what);
        }
        findings.setting(&read.origin, &key, json!(read.value));
        read.value == "poll"
    });
    let pool = section.integer("pool", 2..=1_000, findings);
    let statement = section.duration_ms("statement_timeout", 100..=3_600_000, findings);
    let postgres = Postgres {
        schema,
        poll,
        pool: shown(&section, "pool", pool, findings).unwrap_or(2),
        statement_timeout_ms: shown_ms(&section, "statement_timeout", statement, findings).unwrap_or(30_000),
    };
    section.finish(&[], findings);
    postgres
}

/// The store refuses the same.
fn is_schema(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=48).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.starts_with("pg_")
        && name != "information_schema"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stands_for_a_part_or_for_all_of_it() {
        let environment = |name: &str| match name {
            "PW" => Some("p@ss/w%rd\n".to_owned()),
            "URL" => Some("postgres://u:x@h/d".to_owned()),
            _ => None,
        };
        let filled = |text: &str| filled_in(text, &environment);
        assert_eq!(filled("postgres://u:${PW}@h/d").unwrap(), "postgres://u:p%40ss%2Fw%25rd@h/d");
        assert_eq!(filled("${URL}").unwrap(), "postgres://u:x@h/d");
        assert_eq!(filled("sqlite://x.db").unwrap(), "sqlite://x.db");
        for (wrong, why) in [
            ("postgres://u:${NONE}@h/d", "the variable NONE is not set"),
            ("postgres://u:${PW@h/d", "a `${` has no `}`"),
            ("postgres://u:${9}@h/d", "what stands in `${…}` is no name of a variable"),
            ("sqlite://${PW}.db", "`${…}` stands for secrets only, and the path of a file is none"),
        ] {
            assert_eq!(filled(wrong).unwrap_err(), why);
        }
    }

    #[test]
    fn a_url_is_shown_without_its_secrets_and_a_wrong_one_is_not_repeated() {
        assert_eq!(without_secrets("postgres://u:se@cret@h:1/d?password=secret"), "postgres://u@h:1/d");
        assert_eq!(without_secrets("sqlite://x?y.db"), "sqlite://x?y.db");
        let why = check("postgres://u:secret@h:port/d").unwrap_err();
        assert!(!why.contains("secret"), "{why}");
    }
}
