//! A small disk that only the product and the test see: a tmpfs in a mount namespace of its own, so that nothing stays
//! mounted when a test is killed. Needs no root where users may make namespaces.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::rig::{Ran, Rig, Running};

const FILLER: &str = "filler";

pub(crate) struct Disk {
    /// The process whose namespace it is.
    keeper: Child,
    at: PathBuf,
}

impl Disk {
    /// Mounts a disk of this size (`2m`) on a folder, which must be there.
    #[track_caller]
    pub(crate) fn mount(rig: &Rig, at: &Path, size: &str) -> Self {
        let mut command = rig.home.command("unshare");
        command.arg("--mount");
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let script = "mount -t tmpfs -o \"size=$2,mode=755\" tmpfs \"$1\" && echo mounted && exec sleep 1000";
        command.args(["sh", "-c", script, "sh"]).arg(at).arg(size);
        let mut keeper = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if said != "mounted\n" {
            let output = keeper.wait_with_output().unwrap();
            panic!("no tmpfs, as root or in a user namespace: {}", String::from_utf8_lossy(&output.stderr));
        }
        Self { keeper, at: at.to_owned() }
    }

    /// Returns where the test finds a path that is seen with the disk.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Returns the command as it runs where the disk is mounted.
    pub(crate) fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg("--target").arg(self.keeper.id().to_string()).arg("--mount");
        if !is_root() {
            inside.args(["--user", "--preserve-credentials"]);
        }
        let folder = command.get_current_dir().unwrap_or_else(|| Path::new("/"));
        inside.args(["--", "sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(folder);
        inside.arg(command.get_program()).args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.stdin(Stdio::null());
        inside
    }

    /// Runs a command of the product to its end.
    #[track_caller]
    pub(crate) fn call(&self, rig: &Rig, args: &[&str]) -> Ran {
        Running::start(&mut self.inside(&rig.bursar(args))).ended()
    }

    /// Runs a prompt to its end.
    #[track_caller]
    pub(crate) fn run(&self, rig: &Rig, prompt: &str) -> Ran {
        Running::start(&mut self.inside(rig.run_command(&[]).arg(prompt))).ended()
    }

    /// Fills the disk but for so many bytes.
    #[track_caller]
    pub(crate) fn fill_up_to(&self, left: u64) {
        let path = self.path(&self.at).join(FILLER);
        let mut filler = File::create(&path).unwrap();
        while filler.write_all(&[b'x'; 4096]).is_ok() {}
        let length = filler.metadata().unwrap().len();
        filler.set_len(length.saturating_sub(left)).unwrap();
    }

    #[track_caller]
    pub(crate) fn fill(&self) {
        self.fill_up_to(0);
    }

    #[track_caller]
    pub(crate) fn free(&self) {
        fs::remove_file(self.path(&self.at).join(FILLER)).unwrap();
    }

    /// Makes the disk read-only, or writable again.
    #[track_caller]
    pub(crate) fn remount(&self, how: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{how}")]).arg(&self.at);
        let ran = Running::start(&mut self.inside(mount.envs(std::env::vars_os()))).ended();
        assert_eq!(ran.code, 0, "{ran}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may be gone with the home already.
        self.keeper.kill().ok();
        self.keeper.wait().ok();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
