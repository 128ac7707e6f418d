//! Where this checkout and its build output lie, and how to get at a binary of the workspace from a test.
//!
//! Must not be used by anything shipped: it bakes in the path of the checkout it was compiled in.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Why a binary of the workspace could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Cargo could not be started.
    #[error("cargo could not be started to build `{binary}`")]
    Cargo {
        /// The binary asked for.
        binary: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The build failed.
    #[error("building `{binary}` failed; rerun it with `cargo build -p {package} --bin {binary}`:\n{stderr}")]
    Failed {
        /// The package that holds it.
        package: String,
        /// The binary asked for.
        binary: String,
        /// The last lines cargo printed.
        stderr: String,
    },
}

/// Returns the root of the checkout.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().and_then(Path::parent).expect("the crate lies two folders below the root")
}

/// Returns cargo's target folder: where `CARGO_TARGET_DIR` points, else `target` in the checkout.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Builds `binary` of `package` in the dev profile and returns its path.
///
/// `CARGO_BIN_EXE_*` exists only inside the package that owns the binary, and a file found beside the test may be
/// stale. Asking cargo costs a few tenths of a second once per process and is always right.
pub fn built_binary(package: &str, binary: &str) -> Result<PathBuf, BuildError> {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = built.get(binary) {
        return Ok(path.clone());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", package, "--bin", binary])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target_dir())
        .stdin(Stdio::null())
        .output()
        .map_err(|source| BuildError::Cargo { binary: binary.to_owned(), source })?;
    if !output.status.success() {
        return Err(BuildError::Failed {
            package: package.to_owned(),
            binary: binary.to_owned(),
            stderr: last_lines(&output.stderr, 20),
        });
    }
    let path = target_dir().join("debug").join(binary);
    built.insert(binary.to_owned(), path.clone());
    Ok(path)
}

/// Returns the last `count` lines of what a program printed.
pub(crate) fn last_lines(bytes: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_folder_of_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn last_lines_keeps_the_end() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines(b"", 2), "");
    }
}
