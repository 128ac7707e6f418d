//! Measures what the holder costs on this machine: `cargo run --release -p bursar-local --example latency [SH ARG...]`.

#![allow(clippy::print_stdout, reason = "a measuring tool")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bursar_local::LocalHost;
use bursar_transport::{AttemptRef, FollowEvent, Holder, StartSpec};

const ROUNDS: usize = 60;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let state = std::env::temp_dir().join(format!("bursar-latency-{}", std::process::id()));
    let mut host = LocalHost::new().env("XDG_STATE_HOME", &state);
    let shell: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some((program, args)) = shell.split_first() {
        host = host.shell(program, args.iter().cloned().chain(["-s".into()]));
    }
    let holder = Holder::new(Arc::new(host));
    let spec = |round: usize, program: &str| -> Result<StartSpec, Box<dyn Error>> {
        let mut spec =
            StartSpec::new(AttemptRef::new(&format!("r{program}{round}"), 1)?, vec![program.into()], "/");
        // About what the agent gets: some arguments, a PATH, a prompt.
        spec.argv.extend((0..16).map(|n| format!("--option-{n}").into_bytes()));
        spec.env.push(("PATH".to_owned(), std::env::var("PATH")?.into_bytes()));
        spec.input = vec![b'x'; 2000];
        Ok(spec)
    };

    let (mut start, mut whole) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let spec = spec(round, "true")?;
        let since = Instant::now();
        holder.start(&spec).await?;
        start.push(since.elapsed());
        let mut follower = holder.follow(&spec.at, 0).await?;
        while follower.next().await?.is_some() {}
        whole.push(since.elapsed());
    }
    show("start until the process exists", &mut start);
    show("start, follow and exit of `true`", &mut whole);

    let mut cat = spec(0, "cat")?;
    cat.argv.truncate(1);
    cat.input.clear();
    holder.start(&cat).await?;
    let mut follower = holder.follow(&cat.at, 0).await?;
    let mut length = 0;
    let (mut appends, mut echoes) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let since = Instant::now();
        length = holder.append(&cat.at, length, b"hello\n").await?.length;
        appends.push(since.elapsed());
        while !matches!(follower.next().await?, Some(FollowEvent::Output { .. })) {}
        echoes.push(since.elapsed());
        tokio::time::sleep(Duration::from_millis(37)).await;
    }
    show("append until it is in the journal", &mut appends);
    show("append until its echo is followed", &mut echoes);

    let mut surveys = Vec::new();
    for _ in 0..ROUNDS {
        let since = Instant::now();
        holder.survey(&cat.at.run, &[]).await?;
        surveys.push(since.elapsed());
    }
    show("survey", &mut surveys);
    let since = Instant::now();
    holder.stop(&cat.at, Duration::from_secs(5)).await?;
    println!("{:<36} {:>6.1} ms", "stop", since.elapsed().as_secs_f64() * 1e3);
    std::fs::remove_dir_all(&state)?;
    Ok(())
}

fn show(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{what:<36} {:>6.1} ms p50, {:>6.1} ms p90, {:>6.1} ms max", at(50), at(90), at(100));
}
