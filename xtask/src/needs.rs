//! The programs the tests need beside Rust, and how to get them on Debian and its kin.

use std::process::Command;

use crate::Outcome;
use crate::step::{cargo, on_path, status};

/// A program, the Debian package that brings it, and what it is for.
struct Need {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const NEEDS: [Need; 9] = [
    need("git", "git", "the work folders of agents, and the list of tracked files"),
    need("npm", "npm", "installs the real agent CLI into target/agents"),
    need("shellcheck", "shellcheck", "checks the holder's shell scripts"),
    need("dash", "dash", "the holder under dash"),
    need("bash", "bash", "the holder under bash, and the agent's shell"),
    need("busybox", "busybox", "the holder under busybox ash"),
    need("mksh", "mksh", "the holder under mksh"),
    need("zsh", "zsh", "login shells"),
    need("ps", "procps", "process trees"),
];

const fn need(program: &'static str, package: &'static str, purpose: &'static str) -> Need {
    Need { program, package, purpose }
}

/// Parts of the Rust toolchain that a minimal one lacks, by the cargo command that needs them.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

/// Makes sure that every program is there: by apt where this is root on Debian, else the error says what to do.
pub(crate) fn run() -> Outcome {
    components()?;
    programs()
}

fn components() -> Outcome {
    let works = |command: &str| {
        cargo().args([command, "--version"]).output().is_ok_and(|output| output.status.success())
    };
    let missing: Vec<&str> = COMPONENTS
        .into_iter()
        .filter(|(command, _)| !works(command))
        .map(|(_, component)| component)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !on_path("rustup") {
        return Err(
            format!("the Rust toolchain lacks {}; install it with rustup", missing.join(" and ")).into()
        );
    }
    println!("installing: rustup component add {}", missing.join(" "));
    status(Command::new("rustup").args(["component", "add"]).args(&missing))
}

fn programs() -> Outcome {
    let missing = missing();
    if missing.is_empty() {
        println!("everything the tests need is installed");
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    for need in &missing {
        println!("missing: `{}` ({}), package {}", need.program, need.purpose, need.package);
    }
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !on_path("apt-get") {
        let programs: Vec<&str> = missing.iter().map(|need| need.program).collect();
        return Err(format!(
            "missing: {}; install them with this system's package manager",
            programs.join(", ")
        )
        .into());
    }
    if !is_root() {
        return Err(format!("missing: {}; run as root: {by_hand}", packages.join(", ")).into());
    }
    println!("installing: {by_hand}");
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet=2").args(args);
        command
    };
    status(&mut apt(&["update"]))?;
    status(apt(&["install", "--yes", "--no-install-recommends"]).args(&packages))?;
    let still: Vec<&str> = self::missing().iter().map(|need| need.program).collect();
    if still.is_empty() {
        Ok(())
    } else {
        Err(format!("still missing after apt-get: {}", still.join(", ")).into())
    }
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !on_path(need.program)).collect()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
