//! How a run ended, for people.

use std::time::Duration;

use bursar_core::outcome::Ending;
use bursar_runner::FinishedRecord;

use crate::escape;
use crate::paint::Paint;
use crate::span;
use crate::ui::{background, dollars, used};

/// Returns the lines that end a run.
pub(crate) fn lines(run: &str, finished: &FinishedRecord, paint: Paint) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} {} {}",
            ending(finished.outcome, paint),
            escape::line(&finished.message),
            paint.dim(&format!("({})", escape::line(&finished.reason)))
        ),
        paint.dim(&format!("  run {} · {}", escape::line(run), figures(finished))),
    ];
    for task in &finished.background {
        lines.push(format!("  {}", background::line(task, None, true, paint)));
    }
    for survivor in &finished.survivors {
        lines.push(format!(
            "  {} pid {} · {}",
            paint.yellow("still runs:"),
            survivor.pid,
            escape::line(&survivor.command)
        ));
    }
    if finished.skipped_lines > 0 {
        lines.push(paint.dim(&format!(
            "  {} of the agent's output could not be read",
            super::count(finished.skipped_lines, "line")
        )));
    }
    if !finished.hint.is_empty() {
        lines.push(format!("{} {}", paint.bold("hint:"), escape::line(&finished.hint)));
    }
    lines
}

/// Returns the accounts of a run.
pub(crate) fn figures(finished: &FinishedRecord) -> String {
    let turns = finished.turns;
    format!(
        "turns {} of {}, {} in all · continues {} · nudges {} · debt {} · {} · {}",
        turns.spent,
        turns.budget,
        turns.total,
        used(finished.continues),
        used(finished.nudges),
        finished.debt,
        dollars(finished.cost_usd),
        span::clock(Duration::from_millis(finished.duration_ms))
    )
}

fn ending(ending: Ending, paint: Paint) -> String {
    let word = format!("{}:", ending.as_str().replace('_', " "));
    let coloured = match ending {
        Ending::Done => paint.green(&word),
        Ending::Failed | Ending::Refused | Ending::Lost => paint.red(&word),
        Ending::Stranded | Ending::Exhausted | Ending::NeedsInput | Ending::Stopped | Ending::Limited => {
            paint.yellow(&word)
        }
    };
    paint.bold(&coloured)
}
