//! `bursar ls`: the runs of this machine.

use bursar_core::At;
use bursar_runner::{Clock as _, RunLine, RunView, Store, SystemClock, replay};
use clap::Args;
use serde_json::{Value, json};

use crate::args::DataOutput;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{escape, exit, hosts, span, state};

/// List runs: those that are not over, or all, the youngest first
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Also list runs that are over
    #[arg(long, short)]
    all: bool,
    /// How the list is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl LsArgs {
    /// Runs the command.
    pub(crate) fn run(&self, output: &Output) -> Result<u8, Failure> {
        let Some(store) = state::open_existing()? else {
            self.say_empty(output, true);
            return Ok(exit::DONE);
        };
        let rows: Vec<Row> =
            store.list(self.all)?.into_iter().map(|line| Row::new(&store, line, output)).collect();
        if rows.is_empty() {
            self.say_empty(output, store.list(true)?.is_empty());
        } else if self.output == DataOutput::Json {
            for row in &rows {
                output.line(&escape::json(&row.json().to_string()));
            }
        } else {
            print(&rows, SystemClock.now(), output);
        }
        Ok(exit::DONE)
    }

    fn say_empty(&self, output: &Output, none_at_all: bool) {
        if self.output == DataOutput::Human {
            output.note(if none_at_all {
                "no runs yet; `bursar run \"...\"` makes the first one"
            } else {
                "no run goes on; `bursar ls --all` lists those that are over"
            });
        }
    }
}

struct Row {
    line: RunLine,
    /// Where it stands, if it is not over and its log can be folded.
    view: Option<RunView>,
}

impl Row {
    fn new(store: &Store, line: RunLine, output: &Output) -> Self {
        let view = match &line.finished {
            Some(_) => None,
            None => replay(store, &line.run, |_| {})
                .inspect_err(|error| output.warn(&format!("run {}: {error}", line.run)))
                .ok(),
        };
        Self { line, view }
    }

    fn status(&self) -> String {
        if let Some(finished) = &self.line.finished {
            return finished.outcome.as_str().replace('_', " ");
        }
        let phase = self.view.as_ref().map_or("unknown", |view| view.phase.as_str()).replace('_', " ");
        if self.line.driven { phase } else { format!("{phase}, undriven") }
    }

    fn turns(&self) -> Option<u64> {
        let finished = self.line.finished.as_ref().map(|finished| finished.turns.total);
        finished.or_else(|| self.view.as_ref().map(|view| view.turns_spent_total))
    }

    fn debt(&self) -> Option<u64> {
        let finished = self.line.finished.as_ref().map(|finished| finished.debt);
        finished.or_else(|| self.view.as_ref().map(|view| view.debt))
    }

    fn json(&self) -> Value {
        let line = &self.line;
        json!({
            "v": 1,
            "run": line.run.0,
            "phase": if line.finished.is_some() { Some("ended") } else { self.view.as_ref().map(|view| view.phase.as_str()) },
            "outcome": line.finished.as_ref().map(|finished| finished.outcome.as_str()),
            "reason": line.finished.as_ref().map(|finished| finished.reason.as_str()),
            "driven": line.driven,
            "host": line.host,
            "dir": String::from_utf8_lossy(&line.dir),
            "key": line.key,
            "created": line.created.rfc3339(),
            "finished_at": line.finished_at.map(At::rfc3339),
            "turns": self.turns(),
            "debt": self.debt(),
            "title": line.title,
        })
    }
}

/// Columns of the prompt that are worth more than another column.
const PROMPT_ROOM: usize = 16;
/// Which columns a narrow terminal does without, the first one first: DIR, DEBT, TURNS, AGE.
const GIVEN_UP: [usize; 4] = [6, 4, 3, 2];

fn print(rows: &[Row], now: At, output: &Output) {
    let number = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    let terminal = output::width();
    // What is the same in every row, or does not fit, is left out; the prompt has the rest of the line.
    let with_host = rows.iter().any(|row| row.line.host != hosts::LOCAL);
    let mut table = vec![["RUN", "STATUS", "AGE", "TURNS", "DEBT", "HOST", "DIR"].map(str::to_owned)];
    for row in rows {
        table.push([
            row.line.run.0.clone(),
            row.status(),
            span::age(now.since(row.line.created)),
            number(row.turns()),
            number(row.debt()),
            escape::line(&row.line.host).into_owned(),
            short_dir(&row.line.dir),
        ]);
    }
    let mut widths = [0; 7];
    for cells in &table {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(console::measure_text_width(cell));
        }
    }
    let mut shown = [true, true, true, true, true, with_host, true];
    for column in GIVEN_UP {
        let taken: usize =
            widths.iter().zip(shown).filter(|(_, shown)| *shown).map(|(width, _)| width + 2).sum();
        if taken + PROMPT_ROOM > terminal {
            shown[column] = false;
        }
    }
    let titles = std::iter::once("PROMPT").chain(rows.iter().map(|row| row.line.title.as_str()));
    for (at, (cells, title)) in table.iter().zip(titles).enumerate() {
        let mut line = String::new();
        for ((cell, width), _) in cells.iter().zip(widths).zip(shown).filter(|(_, shown)| *shown) {
            line.push_str(&console::pad_str(cell, width, console::Alignment::Left, None));
            line.push_str("  ");
        }
        line.push_str(&escape::line(title));
        let line = console::truncate_str(line.trim_end(), terminal, "…");
        output.line(&if at == 0 { output.paint().dim(&line) } else { line.into_owned() });
    }
}

/// Writes the home folder as `~`, and cuts long paths at their beginning.
fn short_dir(dir: &[u8]) -> String {
    let dir = String::from_utf8_lossy(dir);
    let home = std::env::var("HOME").unwrap_or_default();
    let short = match dir.strip_prefix(&home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => format!("~{rest}"),
        Some(_) | None => dir.into_owned(),
    };
    let short = escape::line(&short).into_owned();
    let count = short.chars().count();
    if count <= 28 { short } else { format!("…{}", short.chars().skip(count - 27).collect::<String>()) }
}
