//! A file system so small that it can be filled, where this user may mount one.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub struct SmallDisk {
    dir: PathBuf,
}

const FILLER: &str = "filler";

impl SmallDisk {
    /// Mounts one of its own at `dir`. Why it cannot be: the error.
    pub fn mount(dir: &Path, megabytes: u32) -> Result<Self, String> {
        let size = format!("size={megabytes}m,mode=0755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "chaos"]).arg(dir).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Self { dir: dir.to_owned() }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("mount: {error}")),
        }
    }

    /// Takes all the room there is.
    pub fn fill(&self) {
        let mut options = File::options();
        let mut filler = options.create(true).append(true).open(self.dir.join(FILLER)).unwrap();
        for piece in [vec![0_u8; 1 << 20], vec![0; 4_096]] {
            loop {
                match filler.write(&piece) {
                    Ok(written) if written > 0 => {}
                    Ok(_) => break,
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("the filler cannot be written: {error}"),
                }
            }
        }
    }

    /// Gives it back.
    pub fn free(&self) {
        std::fs::remove_file(self.dir.join(FILLER)).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has a file open keeps the file system, not the place.
        let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}
