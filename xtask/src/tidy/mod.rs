//! The project's own rules, as code: what a reviewer should not have to look for.
//!
//! Each rule is a function from the list of files to complaints; all of them are reported at once. Only files that git
//! knows, or would add, are looked at.

mod fixtures;
mod rust;
mod text;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bursar_testkit::workspace;
use serde_json::Value;

use crate::Outcome;
use crate::step::{cargo, on_path, output};

/// The only packages `bursar-core` may depend on: it is pure, and stays so because nothing else is within reach.
const CORE_DEPENDENCIES: [&str; 5] = ["jiff", "memchr", "serde", "serde_json", "thiserror"];

/// One file of the project.
#[derive(Debug)]
struct File {
    /// Relative to the root, with `/`.
    path: String,
    content: Vec<u8>,
}

impl File {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.content).unwrap_or_default()
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

pub(crate) fn run() -> Outcome {
    let files = files(workspace::root())?;
    let mut complaints = Vec::new();
    complaints.extend(core_dependencies()?);
    complaints.extend(rust::headers(&files));
    complaints.extend(rust::sizes(&files));
    complaints.extend(rust::leftovers(&files));
    complaints.extend(fixtures::without_a_note(&files));
    complaints.extend(fixtures::orphan_snapshots(&files));
    complaints.extend(text::machine_words(&files));
    complaints.extend(shell_scripts(&files)?);
    if complaints.is_empty() {
        println!("{} files are tidy", files.len());
        return Ok(());
    }
    Err(format!("{} complaints\n{}", complaints.len(), complaints.join("\n")).into())
}

fn files(root: &Path) -> Result<Vec<File>, Box<dyn Error>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut files = Vec::new();
    for path in output(&mut git)?.split_terminator('\0') {
        // A file that is deleted but not yet committed is listed and not there; a link is not ours to read.
        let full: PathBuf = root.join(path);
        if full.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            files.push(File { path: path.to_owned(), content: fs::read(full)? });
        }
    }
    Ok(files)
}

fn core_dependencies() -> Result<Vec<String>, Box<dyn Error>> {
    let metadata = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let core = packages.filter(|package| package["name"] == "bursar-core");
    let dependencies = core.flat_map(|package| package["dependencies"].as_array().into_iter().flatten());
    let shipped = dependencies.filter(|dependency| dependency["kind"].is_null());
    Ok(shipped
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|name| !CORE_DEPENDENCIES.contains(name))
        .map(|name| format!("crates/core/Cargo.toml: core must not depend on `{name}`"))
        .collect())
}

/// Every shell script that runs as it lies there passes shellcheck. Texts that scripts are put together from, which have
/// no `#!` line, are checked as they are sent, by a test of the crate that puts them together.
fn shell_scripts(files: &[File]) -> Result<Vec<String>, Box<dyn Error>> {
    let is_script = |file: &&File| {
        let first = file.text().lines().next().unwrap_or_default();
        first.starts_with("#!") && first.ends_with("sh")
    };
    let scripts: Vec<&str> = files.iter().filter(is_script).map(|file| file.path.as_str()).collect();
    if scripts.is_empty() {
        return Ok(Vec::new());
    }
    if !on_path("shellcheck") {
        return Err("`shellcheck` is missing; `cargo xtask needs` installs it".into());
    }
    let mut command = Command::new("shellcheck");
    command.current_dir(workspace::root()).arg("--format=gcc").args(&scripts);
    let report = command.output()?;
    Ok(String::from_utf8_lossy(&report.stdout).lines().map(str::to_owned).collect())
}

#[cfg(test)]
fn file(path: &str, content: &str) -> File {
    File { path: path.to_owned(), content: content.as_bytes().to_vec() }
}
