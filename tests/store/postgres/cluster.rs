//! A Postgres of our own: made in a temporary directory, reached through a socket in it, and gone with this process,
//! however that ends. Where there is no Postgres the tests fail: `scripts/test` installs it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

pub struct Cluster {
    dir: TempDir,
    /// Stops the server when its input ends, that is with this process.
    keeper: Child,
}

/// Runs until its input ends; then stops the server, and deletes what it wrote.
const KEEPER: &str = r#"
"$1/bin/pg_ctl" -D "$2/data" -o "$3" -l "$2/log" -w -t 60 start >/dev/null || { cat "$2/log" >&2; echo failed; exit 1; }
echo started
while read -r order; do
    case "$order" in
        crash) "$1/bin/pg_ctl" -D "$2/data" -m immediate -w stop >/dev/null 2>&1; echo done ;;
        start) "$1/bin/pg_ctl" -D "$2/data" -o "$3" -l "$2/log" -w start >/dev/null 2>&1; echo done ;;
    esac
done
"$1/bin/pg_ctl" -D "$2/data" -m immediate stop >/dev/null 2>&1
rm -rf "$2/data" "$2/log"
"#;

/// Little memory, no durability against a loss of power (no test pulls the plug), many connections.
const SETTINGS: &str = "-c listen_addresses='' -c fsync=off -c shared_buffers=64MB -c max_connections=300 \
                        -c autovacuum=off -c log_min_messages=fatal";

/// Where the server's programs are.
fn home() -> PathBuf {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("bin/initdb").exists())
        .collect();
    found.sort();
    let on_path = || {
        std::env::split_paths(&std::env::var_os("PATH")?)
            .find(|dir| dir.join("initdb").exists() && dir.join("pg_ctl").exists())
            .and_then(|dir| dir.parent().map(Path::to_owned))
    };
    found.pop().or_else(on_path).expect("PostgreSQL is not installed; scripts/test installs it (Debian: postgresql)")
}

/// As a user that the server agrees to run under: it refuses root.
fn unprivileged(program: &str) -> Command {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", program]);
    command
}

impl Cluster {
    pub fn start() -> Self {
        Self::with(SETTINGS)
    }

    pub fn with(settings: &str) -> Self {
        let home = home();
        // A short place: a socket's path has at most 107 characters.
        let dir = tempfile::Builder::new().prefix("pg-").tempdir_in("/tmp").unwrap();
        // Root makes it, and the server's user writes in it.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let made = unprivileged(home.join("bin/initdb").to_str().unwrap())
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(dir.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let settings = format!("{settings} -k {}", dir.path().display());
        let keeper = unprivileged("sh")
            .args(["-c", KEEPER, "keeper", home.to_str().unwrap(), dir.path().to_str().unwrap(), &settings])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut cluster = Self { dir, keeper };
        assert_eq!(cluster.heard(), "started\n");
        cluster
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@localhost/postgres?host={}", self.dir.path().display())
    }

    /// Stops it as a crash would.
    pub fn crash(&mut self) {
        self.order("crash\n");
    }

    pub fn restart(&mut self) {
        self.order("start\n");
    }

    fn order(&mut self, order: &str) {
        self.keeper.stdin.as_mut().unwrap().write_all(order.as_bytes()).unwrap();
        assert_eq!(self.heard(), "done\n");
    }

    fn heard(&mut self) -> String {
        use std::io::Read;
        let out = self.keeper.stdout.as_mut().unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 {
            line.push(byte[0]);
            if byte[0] == b'\n' {
                break;
            }
        }
        String::from_utf8(line).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().unwrap();
    }
}

/// The one that all tests of this process share, each with a schema of its own.
pub fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(Cluster::start)
}
