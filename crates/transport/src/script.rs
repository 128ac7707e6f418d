//! The scripts, put together from fixed texts. Nothing that comes from outside is ever written into a
//! script, except the marker, which is hexadecimal and ours; everything else travels as payload.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use bytes::Bytes;

const LIB: &str = include_str!("sh/lib.sh");
const JOURNAL: &str = include_str!("sh/journal.sh");
const STATE: &str = include_str!("sh/state.sh");
const PROCS: &str = include_str!("sh/procs.sh");
const HOLDER: &str = include_str!("sh/holder.sh");

/// What can be run on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Start,
    Append,
    Status,
    Signal,
    Stop,
    Survey,
    StderrTail,
    Directory,
    Follow,
    FindAgent,
    Collect,
}

impl Script {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 11] = [
        Self::Start,
        Self::Append,
        Self::Status,
        Self::Signal,
        Self::Stop,
        Self::Survey,
        Self::StderrTail,
        Self::Directory,
        Self::Follow,
        Self::FindAgent,
        Self::Collect,
    ];

    /// Returns what is being done, for messages: "lost `h` while ...".
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Start => "starting the agent",
            Self::Append => "writing to the agent",
            Self::Status => "asking for the agent's state",
            Self::Signal => "signalling the agent",
            Self::Stop => "stopping the agent",
            Self::Survey => "looking for processes",
            Self::StderrTail => "reading the agent's stderr",
            Self::Directory => "looking at a directory",
            Self::Follow => "following the agent",
            Self::FindAgent => "looking for the agent's program",
            Self::Collect => "removing old runs",
        }
    }

    /// Returns the text for `sh -s`.
    ///
    /// It is one brace group, so that a shell has read it whole before any of it runs and what follows on
    /// stdin is payload. Comments are left out: bash reads a script on a pipe byte by byte.
    pub(crate) fn text(self, marker: &Marker) -> Bytes {
        let mut text = format!("b_M={}\n{{\n", marker.as_str());
        for part in self.parts() {
            strip(&part, &mut text);
        }
        text.push_str("exit\n}\n");
        Bytes::from(text)
    }

    fn parts(self) -> Vec<String> {
        let own = |text: &str| text.to_owned();
        match self {
            Self::Start => vec![
                own(include_str!("sh/start.sh")),
                own("{\n"),
                own(LIB),
                own(HOLDER),
                own("exit\n}\n"),
                own(include_str!("sh/start_tail.sh")),
            ],
            Self::Append => vec![own(LIB), own(JOURNAL), own(include_str!("sh/append.sh"))],
            Self::Status => vec![own(LIB), own(STATE), own(include_str!("sh/status.sh"))],
            Self::Signal => vec![own(LIB), own(STATE), own(include_str!("sh/signal.sh"))],
            Self::Stop => {
                vec![own(LIB), own(JOURNAL), own(STATE), own(PROCS), own(include_str!("sh/stop.sh"))]
            }
            Self::Survey => vec![own(LIB), own(PROCS), own(include_str!("sh/survey.sh"))],
            Self::StderrTail => vec![own(LIB), own(include_str!("sh/tail.sh"))],
            Self::Directory => vec![own(LIB), own(include_str!("sh/dir.sh"))],
            Self::Follow => {
                let follow = include_str!("sh/follow.sh")
                    .replace("BURSAR_PERL", include_str!("sh/follow.pl"))
                    .replace("BURSAR_PYTHON", include_str!("sh/follow.py"));
                vec![own(LIB), own(STATE), follow, own(include_str!("sh/follow_loop.sh"))]
            }
            Self::FindAgent => vec![own(LIB), own(include_str!("sh/find.sh"))],
            Self::Collect => vec![own(LIB), own(STATE), own(PROCS), own(include_str!("sh/gc.sh"))],
        }
    }
}

/// Copies a script without its comment lines.
fn strip(part: &str, into: &mut String) {
    for line in part.lines().filter(|line| !line.trim_start().starts_with('#')) {
        into.push_str(line);
        into.push('\n');
    }
}

/// A random word that begins every line of ours, so that what start-up files print is never taken for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker(String);

impl Marker {
    /// Makes a fresh one: 128 bits, from the operating system's seed of the standard library's hasher. It
    /// guards against accidents, not against an enemy, who could as well replace `sh`.
    pub(crate) fn random() -> Self {
        let half = || RandomState::new().build_hasher().finish();
        Self(format!("b{:016x}{:016x}", half(), half()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// Gives `text` to a program and fails with what it printed, or with the package that has the program.
    #[track_caller]
    fn check(program: &str, package: &str, args: &[&str], text: &str) {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("`{program}` is needed for this test ({error}); install `{package}`"),
        };
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{program} {args:?}:\n{}", String::from_utf8_lossy(&printed));
    }

    /// All scripts as they are written, with the comments shellcheck reads; the holder by itself, since
    /// inside the start script it is a document.
    fn written() -> Vec<(String, String)> {
        let mut all: Vec<_> =
            Script::ALL.map(|script| (format!("{script:?}"), script.parts().concat())).into_iter().collect();
        all.push(("Holder".to_owned(), [LIB, HOLDER].concat()));
        all
    }

    #[test]
    fn shellcheck_has_nothing_to_say() {
        for (name, text) in written() {
            let text = format!("#!/bin/sh\n# {name}\nb_M=marker\n{text}");
            // SC2034: not every script uses all that the shared parts set.
            check("shellcheck", "shellcheck", &["-s", "sh", "-e", "SC2034", "-"], &text);
        }
    }

    #[test]
    fn every_shell_can_parse_every_script() {
        for script in Script::ALL {
            let text = script.text(&Marker::random());
            let text = std::str::from_utf8(&text).unwrap();
            for (shell, args) in [
                ("dash", &["-n"][..]),
                ("bash", &["--posix", "-n"]),
                ("mksh", &["-n"]),
                ("busybox", &["ash", "-n"]),
            ] {
                check(shell, shell, args, text);
            }
        }
    }

    #[test]
    fn scripts_are_small() {
        // bash reads a script on a pipe byte by byte.
        for script in Script::ALL {
            let size = script.text(&Marker::random()).len();
            assert!(size < 16 * 1024, "{script:?}: {size} bytes");
        }
    }

    #[test]
    fn the_followers_fit_between_single_quotes() {
        for text in [include_str!("sh/follow.pl"), include_str!("sh/follow.py")] {
            assert!(!text.contains('\''));
        }
        check("perl", "perl", &["-c", "-"], include_str!("sh/follow.pl"));
        let compile = "import sys; compile(sys.stdin.read(), sys.argv[0], sys.argv[0] and 'exec')";
        check("python3", "python3", &["-c", compile], include_str!("sh/follow.py"));
    }

    #[test]
    fn markers_differ() {
        let marker = Marker::random();
        assert_eq!(marker.as_str().len(), 33);
        assert_ne!(marker, Marker::random());
    }
}
