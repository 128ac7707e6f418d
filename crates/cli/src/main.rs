//! The `bursar` command.
//!
//! Reads the command line, prints, and turns signals into wishes; what a run does is decided in `bursar-core` and
//! carried out by `bursar-runner`. Read next: `args.rs` and `commands/` for the commands, `session.rs` for following a
//! run, `ui/` for what people see, `output.rs` for the only code that writes to stdout and stderr.

mod agent;
mod args;
mod commands;
mod driver;
mod escape;
mod exit;
mod failure;
mod hosts;
mod logging;
mod output;
mod paint;
mod panic;
mod session;
mod signals;
mod span;
mod state;
mod terminal;
mod ui;

use std::process::ExitCode;

use crate::args::Command;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = args::parse();
    panic::install(cli.global.log_file.clone());
    let output = Output::new(&cli.global);
    let code = logging::init(&cli.global, &output).and_then(|()| run(cli.command, &output));
    ExitCode::from(code.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.code
    }))
}

fn run(command: Command, output: &Output) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => block_on(args.run(output)),
        Command::Attach(args) => block_on(args.run(output)),
        Command::Stop(args) => block_on(args.run(output)),
        Command::Gc(args) => block_on(args.run(output)),
        Command::Logs(args) => block_on(args.run(output)),
        Command::Ls(args) => args.run(output),
        Command::Show(args) => args.run(output),
        Command::Send(args) => args.run(output),
        Command::Fold(args) => args.run(output),
        Command::Schema(args) => Ok(args.run(output)),
        Command::Completions(args) => Ok(args.run(output)),
    }
}

fn block_on(future: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(
            |error| Failure::new(exit::REFUSED, "cannot start bursar's own threads").caused_by(&error),
        )?;
    let result = runtime.block_on(async {
        signals::outlive_file_size_limit();
        future.await
    });
    // Reads of stdin and waits for children must not keep a run that is over from ending.
    runtime.shutdown_background();
    result
}
