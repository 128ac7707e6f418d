//! What a run costs beside its agent.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bursar_testkit::{AgentScript, AttemptScript, Reply, ScriptedAgent, Shell, processes};

use super::measure::{median, release, ticks, wall};
use super::{Figure, Figures};

const ROUNDS: usize = 21;
/// How long a held run is watched.
const WATCHED: Duration = Duration::from_secs(10);

/// `bursar run` of an agent that answers at once, against the agent alone.
pub(super) fn overhead() -> Figures {
    let bursar = release("bursar", "bursar")?;
    let binary = release("bursar-testkit", "bursar-scripted-agent")?;
    let script = AgentScript::new(AttemptScript::new().reply(Reply::new().text("done").success()));
    let agent = ScriptedAgent::new(&script)?;
    let folder = tempfile::tempdir()?;
    let script_file = folder.path().join("script.json");
    std::fs::write(&script_file, serde_json::to_vec(&script)?)?;
    let sealed = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", folder.path());
        command.env("BURSAR_AGENT_SCRIPT", &script_file).current_dir(folder.path()).stdin(Stdio::null());
        command
    };
    drop(agent);
    let mut differences = Vec::new();
    for _ in 0..ROUNDS {
        let mut alone = sealed(&binary);
        alone.args(["-p", "--output-format", "stream-json", "--verbose"]);
        let prompt = folder.path().join("prompt");
        std::fs::write(&prompt, "hello")?;
        alone.stdin(std::fs::File::open(&prompt)?);
        let alone = wall(&mut alone)?;
        let mut run = sealed(&bursar);
        run.args(["run", "--output", "json", "--agent-path"]).arg(&binary).arg("hello");
        let through = wall(&mut run)?;
        differences.push(through.as_secs_f64() * 1000.0 - alone.as_secs_f64() * 1000.0);
    }
    let more = median(differences).ok_or("nothing was measured")?;
    Ok(vec![Figure {
        what: "`bursar run` of an agent that answers at once, beyond the agent itself",
        measured: format!("{more:.0} ms"),
        promised: "at most 60 ms",
        kept: more <= 60.0,
    }])
}

/// Processor time of everything bursar runs while it holds for a background shell.
pub(super) fn idle() -> Figures {
    let bursar = release("bursar", "bursar")?;
    let script = AgentScript::new(
        AttemptScript::new()
            .reply(Reply::new().launch(Shell::new("b1", "sleep 60")).text("I wait").success()),
    );
    let agent = ScriptedAgent::new(&script)?;
    let home = tempfile::tempdir()?;
    let mut command = Command::new(&bursar);
    command.args(["run", "--output", "ndjson", "--agent-path"]).arg(agent.path()).arg("hello");
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home.path());
    command.current_dir(agent.folder()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn()?;
    let marked = || processes::marked(&home.path().to_string_lossy());
    let held = wait_until(Duration::from_secs(20), || marked().len() >= 4);
    // What starts and settles is not idle yet.
    std::thread::sleep(Duration::from_secs(2));
    let used = || -> u64 { marked().into_iter().filter_map(|pid| u32::try_from(pid).ok()).map(ticks).sum() };
    let before = used();
    std::thread::sleep(WATCHED);
    let after = used();
    let stopped = Command::new(&bursar)
        .args(["ls", "--output", "json"])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output();
    run.kill()?;
    run.wait()?;
    for pid in marked() {
        let _already_gone = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    stopped?;
    if !held {
        return Err("the run was not held within 20 s".into());
    }
    let percent = after.saturating_sub(before) as f64 / (WATCHED.as_secs_f64() * 100.0) * 100.0;
    Ok(vec![Figure {
        what: "processor time of a held run, bursar and all its helpers on the host",
        measured: format!("{percent:.1} % of a core"),
        promised: "about 0: at most 1 %",
        kept: percent <= 1.0,
    }])
}

/// Hundreds of tests start the scripted agent; what it costs is added to each.
pub(super) fn scripted_agent_start() -> Figures {
    let binary = release("bursar-testkit", "bursar-scripted-agent")?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        Command::new(&binary).arg("--version").output()?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let middle = median(times).ok_or("nothing was measured")?;
    Ok(vec![Figure {
        what: "start of the scripted agent",
        measured: format!("{middle:.1} ms"),
        promised: "at most 5 ms",
        kept: middle <= 5.0,
    }])
}

fn wait_until(within: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + within;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
