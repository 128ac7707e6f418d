//! `bursar completions`: completion scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit;
use crate::output::Output;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bursar completions bash > ~/.local/share/bash-completion/completions/bursar\n  \
                        bursar completions zsh > \"${fpath[1]}/_bursar\"\n  \
                        bursar completions fish > ~/.config/fish/completions/bursar.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsArgs {
    /// Runs the command.
    pub(crate) fn run(&self, output: &Output) -> u8 {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "bursar", &mut script);
        output.data(&script);
        exit::DONE
    }
}
