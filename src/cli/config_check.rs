//! `config check`: every effective value and where it came from.

use super::args::Cli;
use super::out::Out;
use super::trouble::{Exit, Trouble};
use crate::api::Kind;
use crate::app;
use crate::config::{Loaded, Setting};
use serde_json::json;

pub fn run(cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    let Loaded { config, settings } = cli.load()?;
    // The overlay is another file: what is wrong in it is wrong with the configuration.
    app::rules(&config).map_err(|error| Trouble::new(Kind::Configuration, error.to_string()))?;
    if out.json {
        let items: Vec<_> = settings
            .iter()
            .map(|setting| json!({"key": setting.key, "value": setting.value, "origin": setting.origin.to_string()}))
            .collect();
        out.document(&json!({"items": items, "next_cursor": null}))?;
    } else {
        let widest = |text: &dyn Fn(&Setting) -> usize| settings.iter().map(text).max().unwrap_or(0);
        let keys = widest(&|setting| setting.key.chars().count());
        let values = widest(&|setting| setting.value.to_string().chars().count()).min(40);
        for setting in &settings {
            let value = setting.value.to_string();
            out.line(format!("{:keys$}  {value:values$}  {}", setting.key, setting.origin))?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}
