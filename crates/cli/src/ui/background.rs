//! One line a background task.

use bursar_core::At;
use bursar_core::background::State;
use bursar_runner::BackgroundRecord;

use crate::escape;
use crate::paint::Paint;
use crate::span;

/// Returns `shell b1x · running 0:12 · make -j8`, or `shell b1x · done · exit 0 · 0:31 · make -j8`.
///
/// The time of a live one runs up to `now`; without it, none is shown. That of an ended one stays as it is. Once the
/// run is over, what was never collected is said to be so; before that, the agent still has time.
pub(crate) fn line(task: &BackgroundRecord, now: Option<At>, run_is_over: bool, paint: Paint) -> String {
    let mut parts = vec![format!("{} {}", task.kind.as_str(), escape::line(&task.id))];
    parts.push(state(task, now, paint));
    if task.cut_after_look {
        parts.push("when the agent ended".to_owned());
    }
    if let Some(exit) = task.exit {
        parts.push(format!("exit {exit}"));
    }
    if let (false, Some(ended)) = (task.state.is_live(), task.ended) {
        parts.push(span::clock(ended.since(task.began)));
    }
    if task.owed && run_is_over {
        parts.push(paint.yellow("not collected"));
    }
    if task.by_subagent {
        parts.push("by a subagent".to_owned());
    }
    if !task.description.is_empty() {
        parts.push(escape::line(&task.description).into_owned());
    }
    parts.join(" · ")
}

fn state(task: &BackgroundRecord, now: Option<At>, paint: Paint) -> String {
    let word = task.state.as_str();
    match task.state {
        State::Starting | State::Running => match now {
            Some(now) => paint.cyan(&format!("{word} {}", span::clock(now.since(task.began)))),
            None => paint.cyan(word),
        },
        State::Done => paint.green(word),
        State::Failed => paint.red(word),
        State::Stopped | State::Unknown => paint.yellow(word),
    }
}
