//! What to start: the program, its environment, its place and its first input.

use crate::name::{AttemptRef, Name};
use crate::payload::push_line;

/// Everything that is needed to start one attempt.
#[derive(Debug, Clone)]
pub struct StartSpec {
    /// Which attempt this is. Starting it twice starts one process.
    pub at: AttemptRef,
    /// The agent's session, if it resumes or names one: it has at most one living agent on a host.
    pub session: Option<Name>,
    /// A key of the caller: it has at most one living agent on a host (see [`Name::encoded`]).
    pub key: Option<Name>,
    /// Program and arguments. A program with a `/` is a path, relative to `cwd`; else it is searched in
    /// the `PATH` of `env`, or the host's. No argument may hold a NUL.
    pub argv: Vec<Vec<u8>>,
    /// Variables set on top of what a script on that host has. Values may hold any byte but NUL; names are
    /// `[A-Za-z_][A-Za-z0-9_]*`. They never show on a command line or in a file. `BURSAR_RUN` and
    /// `BURSAR_ATTEMPT` are always set, and by the holder only: they are how a run's processes are found again.
    pub env: Vec<(String, Vec<u8>)>,
    /// Where the agent runs. `~` and `~/x` are in the home directory, other relative paths where scripts
    /// start (`local`: the current directory, `ssh`: the home directory).
    pub cwd: Vec<u8>,
    /// The first bytes of the input journal.
    pub input: Vec<u8>,
    /// Ends the agent's input after `input`.
    pub close_after_input: bool,
}

/// Names some shell refuses to set, or to set to anything, and the marks of a run. Those of the holder's own variables
/// begin with `b_`.
const RESERVED: [&str; 11] = [
    "PPID",
    "UID",
    "EUID",
    "IFS",
    "OPTIND",
    "GROUPS",
    "BASHOPTS",
    "SHELLOPTS",
    "BASH_VERSINFO",
    "BURSAR_RUN",
    "BURSAR_ATTEMPT",
];

/// A specification no process can be started from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSpec {
    /// There is no program.
    #[error("no program to start")]
    NoProgram,
    /// An argument, a value or the directory holds a NUL byte.
    #[error("{0} holds a NUL byte")]
    Nul(String),
    /// A name no shell can export, or one of the holder's own.
    #[error("`{0}` cannot be the name of a variable")]
    VariableName(String),
}

impl StartSpec {
    /// Makes a specification with an empty environment, no input and the input left open.
    #[must_use]
    pub fn new(at: AttemptRef, argv: Vec<Vec<u8>>, cwd: impl Into<Vec<u8>>) -> Self {
        Self {
            at,
            session: None,
            key: None,
            argv,
            env: Vec::new(),
            cwd: cwd.into(),
            input: Vec::new(),
            close_after_input: false,
        }
    }

    /// Returns the payload without the input.
    pub(crate) fn header(&self) -> Result<Vec<u8>, BadSpec> {
        let no_nul = |what: &dyn Fn() -> String, bytes: &[u8]| {
            if bytes.contains(&0) { Err(BadSpec::Nul(what())) } else { Ok(()) }
        };
        if self.argv.first().is_none_or(Vec::is_empty) {
            return Err(BadSpec::NoProgram);
        }
        let mut lines = self.at.lines();
        if let Some(session) = &self.session {
            lines.extend_from_slice(format!("s{session}\n").as_bytes());
        }
        if let Some(key) = &self.key {
            lines.extend_from_slice(format!("k{key}\n").as_bytes());
        }
        no_nul(&|| "the working directory".to_owned(), &self.cwd)?;
        push_line(&mut lines, "c", &self.cwd);
        for (at, argument) in self.argv.iter().enumerate() {
            no_nul(&|| format!("argument {at}"), argument)?;
            push_line(&mut lines, "a", argument);
        }
        for (name, value) in &self.env {
            let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
            let fits = name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
                && name.bytes().next().is_some_and(letter);
            let taken = name.starts_with("b_") || RESERVED.contains(&name.as_str());
            if !fits || taken {
                return Err(BadSpec::VariableName(name.clone()));
            }
            no_nul(&|| format!("the value of `{name}`"), value)?;
            let mut pair = format!("{name}=").into_bytes();
            pair.extend_from_slice(value);
            push_line(&mut lines, "e", &pair);
        }
        let close = u8::from(self.close_after_input);
        lines.extend_from_slice(format!("z{}\nx{close}\n.\n", self.input.len()).as_bytes());
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_started_is_refused_before_anything_is_sent() {
        let spec = |argv: &[&[u8]]| {
            let argv = argv.iter().map(|argument| argument.to_vec()).collect();
            StartSpec::new(AttemptRef::new("r", 1).unwrap(), argv, "/")
        };
        assert_eq!(spec(&[]).header(), Err(BadSpec::NoProgram));
        assert_eq!(spec(&[b"a", b"b\0"]).header(), Err(BadSpec::Nul("argument 1".to_owned())));
        for name in ["", "1A", "A-B", "A=B", "é", "b_n", "OPTIND"] {
            let mut spec = spec(&[b"a"]);
            spec.env = vec![(name.to_owned(), b"x".to_vec())];
            assert_eq!(spec.header(), Err(BadSpec::VariableName(name.to_owned())));
        }
    }
}
