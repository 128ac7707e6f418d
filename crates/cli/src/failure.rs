//! Errors as people see them: what happened, the chain of causes, what to do next.

use std::error::Error;

use bursar_runner::{FindError, RunnerError, StoreError};

use crate::escape;
use crate::exit;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl Failure {
    /// Makes a failure of the command line: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, message)
    }

    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// Adds what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        if !hint.is_empty() {
            self.hints.push(hint);
        }
        self
    }

    /// Adds an error and the chain behind it.
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            if self.causes.last() != Some(&text) && self.message != text {
                self.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// Returns the lines for a terminal, escaped, each ended.
    pub(crate) fn render(&self) -> String {
        let mut out = format!("error: {}\n", escape::text(&self.message));
        for cause in &self.causes {
            out.push_str(&format!("  caused by: {}\n", escape::text(cause.trim_end())));
        }
        for hint in &self.hints {
            out.push_str(&format!("hint: {}\n", escape::text(hint)));
        }
        out
    }

    /// Makes a failure of the store before anything was started, when no agent can be going on meanwhile.
    pub(crate) fn nothing_started(error: &StoreError) -> Self {
        let failure = Self::of(exit::REFUSED, error);
        match error {
            StoreError::ReadOnly { .. } | StoreError::Io { .. } | StoreError::Sql { .. } => {
                failure.hint("nothing was started; set XDG_STATE_HOME to a folder you can write")
            }
            StoreError::Full { .. } => failure.hint(
                "nothing was started; free some space (`bursar gc` removes old runs), or set XDG_STATE_HOME to a folder \
                 on another disk",
            ),
            StoreError::Newer { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Busy { .. }
            | StoreError::Unreadable { .. } => failure.hint(format!("nothing was started; {}", error.hint())),
        }
    }

    fn of(code: u8, error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::new(code, error.to_string());
        if let Some(source) = error.source() {
            failure = failure.caused_by(source);
        }
        failure
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of(exit::REFUSED, &error).hint(error.hint())
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        Self::of(error.exit_code(), &error).hint(error.hint())
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Store(error) => error.into(),
            FindError::Unknown { .. } => {
                Self::of(exit::USAGE, &error).hint("`bursar ls --all` lists the runs of this machine")
            }
            FindError::Ambiguous { ref runs, .. } => {
                let names: Vec<&str> = runs.iter().take(10).map(|run| run.0.as_str()).collect();
                let more = runs.len().saturating_sub(names.len());
                let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
                Self::of(exit::USAGE, &error).hint(format!("write more letters: {}{rest}", names.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bursar_core::RunId;

    use super::*;

    #[test]
    fn a_failure_has_three_parts_and_is_escaped() {
        let cause = std::io::Error::other("no \x1b[2Jspace");
        let failure = Failure::usage("cannot read `x`").caused_by(&cause).hint("try another");
        assert_eq!(
            failure.render(),
            "error: cannot read `x`\n  caused by: no \\u{1b}[2Jspace\nhint: try another\n"
        );
    }

    #[test]
    fn an_ambiguous_prefix_names_the_runs() {
        let runs = vec![RunId("abc1".into()), RunId("abc2".into())];
        let failure = Failure::from(FindError::Ambiguous { prefix: "abc".into(), runs });
        assert_eq!(failure.code, exit::USAGE);
        assert!(failure.render().contains("write more letters: abc1, abc2"), "{}", failure.render());
    }
}
