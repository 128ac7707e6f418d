//! Folds every capture in `fixtures/` as if its process then ended, and compares with the reviewed
//! `fixtures/expected/folds.txt`; `BURSAR_BLESS=1` rewrites that file, which is then to be read line by line.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use bursar_core::At;
use bursar_core::background::{Snapshot, State};
use bursar_core::notice::{ReplyOrigin, ReplySummary};
use bursar_core::offline::{Folded, Folder, Options};
use bursar_core::outcome::Ending;
use proptest::prelude::*;
use serde_json::Value;

/// Stands in where a capture tells no times.
const NOW: At = At(1_796_000_000_000);

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

/// Returns every stream and transcript under `fixtures/`, by its path in there.
fn captures() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let root = fixtures();
    let mut found = Vec::new();
    walk(&root, &mut found);
    let mut names: Vec<String> = found
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"))
        .filter(|name| !name.starts_with("vectors/") && !name.ends_with("hooks.jsonl"))
        .collect();
    names.sort();
    names
}

fn read(name: &str) -> Vec<u8> {
    fs::read(fixtures().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn options() -> Options {
    Options { max_turns: 20, ..Options::default() }
}

fn fold(name: &str) -> Folded {
    fold_run(&[name], options())
}

/// Folds files as the attempts of one run.
fn fold_run(names: &[&str], options: Options) -> Folded {
    let mut folder = Folder::new(options, NOW);
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            folder.next_file();
        }
        folder.feed(&read(name));
    }
    folder.finish()
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "-".to_owned() } else { items.join(", ") }
}

fn reply(reply: &ReplySummary) -> String {
    let wrong = if reply.is_error { "!" } else { "" };
    format!("{} {}{wrong} {}", reply.origin.as_str(), reply.subtype, reply.turns)
}

fn work(work: &Snapshot) -> String {
    let exit = work.exit.map(|code| format!(" {code}")).unwrap_or_default();
    let owed = if work.owed { " owed" } else { "" };
    format!("{} {} {}{exit}{owed}", work.id, work.kind.as_str(), work.state.as_str())
}

fn line(name: &str, folded: &Folded) -> String {
    format!(
        "{name} | {} launched, {} settled, {} owed | {} | {} | {} | {} {} | {}{}",
        folded.launched,
        folded.settled,
        folded.debt,
        list(folded.replies.iter().map(reply)),
        list(folded.background.iter().map(work)),
        folded.phase,
        folded.verdict.step.action().as_str(),
        folded.verdict.reason,
        folded.outcome.map_or("-", |ending| ending.as_str()),
        if folded.skipped_lines == 0 {
            String::new()
        } else {
            format!(" | {} skipped", folded.skipped_lines)
        },
    )
}

#[test]
fn every_capture_folds_to_its_reviewed_line() {
    let lines: Vec<String> = captures().iter().map(|name| line(name, &fold(name))).collect();
    let found = lines.join("\n") + "\n";
    let path = fixtures().join("expected/folds.txt");
    if std::env::var_os("BURSAR_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differing: Vec<String> = lines
        .iter()
        .filter(|line| !expected.lines().any(|known| known == *line))
        .map(|line| format!("+ {line}"))
        .chain(
            expected
                .lines()
                .filter(|known| !lines.iter().any(|line| line == known))
                .map(|known| format!("- {known}")),
        )
        .collect();
    assert!(
        found == expected,
        "review these, then accept them with BURSAR_BLESS=1:\n{}",
        differing.join("\n")
    );
}

// Several files as the attempts of one run.

/// One debt is carried into the second attempt; `line` is what the run then folds to.
#[track_caller]
fn check_run(pair: &str, nudges_used: u32, expected: &str) {
    for version in ["2.1.231", "2.1.332"] {
        let folder = fixtures().join(format!("claude-{version}"));
        let attempt = |suffix: &str| format!("claude-{version}/{pair}.{suffix}/stream.jsonl");
        if !folder.join(format!("{pair}.1-walkaway")).exists() {
            continue;
        }
        let (first, second) = (attempt("1-walkaway"), attempt("2-resume"));
        let folded = fold_run(&[&first, &second], Options { nudges_used, ..options() });
        let states: Vec<&str> = folded.background.iter().map(|work| work.state.as_str()).collect();
        let found = format!(
            "{} of {} owed, {}, {} {}",
            folded.debt,
            folded.launched,
            states.join(" "),
            folded.verdict.step.action().as_str(),
            folded.outcome.map_or(folded.verdict.reason, |ending| ending.as_str())
        );
        assert_eq!(found, expected, "{pair} on {version}");
    }
}

#[test]
fn a_resumed_session_that_only_talks_still_owes_and_is_nudged_once() {
    check_run("g-sigkill-text", 0, "1 of 1 owed, unknown, nudge debt");
    check_run("g-sigkill-text", 1, "1 of 1 owed, unknown, finish stranded");
    check_run("g-sigterm-text", 0, "1 of 1 owed, stopped, nudge debt");
    check_run("g-sigterm-text", 1, "1 of 1 owed, stopped, finish stranded");
}

#[test]
fn a_resumed_session_that_reads_the_output_settles_what_was_lost() {
    check_run("g-sigkill-read", 1, "0 of 1 owed, unknown, finish done");
}

#[test]
fn work_the_agent_killed_at_its_own_end_is_owed_and_work_it_waited_for_is_not() {
    // 2.1.231 kills the shell, 2.1.332 waits for it (FACTS 4).
    for (version, debt, outcome) in [("2.1.231", 1, Ending::Stranded), ("2.1.332", 0, Ending::Done)] {
        let attempt = |suffix: &str| format!("claude-{version}/g-natural-text.{suffix}/stream.jsonl");
        let (first, second) = (attempt("1-walkaway"), attempt("2-resume"));
        let folded = fold_run(&[&first, &second], Options { nudges_used: 1, ..options() });
        assert_eq!((folded.debt, folded.outcome), (debt, Some(outcome)), "{version}");
    }
}

#[test]
fn a_lost_subagent_is_owed_after_the_resume() {
    check_run("g-agent-lost", 1, "1 of 1 owed, stopped, finish stranded");
}

#[test]
fn a_resumed_session_that_reads_the_output_settles_while_the_orphan_lives() {
    check_run("g-orphan-alive", 1, "0 of 1 owed, unknown, finish done");
}

#[test]
fn debt_is_carried_where_the_resumed_stream_says_nothing_of_it() {
    for resumed in ["2.1.181-resume-says-nothing", "2.1.190-resume-with-a-real-woken-reply"]
        .map(|name| format!("drift/{name}.jsonl"))
    {
        // Another capture's first attempt stands in: nothing of the second names its work.
        let first = "claude-2.1.231/g-sigkill-text.1-walkaway/stream.jsonl";
        let folded = fold_run(&[first, &resumed], options());
        assert_eq!((folded.debt, folded.verdict.reason), (1, "debt"), "{resumed}");
    }
}

#[test]
fn a_resent_message_answers_nothing_and_a_new_one_does() {
    let run = |suffix| format!("claude-2.1.332/g-dup-uuid-resume.{suffix}/stream.jsonl");
    let folded = fold_run(&[&run("1-first"), &run("2-resume")], options());
    assert_eq!(folded.outcome, Some(Ending::Done));
    assert_eq!(folded.replies.len(), 2);
}

#[test]
fn a_run_whose_last_attempt_said_nothing_is_not_done() {
    let mut folder = Folder::new(options(), NOW);
    folder.feed(&read("claude-2.1.332/a-text/stream.jsonl"));
    folder.next_file();
    let folded = folder.finish();
    assert_eq!((folded.outcome, folded.verdict.reason), (None, "no_result"));
}

// What other versions do differently.

struct Drift<'a> {
    file: &'a str,
    replies: &'a str,
    background: &'a str,
    debt: u64,
    reason: &'a str,
}

#[track_caller]
fn check_drift(drift: &Drift<'_>) -> Folded {
    let folded = fold(&format!("drift/{}.jsonl", drift.file));
    assert_eq!(list(folded.replies.iter().map(reply)), drift.replies);
    assert_eq!(list(folded.background.iter().map(work)), drift.background);
    assert_eq!((folded.debt, folded.verdict.reason), (drift.debt, drift.reason));
    assert_eq!(folded.skipped_lines, 0);
    folded
}

#[test]
fn a_woken_reply_without_an_origin_settles_all_the_same() {
    check_drift(&Drift {
        file: "2.1.111-wakes-itself-without-origin",
        replies: "message success 2, message success 1",
        background: "b1shell00 shell done 0",
        debt: 0,
        reason: "settled",
    });
}

#[test]
fn a_result_that_is_never_printed_is_answered_by_the_last_of_the_burst() {
    check_drift(&Drift {
        file: "2.1.131-result-never-printed",
        replies: "wakeup success 1",
        background: "a1agent00 agent done",
        debt: 0,
        reason: "settled",
    });
}

#[test]
fn a_result_that_is_never_printed_is_missed_until_the_burst_is_over() {
    let name = "drift/2.1.131-result-never-printed.jsonl";
    let bytes = read(name);
    for end in line_ends(&bytes).iter().rev().skip(1) {
        let folded = fold_bytes(&bytes[..*end]);
        assert_eq!(folded.outcome, None, "{name} up to {end}");
    }
}

#[test]
fn the_reply_after_a_term_signal_does_not_settle_what_the_signal_stopped() {
    check_drift(&Drift {
        file: "2.1.162-term-runs-a-whole-reply",
        replies: "message success 2, wakeup success 1",
        background: "b1shell00 shell stopped owed",
        debt: 1,
        reason: "debt",
    });
}

#[test]
fn a_result_held_back_until_the_agent_ends_is_the_answer() {
    check_drift(&Drift {
        file: "2.1.176-result-held-back",
        replies: "message success 2, wakeup success 1",
        background: "a1agent00 agent done",
        debt: 0,
        reason: "settled",
    });
}

#[test]
fn an_update_alone_ends_and_settles_work_inside_a_turn() {
    check_drift(&Drift {
        file: "2.1.190-end-inside-a-turn-without-notification",
        replies: "message success 3",
        background: "b1shell00 shell done",
        debt: 0,
        reason: "settled",
    });
}

#[test]
fn a_real_woken_reply_at_resume_is_not_the_answer() {
    check_drift(&Drift {
        file: "2.1.190-resume-with-a-real-woken-reply",
        replies: "wakeup success 1, message success 1",
        background: "-",
        debt: 0,
        reason: "settled",
    });
    let bytes = read("drift/2.1.190-resume-with-a-real-woken-reply.jsonl");
    let first = bytes.windows(18).position(|at| at == b"task-notification\"".as_slice());
    let end = line_ends(&bytes).into_iter().find(|end| first.is_some_and(|first| *end > first)).unwrap();
    assert_eq!(fold_bytes(&bytes[..end]).verdict.reason, "no_result");
}

#[test]
fn an_api_error_is_one_whatever_its_terminal_reason_says() {
    let folded = check_drift(&Drift {
        file: "2.1.204-api-error-called-completed",
        replies: "message success! 1",
        background: "-",
        debt: 0,
        reason: "bad_request",
    });
    assert_eq!(folded.replies[0].terminal_reason.as_deref(), Some("completed"));
    assert_eq!(folded.outcome, Some(Ending::Failed));
}

#[test]
fn an_end_told_before_its_launch_counts() {
    check_drift(&Drift {
        file: "2.1.204-ends-before-the-launch-result",
        replies: "message success 2",
        background: "b1shell00 shell failed 3",
        debt: 0,
        reason: "settled",
    });
}

#[test]
fn a_held_run_with_life_cycles_is_woken_and_settled() {
    check_drift(&Drift {
        file: "2.1.212-held-run-with-lifecycle",
        replies: "message success 2, wakeup success 1",
        background: "b1shell00 shell done 0",
        debt: 0,
        reason: "settled",
    });
}

#[test]
fn an_empty_result_in_mid_process_is_no_answer_and_one_reply_settles_both() {
    check_drift(&Drift {
        file: "2.1.282-empty-result-in-mid-process",
        replies: "message success 3, empty success 0, wakeup success 1",
        background: "b1shell00 shell done 0, b2shell00 shell done 0",
        debt: 0,
        reason: "settled",
    });
}

// The same session by stream and by transcript.

/// What FACTS 11 leaves out of a transcript: how work ended at the agent's own exit. It still counts as running there.
const STOPPED_AT_EXIT: [&str; 3] =
    ["claude-2.1.231/d-shell-and-agent", "claude-2.1.231/d-walkaway", "claude-2.1.231/l-timeout-autobg"];

/// Sessions of two processes: the transcript holds both, a stream only one.
const RESUMED: &str = ".2-resume";

#[test]
fn a_stream_and_its_transcript_give_the_same_ledger() {
    let names = captures();
    let mut compared = 0;
    for name in names.iter().filter(|name| name.starts_with("claude-") && name.ends_with("/transcript.jsonl"))
    {
        let capture = name.strip_suffix("/transcript.jsonl").unwrap();
        let stream = format!("{capture}/stream.jsonl");
        let told = fold(name);
        let streamed = match capture.strip_suffix(RESUMED) {
            Some(base) => {
                let first = format!("{base}.1-walkaway/stream.jsonl");
                fold_run(&[&first, &stream], options())
            }
            None => fold(&stream),
        };
        let ledger = |folded: &Folded| (folded.launched, folded.settled, folded.debt);
        assert_eq!(ledger(&told), ledger(&streamed), "{capture}");
        // A transcript counts no turns and holds no EMPTY results.
        let replies = |folded: &Folded| -> Vec<_> {
            let real = folded.replies.iter().filter(|reply| reply.origin != ReplyOrigin::Empty);
            real.map(|reply| (reply.origin, reply.subtype.clone(), reply.is_error)).collect()
        };
        assert_eq!(replies(&told), replies(&streamed), "{capture}");
        let table = |folded: &Folded| -> Vec<_> {
            folded.background.iter().map(|work| (work.id.clone(), work.kind, work.exit, work.owed)).collect()
        };
        assert_eq!(table(&told), table(&streamed), "{capture}");
        let states =
            |folded: &Folded| -> Vec<State> { folded.background.iter().map(|work| work.state).collect() };
        if STOPPED_AT_EXIT.contains(&capture) {
            assert_eq!(states(&told).last(), Some(&State::Running), "{capture}");
            assert_eq!(states(&streamed).last(), Some(&State::Stopped), "{capture}");
        } else if capture.ends_with(RESUMED) {
            // The guess at resume is all the transcript has; between the two streams the process is known to be gone.
            assert!(!states(&told)[0].is_live() && !states(&streamed)[0].is_live(), "{capture}");
        } else {
            assert_eq!(states(&told), states(&streamed), "{capture}");
            assert_eq!(told.verdict, streamed.verdict, "{capture}");
        }
        compared += 1;
    }
    assert!(compared > 20, "only {compared} compared");
}

// What holds for all of them.

/// Returns where each line ends, the newline included.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect()
}

fn fold_bytes(bytes: &[u8]) -> Folded {
    let mut folder = Folder::new(options(), NOW);
    folder.feed(bytes);
    folder.finish()
}

#[track_caller]
fn check_done_is_true(what: &str, folded: &Folded) {
    assert_eq!(folded.launched, folded.settled + folded.debt, "{what}");
    // A launch that never came back is owed and has no row.
    assert!(folded.debt >= folded.background.iter().filter(|work| work.owed).count() as u64, "{what}");
    if folded.outcome != Some(Ending::Done) {
        return;
    }
    let last = |origin| folded.replies.iter().rfind(|reply| reply.origin == origin);
    // A result that is never printed is answered by the woken reply after it.
    let answer = last(ReplyOrigin::Message).or_else(|| last(ReplyOrigin::Wakeup));
    let clean = answer.is_some_and(|reply| !reply.is_error && reply.subtype == "success");
    assert!(clean && folded.debt == 0, "{what} claims success: {}", line(what, folded));
    assert!(folded.background.iter().all(|work| !work.state.is_live()), "{what}");
}

#[test]
fn no_capture_claims_a_success_that_is_none_however_early_it_breaks_off() {
    for name in captures() {
        let bytes = read(&name);
        for end in line_ends(&bytes) {
            check_done_is_true(&format!("{name} up to {end}"), &fold_bytes(&bytes[..end]));
        }
    }
}

/// An independent look at a stream: the last thing its main conversation did was to end a reply.
fn ends_with_a_result(bytes: &[u8]) -> bool {
    let main = |line: &Value| match line["type"].as_str() {
        Some("result") => Some(true),
        Some("assistant") => line["parent_tool_use_id"].is_null().then_some(false),
        Some("system") if line["subtype"] == "init" => Some(false),
        _ => None,
    };
    // The strict reader refuses half a surrogate pair, which no word here depends on.
    let text = String::from_utf8_lossy(bytes).replace("\\ud", "\\\\ud");
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.filter_map(|line: Value| main(&line)).next_back() == Some(true)
}

#[test]
fn a_stream_that_breaks_off_inside_a_reply_is_never_done() {
    let mut done = 0;
    for name in captures().iter().filter(|name| name.ends_with("stream.jsonl") || name.starts_with("drift/"))
    {
        let bytes = read(name);
        for end in line_ends(&bytes) {
            if fold_bytes(&bytes[..end]).outcome == Some(Ending::Done) {
                assert!(ends_with_a_result(&bytes[..end]), "{name} up to {end}");
                done += 1;
            }
        }
    }
    assert!(done > 50, "only {done} were done");
}

const SPLIT: [&str; 6] = [
    "claude-2.1.231/p-d-open/stream.jsonl",
    "claude-2.1.332/d-shell-and-agent/stream.jsonl",
    "claude-2.1.332/t-lone-surrogate/stream.jsonl",
    "claude-2.1.332/i-429-oauth/stream.jsonl",
    "claude-2.1.332/m-wakeup-open/transcript.jsonl",
    "interactive-2.1.332/s6-api-529/transcript.jsonl",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn how_the_bytes_are_cut_does_not_matter(
        which in 0..SPLIT.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        last_newline in any::<bool>(),
    ) {
        let mut bytes = read(SPLIT[which]);
        if !last_newline {
            bytes.pop();
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        let mut folder = Folder::new(options(), NOW);
        let mut from = 0;
        for cut in cuts {
            folder.feed(&bytes[from..cut]);
            from = cut;
        }
        folder.feed(&bytes[from..]);
        prop_assert_eq!(folder.finish(), fold_bytes(&bytes));
    }
}

#[test]
fn one_byte_at_a_time_gives_the_same_fold() {
    for name in SPLIT {
        let bytes = read(name);
        let mut folder = Folder::new(options(), NOW);
        for byte in &bytes {
            folder.feed(std::slice::from_ref(byte));
        }
        assert_eq!(folder.finish(), fold_bytes(&bytes), "{name}");
    }
}
