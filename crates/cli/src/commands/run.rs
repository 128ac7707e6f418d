//! `bursar run`: starts a run and follows it.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bursar_core::RunId;
use bursar_core::instruction::Delivery;
use bursar_core::outcome::Ending;
use bursar_core::policy::{Limits, Request};
use bursar_runner::{AgentChoice, Clock as _, Created, NewRun, RecordEvent, Store, SystemClock, replay};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::args::{RunOutput, utf8};
use crate::commands::attach::end_code;
use crate::failure::Failure;
use crate::hosts;
use crate::output::Output;
use crate::session::{Role, Session};
use crate::ui::summary;
use crate::{driver, escape, exit, span, state};

/// How long `--detach` waits for the agent's start.
const FIRST_SIGN: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(20);

/// Start an agent, follow it to its end, and settle what it left
///
/// The agent's text goes to stdout, everything else to stderr. A background task is owed (the debt) from its launch until
/// the agent reads its output, stops it, or is told of its end and answers. Ctrl-C stops the run gracefully, a second one at once.
/// If this terminal is closed, a background process takes over: `bursar attach RUN` shows the run again.
#[derive(Debug, Args)]
#[command(after_long_help = after_help())]
pub(crate) struct RunArgs {
    /// What the agent is to do; `-` (or nothing, with a pipe) reads it from stdin
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<OsString>,

    /// Where to run it; this version knows `local` only
    #[arg(long, value_name = "HOST", default_value = hosts::LOCAL)]
    host: String,
    /// A pool of hosts (not in this version yet)
    #[arg(long, value_name = "POOL", hide = true, conflicts_with = "host")]
    pool: Option<String>,
    /// The agent's working folder [default: the current one; with --resume RUN that run's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The model, as the agent names it
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Go on with an earlier session of the agent: a session's id (a UUID), or the id of the run it was (or a unique
    /// beginning of it)
    #[arg(long, value_name = "SESSION | RUN")]
    resume: Option<String>,
    /// The agent's permissions: `bypass` (all allowed), `deny` (what needs asking is denied), or one of the agent's
    /// own modes, such as acceptEdits or plan [default: as the agent is configured]
    #[arg(long, value_name = "MODE")]
    permissions: Option<String>,
    /// Hand this variable of your environment to the agent by a private channel; may be repeated. Its value is in no
    /// argument list, log or store. On this machine the agent inherits your environment anyway, so this only makes sure
    /// that the variable is set
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Which agent to run
    #[arg(long, value_name = "AGENT", default_value = "claude")]
    agent: String,
    /// The agent's program, instead of looking for it
    #[arg(long, value_name = "PATH", env = "BURSAR_AGENT_PATH", hide_env_values = true)]
    agent_path: Option<PathBuf>,
    /// Further arguments for the agent, as they are
    #[arg(last = true, value_name = "AGENT_ARGS")]
    agent_args: Vec<OsString>,

    /// Turns the agent may take in one reply
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = positive, help_heading = "Limits")]
    max_turns: u64,
    /// Times the run may be continued after a reply that did not succeed
    #[arg(long, value_name = "K", default_value_t = 3, help_heading = "Limits")]
    continues: u32,
    /// Time the run may wait for background work, all in all: 500ms, 90s, 30m, 2h, 1h30m
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = span::parse, help_heading = "Limits")]
    hold: Duration,
    /// Do not wait: close the agent's input after the prompt, as plain `-p` does
    #[arg(long, conflicts_with = "hold", help_heading = "Limits")]
    no_hold: bool,
    /// Longest single wait for a rate or usage limit to reset
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = span::parse, help_heading = "Limits")]
    max_wait: Duration,
    /// Cost after which the run ends, in US dollars as the agent counts them [default: no limit]
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars, help_heading = "Limits")]
    max_cost: Option<f64>,
    /// Time after which the run ends [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = span::parse, help_heading = "Limits")]
    timeout: Option<Duration>,

    /// Who calls, which decides how the standing instruction reaches the agent
    #[arg(long = "as", value_name = "CALLER", default_value = "chat")]
    caller: Caller,
    /// Leave the standing instruction out: the agent is not told to collect its background work
    #[arg(long, conflicts_with = "caller")]
    no_instruction: bool,
    /// One run for each KEY (not in this version yet)
    #[arg(long, value_name = "KEY", hide = true)]
    key: Option<String>,
    /// Start the run in the background and print its id
    #[arg(long)]
    detach: bool,
    /// How the run is shown
    #[arg(long, value_name = "FORM", default_value = "human", env = "BURSAR_OUTPUT", hide_env_values = true)]
    output: RunOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Caller {
    /// A person
    Chat,
    /// A board: the agent is also asked to verify its work
    Kanban,
    /// A timer: the agent is also asked to verify its work
    Scheduled,
    /// Goes on with another's session
    Worker,
    /// A bot
    Bot,
}

impl From<Caller> for Delivery {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::Chat => Self::Chat,
            Caller::Kanban => Self::Kanban,
            Caller::Scheduled => Self::Scheduled,
            Caller::Worker => Self::Worker,
            Caller::Bot => Self::Bot,
        }
    }
}

fn after_help() -> String {
    format!(
        "Examples:\n  bursar run --permissions acceptEdits \"fix the failing test\"\n  \
         bursar run --permissions acceptEdits --max-turns 20 --max-cost 2.50 - < task.md\n  \
         bursar run --permissions acceptEdits --output ndjson \"...\" | jq .event\n  \
         bursar run --permissions bypass --hold 2h \"build it and run all tests\"\n  \
         bursar run --permissions acceptEdits \"...\" -- --add-dir ../shared\n  \
         bursar run --permissions acceptEdits --resume k7f2 \"and now the other test\"\n\n{}",
        exit::TABLE
    )
}

fn positive(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "write a whole number above 0".to_owned())
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        Ok(_) | Err(_) => Err("write an amount of US dollars above 0, such as 2.50".to_owned()),
    }
}

impl RunArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: &Output) -> Result<u8, Failure> {
        self.refuse_what_comes_later()?;
        let (kind, detach) = (self.output, self.detach);
        let mut new = self.into_new_run(output)?;
        let store = state::open()?;
        let run = loop {
            match store.create(&new, SystemClock.now()) {
                Ok(Created::New) => break new.request.run,
                Ok(Created::Existing { run, .. }) => break run,
                // Two of 10^12 ids are the same less than once in a lifetime; a second draw is cheap all the same.
                Err(_) if store.load(&new.request.run)?.is_some() => {
                    new.request.run = state::new_id(state::random());
                }
                Err(error) => return Err(Failure::nothing_started(&error)),
            }
        };
        if detach {
            driver::spawn(&store, &run)?;
            return begun(&store, &run, kind, output).await;
        }
        let context = hosts::context(store);
        let session =
            Session { context: &context, run: &run, output, kind: Some(kind), role: Role::Owner, ask: None };
        Ok(end_code(session.follow().await?, Role::Owner, &run, output))
    }

    fn refuse_what_comes_later(&self) -> Result<(), Failure> {
        hosts::check(&self.host)?;
        let later = |what: &str| Failure::usage(format!("{what} is not in this version yet"));
        if self.pool.is_some() {
            return Err(later("--pool").hint("use --host local"));
        }
        if self.key.is_some() {
            return Err(later("--key").hint("leave it out, and see to it yourself that a card is run once"));
        }
        if self.permissions.as_deref() == Some("ask") {
            return Err(later("--permissions ask")
                .hint("use bypass, deny, or one of the agent's own modes such as acceptEdits"));
        }
        if self.agent != "claude" {
            return Err(Failure::usage(format!(
                "no agent `{}`: this version knows `claude` only",
                self.agent
            ))
            .hint("--agent-path names another program that speaks its stream"));
        }
        Ok(())
    }

    fn into_new_run(self, output: &Output) -> Result<NewRun, Failure> {
        let (resume, resumed_in) = match self.resume.as_deref().map(state::session).transpose()? {
            Some((session, dir)) => (Some(session), dir),
            None => (None, None),
        };
        let dir = working_dir(self.dir.or_else(|| resumed_in.map(|dir| OsString::from_vec(dir).into())))?;
        for name in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Failure::usage(format!("`{name}` is not the name of a variable"))
                    .hint("--env takes a name; the value comes from your own environment"));
            }
            if std::env::var_os(name).is_none() {
                return Err(Failure::usage(format!("the variable `{name}` is not set"))
                    .hint(format!("export {name}=... first, or leave --env {name} out")));
            }
        }
        let agent_path = match self.agent_path {
            Some(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                Some(utf8("the agent's path", path.into_os_string())?)
            }
            None => None,
        };
        let agent_args = self
            .agent_args
            .into_iter()
            .map(|argument| utf8("an argument for the agent", argument))
            .collect::<Result<Vec<_>, _>>()?;
        let permission_mode = self.permissions.map(|mode| match mode.as_str() {
            "bypass" => "bypassPermissions".to_owned(),
            "deny" => "dontAsk".to_owned(),
            _ => mode,
        });
        let limits = Limits {
            max_turns: self.max_turns,
            continues: self.continues,
            hold: (!self.no_hold).then_some(self.hold),
            max_wait: self.max_wait,
            max_cost_usd: self.max_cost,
            timeout: self.timeout,
            ..Limits::default()
        };
        let prompt = prompt(self.prompt, output)?;
        let seed = state::random();
        Ok(NewRun {
            request: Request {
                run: state::new_id(state::random()),
                host: self.host,
                transport: hosts::LOCAL.to_owned(),
                prompt,
                resume,
                model: self.model,
                permission_mode,
                agent_args,
                delivery: (!self.no_instruction).then(|| self.caller.into()),
                seed,
                limits,
            },
            dir,
            agent: AgentChoice { name: self.agent, path: agent_path },
            env: self.env,
            key: None,
        })
    }
}

/// Waits until the agent was started in the background, so that one that cannot be is said at once; then prints the id.
async fn begun(store: &Store, run: &RunId, kind: RunOutput, output: &Output) -> Result<u8, Failure> {
    let late = Instant::now() + FIRST_SIGN;
    let mut started = false;
    while !started && Instant::now() < late {
        let view = replay(store, run, |record| {
            started |= matches!(record.event, RecordEvent::AttemptStarted { .. });
        })?;
        match view.finished {
            // There is nothing to come back to, so no id is printed.
            Some(finished) if finished.outcome == Ending::Refused => {
                for line in summary::lines(&run.0, &finished, output.err_paint()) {
                    output.note(&line);
                }
                return Ok(finished.exit_code);
            }
            Some(_) => started = true,
            None if started => {}
            None => tokio::time::sleep(GLANCE).await,
        }
    }
    match kind {
        RunOutput::Human => output.line(&run.0),
        RunOutput::Ndjson | RunOutput::Json => {
            output.line(&json!({"v": 1, "run": run.0}).to_string());
        }
    }
    if !started {
        output.warn(&format!(
            "the agent of run {run} is not started yet; `bursar show {run}` tells how it stands"
        ));
    } else if kind == RunOutput::Human && std::io::stderr().is_terminal() && !output.quiet() {
        output.note(&format!("follow it: bursar attach {run}"));
    }
    Ok(exit::DONE)
}

fn working_dir(dir: Option<PathBuf>) -> Result<Vec<u8>, Failure> {
    let dir = match dir {
        Some(dir) => std::path::absolute(&dir).unwrap_or(dir),
        None => std::env::current_dir().map_err(|error| {
            Failure::usage("the current folder cannot be used").caused_by(&error).hint("name one with --dir")
        })?,
    };
    if dir.is_dir() {
        return Ok(dir.into_os_string().into_vec());
    }
    let shown = escape::line(&dir.to_string_lossy()).into_owned();
    if dir.exists() {
        return Err(Failure::usage(format!("the working folder `{shown}` on `local` is not a folder"))
            .hint("name another with --dir"));
    }
    Err(Failure::usage(format!("the working folder `{shown}` on `local` does not exist"))
        .hint("make it, or name another with --dir"))
}

/// Returns the prompt: the argument, or stdin.
fn prompt(argument: Option<OsString>, output: &Output) -> Result<String, Failure> {
    let text = match argument {
        Some(argument) if argument != "-" => utf8("the prompt", argument)?,
        Some(_) | None => {
            if std::io::stdin().is_terminal() {
                output.note("reading the prompt from the terminal; end with Ctrl-D");
            }
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|error| Failure::usage("cannot read the prompt from stdin").caused_by(&error))?;
            utf8("the prompt", OsString::from_vec(bytes))?
        }
    };
    if text.trim().is_empty() {
        return Err(
            Failure::usage("the prompt is empty").hint("say what the agent is to do: bursar run \"...\"")
        );
    }
    Ok(text)
}
