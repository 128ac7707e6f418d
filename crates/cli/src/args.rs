//! The command line: names, help and defaults. What each command does is in `commands/`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;
use crate::exit;
use crate::output::Output;

const ABOUT: &str = "Runs a coding agent and tells the truth about how it ended";

const LONG_ABOUT: &str = "\
bursar runs a headless coding agent, follows it whatever happens to this terminal, makes it settle the background \
work it started, continues it within a visible budget, and ends with an outcome that is true.

A run has a short id. Every command takes any unique beginning of it.";

const EXAMPLES: &str = "\
Examples:
  bursar run --permissions acceptEdits \"fix the failing test\"
                                              run the agent here, see it work
  bursar run --permissions acceptEdits --detach - < task.md
                                              start it in the background, print the run's id
  bursar attach k7f2                          see a run again, from its beginning
  bursar show k7f2                            how it stands or how it ended
  bursar fold stream.jsonl                    judge a recorded stream, without any agent";

fn after_help() -> String {
    format!("{EXAMPLES}\n\n{}", exit::TABLE)
}

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "bursar",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    after_long_help = after_help(),
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Append bursar's own log to FILE (made readable for you alone)
    #[arg(long, global = true, value_name = "FILE", env = "BURSAR_LOG_FILE", hide_env_values = true)]
    pub(crate) log_file: Option<PathBuf>,
    /// Form of the log, in the file and on stderr
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", hide_possible_values = false)]
    pub(crate) log_format: LogFormat,
    /// Log more to stderr: -v decisions, -vv everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Show the agent's text, errors and the outcome only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// When to use colour; auto respects NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutput {
    /// The agent's text on stdout, what happens around it on stderr
    Human,
    /// Every event as one JSON object a line (see `bursar schema`)
    Ndjson,
    /// The last event alone: how the run ended, with all its accounts
    Json,
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataOutput {
    /// For people
    Human,
    /// For programs
    Json,
}

/// Which run.
#[derive(Debug, Args)]
pub(crate) struct RunName {
    /// The run's id, or any unique beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<commands::run::RunArgs>),
    Attach(commands::attach::AttachArgs),
    Ls(commands::ls::LsArgs),
    Show(commands::show::ShowArgs),
    Logs(commands::logs::LogsArgs),
    Send(commands::send::SendArgs),
    Stop(commands::stop::StopArgs),
    Gc(commands::gc::GcArgs),
    Fold(commands::fold::FoldArgs),
    Schema(commands::schema::SchemaArgs),
    Completions(commands::completions::CompletionsArgs),
}

/// Reads the command line, or ends this process with what is wrong with it.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let unquoted = error.kind() == ErrorKind::UnknownArgument
            && std::env::args_os().any(|argument| argument == "run")
            && matches!(
                error.get(ContextKind::InvalidArg),
                Some(ContextValue::String(argument)) if !argument.starts_with('-')
            );
        if unquoted {
            // A terminal that is gone hears nothing, and the exit code is the same.
            drop(error.print());
            Output::new(&Global::default()).note("hint: put the prompt in quotes: bursar run \"...\"");
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// Reads a text argument that must be UTF-8, with a message better than the shell's.
pub(crate) fn utf8(what: &str, text: OsString) -> Result<String, crate::failure::Failure> {
    text.into_string().map_err(|_| {
        crate::failure::Failure::usage(format!("{what} is not valid UTF-8"))
            .hint("agents take UTF-8 only; convert it first, for example with iconv")
    })
}
