//! The agent CLI's arguments, as far as a headless run uses them.

/// Options that take a value.
const WITH_VALUE: [&str; 15] = [
    "--input-format",
    "--output-format",
    "--max-turns",
    "--max-budget-usd",
    "--permission-mode",
    "--permission-prompt-tool",
    "--permission-prompts",
    "--model",
    "--session-id",
    "--resume",
    "--append-system-prompt",
    "--system-prompt",
    "--system-prompt-snapshot",
    "--settings",
    "--add-dir",
];

/// Options that take none.
const FLAGS: [&str; 8] = [
    "-p",
    "--print",
    "--verbose",
    "--fork-session",
    "--include-partial-messages",
    "--replay-user-messages",
    "--no-session-persistence",
    "--dangerously-skip-permissions",
];

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Args {
    pub(super) version: bool,
    pub(super) stream_json_input: bool,
    /// The session to begin or to resume.
    pub(super) session: Option<String>,
    pub(super) resumes: bool,
    pub(super) model: Option<String>,
    /// The prompt, where it is an argument.
    pub(super) prompt: Option<String>,
    /// All of them, for the log.
    pub(super) all: Vec<String>,
}

impl Args {
    /// Reads the arguments; an error is what the agent prints before it exits with 1.
    pub(super) fn parse(all: Vec<String>) -> Result<Self, String> {
        let mut args = Self { all: all.clone(), ..Self::default() };
        let (mut verbose, mut stream_output) = (false, false);
        let mut rest = all.into_iter();
        while let Some(argument) = rest.next() {
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                Some(_) | None => (argument.clone(), None),
            };
            if WITH_VALUE.contains(&name.as_str()) {
                let Some(value) = attached.or_else(|| rest.next()) else {
                    return Err(format!("error: option '{name}' argument missing"));
                };
                match name.as_str() {
                    "--input-format" => args.stream_json_input = value == "stream-json",
                    "--output-format" => stream_output = value == "stream-json",
                    "--session-id" => args.session = Some(value),
                    "--resume" => (args.session, args.resumes) = (Some(value), true),
                    "--model" => args.model = Some(value),
                    _ => {}
                }
            } else if name == "--version" {
                args.version = true;
            } else if name == "--" {
                args.prompt = rest.next();
            } else if !name.starts_with('-') {
                args.prompt = Some(argument);
            } else if !FLAGS.contains(&name.as_str()) {
                return Err(format!("error: unknown option '{name}'"));
            }
            verbose |= name == "--verbose";
        }
        if stream_output && !verbose {
            return Err(
                "Error: When using --print, --output-format=stream-json requires --verbose".to_owned()
            );
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn a_held_run_is_understood() {
        let args = parse(
            "-p --input-format stream-json --output-format stream-json --verbose --max-turns 5 --permission-mode \
             bypassPermissions --model m --session-id s --append-system-prompt text",
        )
        .unwrap();
        assert!(args.stream_json_input && !args.resumes && args.prompt.is_none());
        assert_eq!((args.session.as_deref(), args.model.as_deref()), (Some("s"), Some("m")));
    }

    #[test]
    fn a_resume_and_a_prompt_are_told_apart_from_options() {
        let args = parse("-p --resume=s1 hello").unwrap();
        assert!(args.resumes);
        assert_eq!((args.session.as_deref(), args.prompt.as_deref()), (Some("s1"), Some("hello")));
    }

    #[test]
    fn what_the_agent_refuses_is_refused() {
        assert_eq!(parse("-p --bogus").unwrap_err(), "error: unknown option '--bogus'");
        assert!(parse("-p --output-format stream-json").unwrap_err().contains("--verbose"));
        assert!(parse("--model").unwrap_err().contains("argument missing"));
    }
}
