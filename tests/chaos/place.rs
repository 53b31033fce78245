//! Where a drill's database lives, and what can be done to it there.

use crate::disk::SmallDisk;
use crate::faults::Can;
use crate::fleet::entered;
use crate::ledger::Ledger;
use crate::postgres::Server;
use crate::proxy::Proxy;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub struct Place {
    /// Where the database is a server.
    pub server: Option<Server>,
    /// Between one worker and the server.
    pub proxy: Option<Proxy>,
    /// Let go after the server that lives on it, and before the directory that it is mounted in.
    pub disk: Result<SmallDisk, String>,
    pub ledger: Ledger,
    /// The URL that the configuration names.
    pub database: String,
    dir: TempDir,
}

/// A directory, and a small file system in it, where one may be mounted.
fn ground(megabytes: u32) -> (TempDir, PathBuf, Result<SmallDisk, String>) {
    // A short place: a socket's path has at most 107 characters.
    let dir = tempfile::Builder::new().prefix("chaos-").tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let mount = dir.path().join("disk");
    std::fs::create_dir(&mount).unwrap();
    let disk = SmallDisk::mount(&mount, megabytes);
    (dir, mount, disk)
}

impl Place {
    /// A file on a small file system of its own.
    pub fn sqlite(megabytes: u32) -> Self {
        let (dir, mount, disk) = ground(megabytes);
        let database = format!("sqlite://{}/reprieve.db", mount.display());
        Self { server: None, proxy: None, disk, ledger: Ledger::Sqlite(database.clone()), database, dir }
    }

    /// A server whose directory is on a small file system, and a proxy in front of it for one worker.
    pub async fn postgres(megabytes: u32) -> Self {
        let (dir, mount, disk) = ground(megabytes);
        let beside = dir.path().join("beside");
        std::fs::create_dir(&beside).unwrap();
        let server = tokio::task::block_in_place(|| Server::start(&mount, &beside, "127.0.0.1", &[]));
        let database = Server::url(&server.host, server.port);
        let proxy = Proxy::start(format!("{}:{}", server.host, server.port)).await;
        Self {
            server: Some(server),
            proxy: Some(proxy),
            disk,
            ledger: Ledger::Postgres(database.clone()),
            database,
            dir,
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn can(&self) -> Can {
        Can { fill_disk: self.disk.is_ok(), server: self.server.is_some() }
    }

    /// Writes a configuration whose one provider is the simulator.
    pub fn configure(&self, name: &str, database: &str, sim_url: &str, lease_ms: u64) -> PathBuf {
        configure(self.dir(), name, database, sim_url, lease_ms)
    }
}

pub fn configure(dir: &Path, name: &str, database: &str, sim_url: &str, lease_ms: u64) -> PathBuf {
    let key = dir.join("key");
    std::fs::write(&key, "sim-main").unwrap();
    let file = dir.join(format!("{name}.toml"));
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

/// Brings the schema up to date.
pub async fn migrate(dir: &Path, config: &Path) {
    migrate_at(&[], dir, config).await;
}

/// The same behind `enter`.
pub async fn migrate_at(enter: &[String], dir: &Path, config: &Path) {
    let migrated = entered(enter, dir).arg("--config").arg(config).args(["migrate", "up"]).output().await.unwrap();
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
}
