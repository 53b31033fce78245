//! Runs the command line as a process, in a directory of its own and with no environment but what a test gives.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// With the directory's name left out.
    pub fn of(output: &Output, dir: &Path) -> Self {
        let dir = dir.to_str().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap().replace(dir, "DIR");
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// As a snapshot holds it.
    pub fn shown(&self) -> String {
        format!("exit {}\n-- stdout\n{}-- stderr\n{}", self.code, self.out, self.err)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The binary in a directory, with no environment but that.
pub fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.args(arguments).current_dir(dir).env_clear().env("TMPDIR", dir);
    command
}

/// A directory with a configuration and a database of its own.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// With one provider entry, `sim`, at an endpoint, and what else is said.
    pub fn with_provider(endpoint: &str, more: &str) -> Self {
        let place = Self::new();
        place.write(
            "r.toml",
            &format!("database = \"sqlite://r.db\"\n{more}\n[providers.sim]\nadapter = \"openai\"\nendpoint = \"{endpoint}\"\n"),
        );
        place
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        command(self.dir.path(), arguments)
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, "", &[])
    }

    pub fn run_with(&self, arguments: &[&str], stdin: &str, environment: &[(&str, &str)]) -> Said {
        let mut child = self
            .command(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It may end without reading.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        Said::of(&output, self.dir.path())
    }
}
