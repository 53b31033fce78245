//! The layers, one over another: the built-in defaults, the file, the environment, the command line.

use super::origin::{Origin, Problem};
use super::read::{Findings, Section, Setting};
use super::tree::{self, Entry, Node, Value};
use super::{Config, ConfigError, schema};
use std::path::Path;

/// The documented defaults.
pub(super) const DEFAULTS: &str = include_str!("../../config/reprieve.toml");

/// A configuration in effect.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// Every effective value and where it came from, section by section.
    pub settings: Vec<Setting>,
}

/// What the command line says, over everything else.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub database: Option<String>,
}

impl Config {
    /// Reads the built-in defaults, over them `file`, and over that the `REPRIEVE__SECTION__KEY` variables of
    /// `environment` (name and value of each), which also answers the `${VAR}` of secrets.
    ///
    /// # Errors
    /// Everything that is wrong, each with its file and line (or variable), its key, and what would be right.
    pub fn load(file: Option<&Path>, environment: &[(String, String)]) -> Result<Loaded, ConfigError> {
        Self::load_with(file, environment, &Overrides::default())
    }

    /// The same with the command line's word on top.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_with(
        file: Option<&Path>,
        environment: &[(String, String)],
        overrides: &Overrides,
    ) -> Result<Loaded, ConfigError> {
        let mut root = tree::parse_toml(DEFAULTS, None).map_err(one)?;
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|error| one(unreadable(path, &error)))?;
            root.lay_over(tree::parse_toml(&text, Some(path)).map_err(one)?);
        }
        let variables = tree::from_variables(environment, &root).map_err(|problems| ConfigError { problems })?;
        root.lay_over(variables);
        if let Some(url) = &overrides.database {
            let origin = Origin::Flag("--database");
            let node = Node { value: Value::Text(url.clone()), origin: origin.clone() };
            root.put(Entry { key: "database".to_owned(), key_origin: origin, node });
        }
        let mut findings = Findings::default();
        let answer = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let config = schema::read(Section::root(&root), &answer, &mut findings);
        if findings.problems.is_empty() {
            Ok(Loaded { config, settings: findings.settings })
        } else {
            Err(ConfigError { problems: findings.problems })
        }
    }
}

fn one(problem: Problem) -> ConfigError {
    ConfigError { problems: vec![problem] }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem {
        origin: Origin::Flag("--config"),
        key: String::new(),
        what: format!("{} cannot be read ({error}); name a configuration file", path.display()),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
