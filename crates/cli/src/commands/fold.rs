//! `bursar fold`: judges recorded streams and transcripts, as if the agent's process had then ended.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use bursar_core::background::Snapshot;
use bursar_core::notice::ReplySummary;
use bursar_core::offline::{Folded, Folder, Options};
use bursar_core::outcome::Ending;
use bursar_core::wire::FileKind;
use bursar_runner::{Clock as _, SystemClock};
use clap::Args;
use serde::Serialize;

use crate::args::DataOutput;
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::ui::count;
use crate::{escape, exit};

/// Read at once; memory stays flat whatever the size of a file.
const CHUNK: usize = 256 << 10;
/// Buffers that may be filled ahead of the fold.
const BUFFERS: usize = 4;

/// Judge recorded streams or transcripts offline, as if the agent's process then ended
///
/// Each file is judged by itself, or with --run all of them as the attempts of one run. Work that no event ended
/// counts as running: whether it truly runs could only be asked on its host.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bursar fold stream.jsonl\n  \
                        bursar fold --run attempt-1.jsonl attempt-2.jsonl --nudges 1\n  \
                        bursar fold --output json *.jsonl | jq -r '[.file, .outcome] | @tsv'")]
pub(crate) struct FoldArgs {
    /// Streams (what the agent printed with --output-format stream-json) or the agent's own session files; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Take the files as the attempts of one run, in this order
    #[arg(long)]
    run: bool,
    /// The turn budget that was asked for
    #[arg(long, value_name = "N", default_value_t = Options::default().max_turns, value_parser = clap::value_parser!(u64).range(1..))]
    max_turns: u64,
    /// Nudges that were spent already
    #[arg(long, value_name = "N", default_value_t = 0)]
    nudges: u32,
    /// Continues that were spent already
    #[arg(long, value_name = "N", default_value_t = 0)]
    continues_used: u32,
    /// The exit code of the agent's last process
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// Do not hold for background work
    #[arg(long)]
    no_hold: bool,
    /// How it is printed: a table, or one JSON object a file
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl FoldArgs {
    /// Runs the command.
    pub(crate) fn run(self, output: &Output) -> Result<u8, Failure> {
        if self.run {
            let mut folder = self.folder();
            let mut names = Vec::new();
            for (at, file) in self.files.iter().enumerate() {
                if at > 0 {
                    folder.next_file();
                }
                feed(&mut folder, file)?;
                names.push(file.to_string_lossy());
            }
            self.print(&names.join(" + "), &folder.finish(), output);
            return Ok(exit::DONE);
        }
        // A file that cannot be read does not keep the others from being judged.
        let mut failed = None;
        for (at, file) in self.files.iter().enumerate() {
            let mut folder = self.folder();
            let judged = feed(&mut folder, file).and_then(|()| recognised(file, folder.finish()));
            match judged {
                Ok(folded) => {
                    if at > 0 && self.output == DataOutput::Human {
                        output.line("");
                    }
                    self.print(&file.to_string_lossy(), &folded, output);
                }
                Err(failure) => {
                    if let Some(earlier) = failed.replace(failure) {
                        output.failure(&earlier);
                    }
                }
            }
        }
        failed.map_or(Ok(exit::DONE), Err)
    }

    fn folder(&self) -> Folder {
        let options = Options {
            max_turns: self.max_turns,
            nudges_used: self.nudges,
            continues_used: self.continues_used,
            exit_code: self.exit_code,
            hold: !self.no_hold,
        };
        Folder::new(options, SystemClock.now())
    }

    fn print(&self, name: &str, folded: &Folded, output: &Output) {
        if self.output == DataOutput::Json {
            // Plain data of ours: it always fits into JSON.
            let json = serde_json::to_string(&Judged::new(name, folded)).unwrap_or_default();
            output.line(&escape::json(&json));
        } else {
            for line in lines(name, folded, self.max_turns, output.paint()) {
                output.line(&line);
            }
        }
    }
}

fn feed(folder: &mut Folder, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("cannot read `{}`", path.display()))
            .caused_by(&error)
            .hint("name a file that the agent wrote: its stream, or a session file from ~/.claude/projects")
    };
    let mut file: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else if path.is_dir() {
        let shown = path.display();
        return Err(Failure::usage(format!("`{shown}` is a folder"))
            .hint(format!("name the files in it: bursar fold {shown}/*.jsonl")));
    } else {
        Box::new(File::open(path).map_err(failed)?)
    };
    // Reading and folding go on side by side; used buffers go back to be filled again.
    let (filled, full) = mpsc::sync_channel::<Vec<u8>>(BUFFERS);
    let (used, empty) = mpsc::channel::<Vec<u8>>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            loop {
                let mut buffer = empty.try_recv().unwrap_or_else(|_| vec![0; CHUNK]);
                buffer.resize(CHUNK, 0);
                let read = match file.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                buffer.truncate(read);
                if filled.send(buffer).is_err() {
                    return Ok(());
                }
            }
        });
        for buffer in full {
            folder.feed(&buffer);
            // A reader that is done needs no buffer.
            drop(used.send(buffer));
        }
        match reader.join() {
            Ok(read) => read.map_err(failed),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Refuses a file in which nothing of an agent was found; an empty one is an agent that said nothing.
fn recognised(path: &Path, folded: Folded) -> Result<Folded, Failure> {
    let nothing = folded.session.is_none()
        && folded.agent_version.is_none()
        && folded.replies.is_empty()
        && folded.background.is_empty();
    if nothing && folded.skipped_lines > 0 {
        return Err(Failure::usage(format!(
            "`{}` is neither an agent's stream nor one of its session files: {} could not be read",
            path.display(),
            count(folded.skipped_lines, "line")
        ))
        .hint("a stream comes from `--output-format stream-json`, a session file from ~/.claude/projects"));
    }
    Ok(folded)
}

fn kind(folded: &Folded) -> &'static str {
    match folded.kind {
        FileKind::Stream => "stream",
        FileKind::Transcript => "transcript",
    }
}

/// What `--output json` prints for a file.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    v: u32,
    file: &'a str,
    kind: &'static str,
    session: Option<&'a str>,
    agent_version: Option<&'a str>,
    replies: Vec<Reply<'a>>,
    ledger: Ledger,
    background: Vec<Work<'a>>,
    phase: &'static str,
    decision: Decision,
    outcome: Option<&'static str>,
    skipped_lines: u64,
}

#[derive(Debug, Serialize)]
struct Reply<'a> {
    origin: &'static str,
    subtype: &'a str,
    is_error: bool,
    terminal_reason: Option<&'a str>,
    turns: u64,
}

#[derive(Debug, Serialize)]
struct Ledger {
    launched: u64,
    settled: u64,
    debt: u64,
}

#[derive(Debug, Serialize)]
struct Work<'a> {
    id: &'a str,
    kind: &'static str,
    state: &'static str,
    exit: Option<i32>,
    owed: bool,
}

#[derive(Debug, Serialize)]
struct Decision {
    action: &'static str,
    reason: &'static str,
}

impl<'a> Judged<'a> {
    fn new(file: &'a str, folded: &'a Folded) -> Self {
        let reply = |reply: &'a ReplySummary| Reply {
            origin: reply.origin.as_str(),
            subtype: &reply.subtype,
            is_error: reply.is_error,
            terminal_reason: reply.terminal_reason.as_deref(),
            turns: reply.turns,
        };
        let work = |task: &'a Snapshot| Work {
            id: &task.id,
            kind: task.kind.as_str(),
            state: task.state.as_str(),
            exit: task.exit,
            owed: task.owed,
        };
        Self {
            v: 1,
            file,
            kind: kind(folded),
            session: folded.session.as_deref(),
            agent_version: folded.agent_version.as_deref(),
            replies: folded.replies.iter().map(reply).collect(),
            ledger: Ledger { launched: folded.launched, settled: folded.settled, debt: folded.debt },
            background: folded.background.iter().map(work).collect(),
            phase: folded.phase.as_str(),
            decision: Decision {
                action: folded.verdict.step.action().as_str(),
                reason: folded.verdict.reason,
            },
            outcome: folded.outcome.map(Ending::as_str),
            skipped_lines: folded.skipped_lines,
        }
    }
}

fn lines(name: &str, folded: &Folded, budget: u64, paint: Paint) -> Vec<String> {
    let step = folded.verdict.step.action().as_str();
    let decision = match folded.outcome {
        Some(ending) => format!("{step} → {ending}"),
        None => step.to_owned(),
    };
    let mut rows = vec![(
        "kind",
        format!(
            "{} · agent {}",
            kind(folded),
            folded.agent_version.as_deref().unwrap_or("of unknown version")
        ),
    )];
    rows.push(("session", folded.session.clone().unwrap_or_else(|| "unknown".to_owned())));
    for (at, reply) in folded.replies.iter().enumerate() {
        let error = if reply.is_error { " · error" } else { "" };
        let reason =
            reply.terminal_reason.as_deref().map(|reason| format!(" · {reason}")).unwrap_or_default();
        rows.push((
            if at == 0 { "replies" } else { "" },
            format!(
                "{} · {}{error}{reason} · {}",
                reply.origin.as_str(),
                reply.subtype,
                count(reply.turns, "turn")
            ),
        ));
    }
    if folded.replies.is_empty() {
        rows.push(("replies", "none: no result".to_owned()));
    }
    rows.push(("turns", format!("{} in all (budget {budget} a reply)", folded.turns_total)));
    rows.push((
        "ledger",
        format!("{} launched · {} settled · debt {}", folded.launched, folded.settled, folded.debt),
    ));
    for (at, task) in folded.background.iter().enumerate() {
        let exit = task.exit.map(|exit| format!(" · exit {exit}")).unwrap_or_default();
        let owed = if task.owed { " · owed" } else { "" };
        let what =
            if task.description.is_empty() { String::new() } else { format!(" · {}", task.description) };
        rows.push((
            if at == 0 { "work" } else { "" },
            format!("{} {} · {}{exit}{owed}{what}", task.kind.as_str(), task.id, task.state.as_str()),
        ));
    }
    if folded.skipped_lines > 0 {
        rows.push(("skipped", count(folded.skipped_lines, "line")));
    }
    rows.push(("phase", folded.phase.as_str().to_owned()));
    rows.push(("decision", format!("{decision} ({})", folded.verdict.reason)));
    let mut lines = vec![paint.bold(&escape::line(name))];
    lines.extend(
        rows.into_iter()
            .map(|(name, value)| format!("  {} {}", paint.dim(&format!("{name:<9}")), escape::line(&value))),
    );
    lines
}
