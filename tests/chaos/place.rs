//! Where a drill's database lives, and what can be done to it there.

use crate::disk::SmallDisk;
use crate::faults::Can;
use crate::ledger::Ledger;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub struct Place {
    /// Let go before the directory that it is mounted in.
    pub disk: Result<SmallDisk, String>,
    pub ledger: Ledger,
    /// The URL that the configuration names.
    pub database: String,
    dir: TempDir,
}

impl Place {
    /// A file on a small file system of its own, where one may be mounted.
    pub fn sqlite(megabytes: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mount = dir.path().join("disk");
        std::fs::create_dir(&mount).unwrap();
        let disk = SmallDisk::mount(&mount, megabytes);
        let database = format!("sqlite://{}/reprieve.db", mount.display());
        Self { disk, ledger: Ledger::Sqlite(database.clone()), database, dir }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn can(&self) -> Can {
        Can { fill_disk: self.disk.is_ok(), server: false }
    }

    /// Writes a configuration whose one provider is the simulator.
    pub fn configure(&self, name: &str, database: &str, sim_url: &str, lease_ms: u64) -> PathBuf {
        let key = self.dir().join("key");
        std::fs::write(&key, "sim-main").unwrap();
        let file = self.dir().join(format!("{name}.toml"));
        let text = format!(
            "database = \"{database}\"\n\
             [server]\nbind = \"127.0.0.1:0\"\n\
             [worker]\nlease = \"{lease_ms}ms\"\nconcurrency = 24\ndrain = \"10s\"\n\
             [recovery.tiered.requeue]\nbase = \"500ms\"\n\
             [recovery.tiered.transient]\nbase = \"100ms\"\n\
             [providers.sim]\nadapter = \"openai\"\nendpoint = \"{sim_url}/v1/\"\napi_key = {{ file = \"{}\" }}\n\
             identity = \"sim.example\"\naccount = \"main\"\nlimits = {{ max_in_flight = 96 }}\n",
            key.display()
        );
        std::fs::write(&file, text).unwrap();
        file
    }
}
