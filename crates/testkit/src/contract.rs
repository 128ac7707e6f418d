//! What every transport has to keep, as one suite: `contract!` makes a test of each behaviour for one host, so that
//! a failure reads `contract::local::exit_status_is_reported`.
//!
//! The host must be this machine, however it is reached, since the tests look at its processes and files. Each test
//! gets a host with a home and a state directory of its own, and waits for conditions, never for time to pass.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests, though the attribute is in the macro: whatever is not expected fails"
)]

pub mod finding;
pub mod following;
pub mod holding;
pub mod starting;
pub mod stopping;
pub mod writing;

use std::fmt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bursar_transport::{AttemptRef, AttemptStatus, FollowEvent, Follower, Holder, Host, StartSpec};
use tempfile::TempDir;

/// Longest wait for anything; a machine under load is slow, a hang is for ever.
pub const BOUND: Duration = Duration::from_secs(30);

/// A host for one test, and its private folders. Dropping it kills what the test left there.
pub struct Fixture {
    /// The host under test.
    pub holder: Holder,
    /// Everything of this test lies below it.
    pub root: TempDir,
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The folders a host has to be given: HOME, `XDG_STATE_HOME`, and what goes before its PATH.
#[derive(Debug)]
pub struct Folders {
    /// Deleted at the end of the test.
    pub root: TempDir,
}

impl Folders {
    /// Makes them, with a blank in the path: every script has to quote.
    #[must_use]
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("bursar contract ").tempdir().unwrap();
        for name in ["home", "state", "work", "bin"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    /// The variables to give to the host.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.root.path().join(name).to_str().unwrap().to_owned();
        let system = std::env::var("PATH").unwrap_or_default();
        vec![
            ("HOME".to_owned(), path("home")),
            ("XDG_STATE_HOME".to_owned(), path("state")),
            ("PATH".to_owned(), format!("{}:{system}", path("bin"))),
            ("SHELL".to_owned(), "/bin/sh".to_owned()),
        ]
    }

    /// Makes `sh`, and every other tool in `applets`, be `program` for the host.
    pub fn install(&self, program: &Path, applets: &[&str]) {
        for applet in applets {
            symlink(program, self.root.path().join("bin").join(applet)).unwrap();
        }
    }

    /// Finishes the fixture.
    pub fn with(self, host: Arc<dyn Host>) -> Fixture {
        Fixture { holder: Holder::new(host), root: self.root }
    }
}

impl Default for Folders {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns where a program of the test machine is; fails with the package that has it.
#[must_use]
#[track_caller]
pub fn required(program: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    let found = places.find(|place| place.is_file());
    found.unwrap_or_else(|| panic!("`{program}` is needed for this test; install the package `{package}`"))
}

impl Fixture {
    /// A fresh attempt of a fresh run.
    #[must_use]
    pub fn attempt(&self) -> AttemptRef {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        AttemptRef::new(&format!("run-{}-{n}", std::process::id()), 1).unwrap()
    }

    /// An attempt whose agent is a script of `sh`, with an open input.
    #[must_use]
    pub fn script(&self, script: &str) -> StartSpec {
        self.program(&["sh", "-c", script, "agent"])
    }

    /// An attempt whose agent is a program.
    #[must_use]
    pub fn program(&self, argv: &[&str]) -> StartSpec {
        let argv = argv.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        StartSpec::new(self.attempt(), argv, self.work().to_str().unwrap())
    }

    /// Where agents run.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The folder of an attempt on the host.
    #[must_use]
    pub fn folder(&self, at: &AttemptRef) -> PathBuf {
        self.root.path().join("state/bursar/runs").join(at.run.as_str()).join(at.attempt.to_string())
    }

    /// Starts an attempt and returns its process.
    pub async fn start(&self, spec: &StartSpec) -> u32 {
        bounded(self.holder.start(spec)).await.unwrap().pid.unwrap()
    }

    /// Starts an attempt, follows it to its end, and returns its output and its last event.
    pub async fn run(&self, spec: &StartSpec) -> (Vec<u8>, FollowEvent) {
        self.start(spec).await;
        self.follow(&spec.at, 0).await
    }

    /// Follows an attempt to its end.
    pub async fn follow(&self, at: &AttemptRef, from: u64) -> (Vec<u8>, FollowEvent) {
        bounded(async {
            let mut follower = self.holder.follow(at, from).await.unwrap();
            let mut output = Vec::new();
            let mut expected = from;
            loop {
                match follower.next().await.unwrap().expect("a last event") {
                    FollowEvent::CaughtUp => {}
                    FollowEvent::Output { offset, bytes } => {
                        assert_eq!(offset, expected, "a gap or a repetition");
                        expected += bytes.len() as u64;
                        output.extend_from_slice(&bytes);
                    }
                    last => {
                        assert!(follower.next().await.unwrap().is_none(), "an event after the last one");
                        return (output, last);
                    }
                }
            }
        })
        .await
    }

    /// The processes of the holder and the pump, read from the machine: holder first.
    #[must_use]
    pub fn holder_pid(&self, at: &AttemptRef) -> u32 {
        let text = std::fs::read_to_string(self.folder(at).join("pid")).unwrap();
        text.split(' ').nth(3).unwrap().parse().unwrap()
    }

    /// Waits until the agent has written a file below its working directory, and returns its text.
    pub async fn file(&self, name: &str) -> String {
        let path = self.work().join(name);
        until(name, || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))).await
    }

    /// Asks for the state of an attempt.
    pub async fn status(&self, at: &AttemptRef) -> AttemptStatus {
        bounded(self.holder.status(at)).await.unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // The path of the root is in the environment of all that the test started.
        let Some(root) = self.root.path().to_str().map(str::as_bytes) else { return };
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        for process in processes.flatten() {
            let Ok(environment) = std::fs::read(process.path().join("environ")) else { continue };
            if environment.windows(root.len()).any(|part| part == root) {
                kill(process.file_name().to_string_lossy().parse().unwrap_or_default(), "KILL");
            }
        }
    }
}

/// Sends a signal to one process.
pub fn kill(pid: u32, signal: &str) {
    if pid > 1 {
        let mut command = Command::new("kill");
        command.args(["-s", signal, &pid.to_string()]).stderr(Stdio::null());
        drop(command.status());
    }
}

/// Tells whether a process lives; a zombie does not.
#[must_use]
pub fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for a future, but not for ever.
#[track_caller]
pub fn bounded<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(BOUND, future).await {
            Ok(output) => output,
            Err(_) => panic!("no end within {BOUND:?} at {place}"),
        }
    }
}

/// Returns the next event of an attempt but for the one that says that it is caught up with.
pub async fn next(follower: &mut Follower) -> Option<FollowEvent> {
    loop {
        let event = bounded(follower.next()).await.unwrap();
        if event != Some(FollowEvent::CaughtUp) {
            return event;
        }
    }
}

/// Waits until `look` finds something.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes one test of each behaviour, in a module named after the host. `$fixture` is an
/// `async fn() -> Fixture`; with `only`, just the named groups.
#[macro_export]
macro_rules! contract {
    ($name:ident, $fixture:path) => {
        $crate::contract!($name, $fixture, only starting, following, writing, holding, stopping, finding);
    };
    ($name:ident, $fixture:path, only $($group:ident),+) => {
        mod $name {
            $( $crate::contract!(@$group $fixture); )+
        }
    };
    (@starting $fixture:path) => { $crate::contract!(@tests $fixture, starting:
        exit_status_is_reported, death_by_signal_is_reported_as_128_and_the_signal, output_keeps_every_byte,
        arguments_keep_every_byte, variables_keep_every_byte, a_directory_may_have_any_name, a_large_prompt_arrives_whole,
        the_agent_gets_the_environment_of_a_script, the_agent_may_be_interrupted, the_agent_has_its_own_session,
        nothing_secret_is_left_in_files, starting_eight_times_at_once_starts_one_process, starting_again_attaches,
        a_start_that_died_half_way_is_taken_over, a_session_has_one_living_agent, a_key_has_one_living_agent,
        a_missing_directory_is_refused, a_missing_agent_is_refused, an_agent_that_is_no_program_is_refused,
        a_read_only_home_is_refused, a_refused_start_may_be_repeated,
        a_start_cut_at_any_point_starts_nothing_and_may_be_repeated,
        a_start_that_hangs_in_the_middle_does_not_keep_others_out,
        a_start_whose_caller_is_gone_before_the_answer_runs_the_agent_all_the_same); };
    (@following $fixture:path) => { $crate::contract!(@tests $fixture, following:
        following_begins_at_any_offset, following_goes_on_after_a_cut, an_offset_beyond_the_spool_is_told,
        output_without_a_last_newline_arrives, fifty_megabytes_arrive, output_that_comes_slowly_arrives_at_once,
        output_of_a_child_after_the_exit_is_told_apart, a_folder_that_was_deleted_is_told,
        an_attempt_that_never_was_is_told, several_attempts_are_followed_by_one_process,
        a_slow_reader_loses_nothing, what_was_there_is_told_from_what_comes, a_dropped_follower_leaves_no_process); };
    (@writing $fixture:path) => { $crate::contract!(@tests $fixture, writing:
        input_stays_open_until_it_is_closed, an_append_that_is_repeated_counts_once, a_conflicting_append_is_told,
        two_appends_at_one_offset_give_one_entry, an_append_after_the_end_is_told, closing_gives_an_end_of_input,
        closing_is_idempotent, an_append_after_closing_is_told, an_agent_that_never_reads_does_not_block_us,
        large_entries_keep_every_byte); };
    (@holding $fixture:path) => { $crate::contract!(@tests $fixture, holding:
        a_killed_holder_leaves_a_living_agent, a_killed_holder_leaves_an_end_without_record,
        input_arrives_though_the_holder_was_killed, a_reboot_is_told, a_reused_pid_is_not_the_agent,
        an_interrupt_reaches_the_agent, a_signal_to_nobody_is_told, stderr_is_kept, nothing_of_ours_is_left_at_the_end); };
    (@stopping $fixture:path) => { $crate::contract!(@tests $fixture, stopping:
        closing_the_input_is_tried_first, an_agent_that_ignores_everything_is_killed,
        a_stop_reaches_a_grandchild_in_its_own_session, a_stop_reaches_survivors_of_an_agent_that_ended,
        stopping_what_is_gone_says_so, stopping_works_without_the_folder, a_stop_leaves_other_runs_alone); };
    (@finding $fixture:path) => { $crate::contract!(@tests $fixture, finding:
        a_survey_finds_orphans_and_not_itself, a_survey_finds_children_with_a_clean_environment,
        a_survey_opens_regular_files_only, a_survey_reads_the_end_of_a_huge_file, old_runs_are_removed_and_living_ones_kept,
        directories_are_told_apart, an_explicit_path_is_the_only_place, a_missing_program_names_the_places); };
    (@tests $fixture:path, $group:ident: $($test:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                $crate::contract::$group::$test($fixture().await).await;
            }
        )+
    };
}
