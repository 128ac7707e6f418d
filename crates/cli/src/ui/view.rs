//! The live view: the phase with its figures, then one line a background task, at most as wide as the terminal.

use bursar_core::At;
use bursar_core::phase::{Link, Phase};
use bursar_runner::{BackgroundRecord, RunView};

use crate::paint::Paint;
use crate::span;
use crate::ui::{background, count, dollars};

/// Background tasks shown at once, where the terminal is high enough.
const SHOWN: usize = 8;

/// Returns the view's lines.
pub(crate) fn lines(view: &RunView, now: At, (width, height): (usize, usize), paint: Paint) -> Vec<String> {
    let mut lines = vec![headline(view, now, paint)];
    // The headline, the rest's count and a line of what goes on above.
    let shown = choose(&view.background, SHOWN.min(height.saturating_sub(3)));
    for task in &shown {
        lines.push(format!("  {}", background::line(task, Some(now), false, paint)));
    }
    let more = view.background.len() - shown.len();
    if more > 0 {
        lines.push(paint.dim(&format!("  +{more} more")));
    }
    // A full last column makes some terminals wrap.
    let width = width.saturating_sub(1).max(1);
    lines.iter().map(|line| console::truncate_str(line, width, "…").into_owned()).collect()
}

fn headline(view: &RunView, now: At, paint: Paint) -> String {
    let phase = match view.phase {
        Phase::Starting | Phase::Working | Phase::Settling => paint.cyan(view.phase.as_str()),
        Phase::Waiting | Phase::Limited | Phase::Question | Phase::NeedsInput => {
            paint.yellow(view.phase.as_str())
        }
        Phase::Ended => paint.bold(view.phase.as_str()),
    };
    let mut parts = vec![paint.bold(&phase)];
    match view.link {
        Link::Live => {}
        Link::Reconnecting | Link::Unverifiable => parts.push(paint.yellow(view.link.as_str())),
    }
    if let Some(until) = view.decision.as_ref().and_then(|decision| decision.until)
        && matches!(view.phase, Phase::Limited | Phase::Waiting)
    {
        let left = span::clock(until.since(now));
        parts.push(if view.phase == Phase::Limited {
            format!("goes on in {left}")
        } else {
            format!("held for {left} at most")
        });
    }
    parts.push(format!("{} spent (budget {})", count(view.turns_spent_total, "turn"), view.turn_budget));
    if let Some(decision) = &view.decision {
        for (name, used, limit) in [
            ("continues", decision.continues_used, decision.continues_limit),
            ("nudges", decision.nudges_used, decision.nudges_limit),
        ] {
            if used > 0 {
                parts.push(format!("{name} {used}/{limit}"));
            }
        }
    }
    parts.push(span::clock(now.since(view.begun)));
    parts.push(dollars(view.cost_usd));
    parts.join(" · ")
}

/// What runs comes first when not all fit; the order of their beginning stays.
fn choose(tasks: &[BackgroundRecord], room: usize) -> Vec<&BackgroundRecord> {
    if tasks.len() <= room {
        return tasks.iter().collect();
    }
    let live = tasks.iter().filter(|task| task.state.is_live()).count().min(room);
    let (mut live_left, mut ended_left) = (live, room - live);
    let mut ended_skipped =
        tasks.iter().filter(|task| !task.state.is_live()).count().saturating_sub(ended_left);
    tasks
        .iter()
        .filter(|task| {
            let left = if task.state.is_live() {
                &mut live_left
            } else {
                // The youngest of the ended ones are the interesting ones.
                if ended_skipped > 0 {
                    ended_skipped -= 1;
                    return false;
                }
                &mut ended_left
            };
            let take = *left > 0;
            *left = left.saturating_sub(1);
            take
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bursar_core::background::{Kind, State};

    use super::*;

    fn task(id: &str, state: State, ended: Option<u64>) -> BackgroundRecord {
        BackgroundRecord {
            id: id.to_owned(),
            kind: Kind::Shell,
            state,
            exit: (state == State::Done).then_some(0),
            description: "make -j8".to_owned(),
            owed: false,
            output: None,
            by_subagent: false,
            began: At(1_000),
            ended: ended.map(At),
            cut_after_look: false,
        }
    }

    fn view(background: Vec<BackgroundRecord>) -> RunView {
        RunView {
            run: "k7f2abcd".to_owned(),
            host: "local".to_owned(),
            begun: At(0),
            at: At(0),
            phase: Phase::Working,
            link: Link::Live,
            attempt: 1,
            reply: 1,
            model: None,
            turn_budget: 50,
            turns_spent_total: 3,
            cost_usd: 0.034,
            debt: 0,
            background,
            tools: Vec::new(),
            decision: None,
            finished: None,
        }
    }

    fn drawn(view: &RunView, now: u64, width: usize) -> Vec<String> {
        lines(view, At(now), (width, 40), Paint::new(false))
    }

    #[test]
    fn a_running_task_counts_on_and_an_ended_one_stays() {
        let view = view(vec![task("b1", State::Running, None), task("b2", State::Done, Some(32_000))]);
        let expected = |first: &str, second: &str| {
            vec![
                format!("working · 3 turns spent (budget 50) · {first} · $0.03"),
                format!("  shell b1 · running {second} · make -j8"),
                "  shell b2 · done · exit 0 · 0:31 · make -j8".to_owned(),
            ]
        };
        assert_eq!(drawn(&view, 13_000, 100), expected("0:13", "0:12"));
        assert_eq!(drawn(&view, 73_000, 100), expected("1:13", "1:12"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut wide = task("b1", State::Running, None);
        wide.description = "漢字漢字漢字漢字漢字漢字漢字 \x1b[31m".repeat(4);
        let view = view(vec![wide]);
        for width in 1..120 {
            for paint in [Paint::new(false), Paint::new(true)] {
                for line in lines(&view, At(9), (width, 40), paint) {
                    assert!(console::measure_text_width(&line) <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn many_tasks_are_cut_to_those_that_matter() {
        let mut tasks: Vec<_> = (0..12).map(|n| task(&format!("e{n}"), State::Done, Some(2_000))).collect();
        tasks.insert(3, task("live", State::Running, None));
        let lines = drawn(&view(tasks), 5_000, 100);
        assert_eq!(lines.len(), 10);
        assert!(lines[1].contains("shell live"), "{lines:?}");
        assert!(lines[8].contains("shell e11"), "{lines:?}");
        assert_eq!(lines[9], "  +5 more");
    }

    #[test]
    fn the_view_leaves_room_in_a_low_terminal() {
        let tasks: Vec<_> = (0..12).map(|n| task(&format!("b{n}"), State::Running, None)).collect();
        let view = view(tasks);
        for height in 0..20 {
            let drawn = lines(&view, At(9), (80, height), Paint::new(false)).len();
            assert!(drawn <= height.saturating_sub(1).max(2), "{drawn} lines in {height}");
        }
    }

    #[test]
    fn a_broken_link_is_said_in_the_first_line() {
        let mut view = view(Vec::new());
        view.link = Link::Reconnecting;
        assert!(drawn(&view, 0, 100)[0].starts_with("working · reconnecting · "));
    }
}
