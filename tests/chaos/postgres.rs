//! A Postgres server of the drill's own: made in a directory, ended in immediate mode and started again at will, and gone
//! with this process, however that ends.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Runs until its input ends; then stops the server. `$1` its programs, `$2` its directory, `$3` its settings, `$4` where
/// its log goes.
const KEEPER: &str = r#"
up() { "$1/pg_ctl" -D "$2" -o "$3" -l "$4" -w -t 30 start >/dev/null 2>&1; }
up "$@" || { cat "$4" >&2; echo failed; exit 1; }
echo done
while read -r order; do
    case "$order" in
        bounce) "$1/pg_ctl" -D "$2" -m immediate -w stop >/dev/null 2>&1; up "$@" && echo done || echo failed ;;
        # A server that recovers by itself is up; one that gave up is started.
        up) "$1/pg_ctl" -D "$2" status >/dev/null 2>&1 || up "$@"; echo done ;;
    esac
done
"$1/pg_ctl" -D "$2" -m immediate -w stop >/dev/null 2>&1
"#;

/// Small, so that a small disk holds it, and fills soon; what is acknowledged is on the disk.
const SETTINGS: &str = "-c shared_buffers=64MB -c max_connections=150 -c min_wal_size=16MB -c max_wal_size=48MB \
                        -c wal_recycle=off -c log_min_messages=fatal -c superuser_reserved_connections=3";

#[derive(Debug)]
pub struct Server {
    pub port: u16,
    /// The address that it listens on.
    pub host: String,
    keeper: std::sync::Mutex<Child>,
}

/// Where the server's programs are; `scripts/test` installs them.
fn programs() -> PathBuf {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|dir| dir.join("initdb").exists() && dir.join("pg_ctl").exists())
    };
    found.pop().or_else(on_path).expect("PostgreSQL is not installed; scripts/test installs it (Debian: postgresql)")
}

pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// `enter`, then a user that the server agrees to run under: it refuses root.
fn unprivileged(enter: &[String], program: &Path) -> Command {
    let drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"].map(str::to_owned);
    let mut words: Vec<String> = enter.to_vec();
    if is_root() {
        words.extend(drop);
    }
    words.push(program.to_str().unwrap().to_owned());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

impl Server {
    /// Makes a cluster in `disk` and starts it, on `host` and a free port; `beside` takes its log and its socket. `enter`
    /// stands in front of its command (`ip netns exec …`), or is empty.
    pub fn start(disk: &Path, beside: &Path, host: &str, enter: &[String]) -> Self {
        let bin = programs();
        for dir in [disk, beside] {
            // We make it, and the server's user writes in it.
            std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let data = disk.join("data");
        let made = unprivileged(enter, &bin.join("initdb"))
            .args(["--username=reprieve", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .args(["--wal-segsize=4", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let access = "local all all trust\nhost all all samehost trust\nhost all all samenet trust\n";
        std::fs::write(data.join("pg_hba.conf"), access).unwrap();
        // Whoever takes it between here and the start makes the start fail, loudly.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!("{SETTINGS} -c listen_addresses={host} -p {port} -k {}", beside.display());
        let keeper = unprivileged(enter, Path::new("sh"))
            .args(["-c", KEEPER, "keeper"])
            .args([&bin, &data])
            .arg(settings)
            .arg(beside.join("server.log"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Self { port, host: host.to_owned(), keeper: std::sync::Mutex::new(keeper) };
        assert_eq!(server.heard(), "done", "the server did not start");
        server
    }

    /// Its one database, reached at `host:port`.
    pub fn url(host: &str, port: u16) -> String {
        format!("postgres://reprieve@{host}:{port}/postgres")
    }

    /// The same through its socket, for whom no network leads there.
    pub fn socket_url(&self, beside: &Path) -> String {
        format!("postgres://reprieve@localhost:{}/postgres?host={}", self.port, beside.display())
    }

    /// Ends it as a crash would, and starts it again: whether it came up.
    pub fn bounce(&self) -> bool {
        self.order("bounce")
    }

    /// Starts it if it gave up.
    pub fn up(&self) {
        self.order("up");
    }

    fn order(&self, order: &str) -> bool {
        {
            let mut keeper = self.keeper.lock().unwrap();
            let input = keeper.stdin.as_mut().unwrap();
            writeln!(input, "{order}").unwrap();
        }
        self.heard() == "done"
    }

    fn heard(&self) -> String {
        let mut keeper = self.keeper.lock().unwrap();
        let out = keeper.stdout.as_mut().unwrap();
        let (mut line, mut byte) = (Vec::new(), [0]);
        while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let keeper = self.keeper.get_mut().unwrap();
        drop(keeper.stdin.take());
        let _ = keeper.wait();
    }
}
