//! Terminals that are closed and processes that are stopped: the agent runs on, and all of it is seen later.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bursar_testkit::{AttemptScript, Reply, Shell};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::Winsize;

use crate::rig::{BOUND, Rig, Running, lives, pause, send, until};

/// A terminal with a program in it.
struct Terminal {
    child: Child,
    closed: Arc<AtomicBool>,
    screen: Arc<Mutex<Vec<u8>>>,
    watcher: JoinHandle<()>,
}

impl Terminal {
    /// Runs a command in the foreground of a new terminal.
    #[track_caller]
    fn run(command: &Command) -> Self {
        Self::of_width(command, 80)
    }

    #[track_caller]
    fn of_width(command: &Command, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = File::from(rustix::fs::open(&*name, flags, Mode::empty()).unwrap());
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        // A session of its own whose terminal this is: a call between fork and exec, which `setsid` makes for us.
        let mut inside = Command::new("setsid");
        inside.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.env("TERM", "xterm-256color");
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside.stdin(Stdio::from(slave.try_clone().unwrap())).stdout(Stdio::from(slave.try_clone().unwrap()));
        let child = inside.stderr(Stdio::from(slave)).spawn().unwrap();
        let closed = Arc::new(AtomicBool::new(false));
        let screen = Arc::new(Mutex::new(Vec::new()));
        let watcher = std::thread::spawn({
            let (closed, screen) = (Arc::clone(&closed), Arc::clone(&screen));
            move || watch(master, &closed, &screen)
        });
        // The command holds the slave's last descriptors of this process.
        drop(inside);
        Self { child, closed, screen, watcher }
    }

    /// Waits until this is on the screen.
    #[track_caller]
    fn shows(&self, text: &str) {
        until(text, || String::from_utf8_lossy(&self.screen.lock().unwrap()).contains(text));
    }

    /// Closes the terminal as a window is closed, and waits for the program to leave. Returns what was on the screen.
    #[track_caller]
    fn close(mut self) -> String {
        self.closed.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap();
        let screen = String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned();
        let due = Instant::now() + BOUND;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > due {
                self.child.kill().unwrap();
                panic!("it stays though its terminal is closed:\n{screen}");
            }
            pause();
        }
        screen
    }
}

/// Reads a terminal until it is closed, by us or by the end of what runs in it.
fn watch(master: OwnedFd, closed: &AtomicBool, screen: &Mutex<Vec<u8>>) {
    rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
    let mut master = File::from(master);
    let mut buffer = [0; 4096];
    while !closed.load(Ordering::Relaxed) {
        match master.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => screen.lock().unwrap().extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => pause(),
            // Nobody has the other end open: not yet, or not any more.
            Err(_) => pause(),
        }
    }
}

fn three_parts() -> AttemptScript {
    let reply = Reply::new().text("one").touch("begun").await_file("go").text("two").touch("further");
    let shell = Shell::new("b1", "sleep 1; echo built > built");
    AttemptScript::new().reply(reply.await_file("on").launch(shell).text("three").success())
}

/// Returns a command for a run as people start it.
fn by_hand(rig: &Rig) -> Command {
    let mut command = rig.bursar(&["run", "--agent-path"]);
    command.arg(rig.agent.path()).arg("build");
    command
}

#[test]
fn a_closed_terminal_leaves_the_agent_running_and_attach_shows_all_of_it() {
    let rig = Rig::new(three_parts());
    let terminal = Terminal::run(&by_hand(&rig));
    rig.wait_for("begun");
    let run = rig.only_run();
    terminal.shows("one");
    let screen = terminal.close();
    assert!(screen.contains("one"), "{screen}");
    assert!(lives(rig.agent_pids()[0]));

    // A second terminal is closed in the middle as well.
    let second = Terminal::run(&rig.bursar(&["attach", &run]));
    rig.agent.release("go").unwrap();
    rig.wait_for("further");
    second.shows("two");
    let screen = second.close();
    assert!(screen.contains("one") && screen.contains("two"), "{screen}");
    assert!(lives(rig.agent_pids()[0]));

    rig.agent.release("on").unwrap();
    let ran = rig.attach(&run);
    ran.finished("done", 0);
    let texts: Vec<_> = ran.events("text").into_iter().map(|record| record["text"].clone()).collect();
    assert_eq!(texts, ["one", "two", "three", "woken"], "{ran}");
    assert_eq!(rig.agent.starts().unwrap(), 1);
    assert!(rig.home.work().join("built").exists());
    rig.assert_nothing_left();
}

#[test]
fn a_terminal_of_any_width_is_respected_and_so_is_no_color() {
    for (columns, colour) in [(200, true), (20, false), (1, true)] {
        let rig = Rig::new(three_parts());
        let mut command = by_hand(&rig);
        command.env("NO_COLOR", if colour { "" } else { "1" });
        let mut terminal = Terminal::of_width(&command, columns);
        rig.wait_for("begun");
        // The live view stands by then.
        terminal.shows("one");
        rig.agent.release("go").unwrap();
        rig.agent.release("on").unwrap();
        let due = Instant::now() + BOUND;
        let status = loop {
            if let Some(status) = terminal.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < due, "it does not end at {columns} columns");
            pause();
        };
        let screen = terminal.close();
        assert_eq!(status.code(), Some(0), "{columns} columns: {screen}");
        assert!(screen.contains("three"), "{columns} columns: {screen}");
        let painted = ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[3"].iter().any(|code| screen.contains(code));
        assert_eq!(painted, colour, "{columns} columns: {screen:?}");
    }
}

#[test]
fn a_run_whose_terminal_was_closed_is_finished_though_nobody_attaches() {
    let rig = Rig::new(three_parts());
    let terminal = Terminal::run(&by_hand(&rig));
    rig.wait_for("begun");
    terminal.close();
    rig.agent.release("go").unwrap();
    rig.agent.release("on").unwrap();
    until("the end", || rig.runs()[0]["outcome"] == "done");
    rig.assert_nothing_left();
}

#[test]
fn a_hang_up_without_a_terminal_hands_the_run_over() {
    let rig = Rig::new(three_parts());
    let (running, run) = rig.run_until(&[], "build", "begun");
    running.signal(Signal::HUP);
    running.ended().complains(6, &["left run", &run, "bursar attach", "bursar stop"]);
    // The background driver is hung up on as well, and does not mind.
    until("a driver", || rig.runs()[0]["driven"] == true);
    for folder in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(folder.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        if command.contains("--background") && command.contains(&run) {
            send(folder.file_name().to_string_lossy().parse().unwrap(), Signal::HUP);
        }
    }
    rig.agent.release("go").unwrap();
    rig.agent.release("on").unwrap();
    rig.attach(&run).finished("done", 0);
}

#[test]
fn a_process_that_slept_goes_on_as_if_nothing_was() {
    let rig = Rig::new(three_parts());
    let (running, run) = rig.run_until(&[], "build", "begun");
    running.signal(Signal::STOP);
    rig.agent.release("go").unwrap();
    rig.agent.release("on").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    running.signal(Signal::CONT);
    let ran = running.ended();
    let finished = ran.finished("done", 0);
    assert_eq!(finished["nudges"]["used"], 0, "{ran}");
    rig.assert_mirrored(&run, 1);
    assert_eq!(rig.agent.messages().unwrap().len(), 1);
}

#[test]
fn time_that_passed_while_nobody_looked_is_not_held_against_the_agent() {
    // The hold of a run is short, and its background work ends well within it while bursar sleeps past its end.
    let shell = Shell::new("b1", "sleep 1; echo built > built");
    let reply = Reply::new().text("one").launch(shell).text("it builds").success();
    let rig = Rig::new(AttemptScript::new().reply(reply));
    let running = Running::start(rig.run_command(&["--hold", "3s"]).arg("build"));
    until("the hold", || {
        let shown = rig.runs();
        shown.first().is_some_and(|run| run["phase"] == "waiting")
    });
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(4));
    running.signal(Signal::CONT);
    let ran = running.ended();
    let finished = ran.finished("done", 0);
    assert_eq!(finished["nudges"]["used"], 0, "{ran}");
    assert_eq!(rig.agent.messages().unwrap().len(), 1);
}

#[test]
fn time_that_passed_while_bursar_was_dead_is_not_held_against_the_agent() {
    let shell = Shell::new("b1", "sleep 1; echo built > built");
    let reply = Reply::new().text("one").launch(shell).text("it builds").success();
    let rig = Rig::new(AttemptScript::new().reply(reply));
    let running = Running::start(rig.run_command(&["--hold", "3s"]).arg("build"));
    until("the hold", || {
        let shown = rig.runs();
        shown.first().is_some_and(|run| run["phase"] == "waiting")
    });
    running.kill();
    std::thread::sleep(Duration::from_secs(4));
    let ran = rig.attach(&rig.only_run());
    let finished = ran.finished("done", 0);
    assert_eq!(finished["nudges"]["used"], 0, "{ran}");
    assert_eq!(rig.agent.messages().unwrap().len(), 1);
}
