//! Starting: exactly once, with every byte of what was given, or not at all and for a stated reason.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bursar_transport::{BoxFuture, FollowEvent, Holder, Host, HostError, Name, Shell, StartError, StartSpec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Fixture, bounded, kill, lives, until};

/// Bytes that some shell, somewhere, treats in a special way.
const ODD: &[&[u8]] = &[
    b"",
    b"plain",
    b"two words",
    b"'\"`$HOME`$(id)\\n\\\\0101%s%%",
    b"-n",
    b"--",
    b"*",
    b"~",
    b"\n",
    b"ends with newlines\n\n",
    b"\n\nbegins with them",
    b"tab\tcr\r",
    "caf\u{e9} \u{1f600} \u{65e5}".as_bytes(),
    b"\x01\x7f\x80\x81\x82\x88\xfe\xff",
    b"a=b c=d",
    b"EOF\nBURSAR_HOLDER\n}\nexit\n",
];

#[track_caller]
fn status(last: &FollowEvent) -> i32 {
    match last {
        FollowEvent::Exited(record) => record.status,
        other => panic!("not an exit: {other:?}"),
    }
}

pub async fn exit_status_is_reported(fixture: Fixture) {
    for code in [0, 1, 3, 126, 127, 255] {
        let (_, last) = fixture.run(&fixture.script(&format!("exit {code}"))).await;
        assert_eq!(status(&last), code);
    }
}

pub async fn death_by_signal_is_reported_as_128_and_the_signal(fixture: Fixture) {
    let (_, last) = fixture.run(&fixture.script("kill -9 $$")).await;
    assert_eq!(status(&last), 137);
    let (_, last) = fixture.run(&fixture.script("kill -15 $$")).await;
    assert_eq!(status(&last), 143);
}

pub async fn output_keeps_every_byte(fixture: Fixture) {
    let every: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let mut spec = fixture.program(&["cat"]);
    spec.input.clone_from(&every);
    spec.close_after_input = true;
    let (output, last) = fixture.run(&spec).await;
    assert_eq!(output, every);
    assert_eq!(status(&last), 0);
}

pub async fn arguments_keep_every_byte(fixture: Fixture) {
    let all: Vec<u8> = (1..=255).collect();
    let mut spec = fixture.script("for a in \"$@\"; do printf '%s\\000' \"$a\"; done");
    spec.argv.extend(ODD.iter().map(|argument| argument.to_vec()));
    spec.argv.push(all.clone());
    spec.argv.push(vec![b'x'; 100_000]);
    let (output, _) = fixture.run(&spec).await;
    let mut expected: Vec<&[u8]> = ODD.to_vec();
    let long = vec![b'x'; 100_000];
    expected.push(&all);
    expected.push(&long);
    let got: Vec<&[u8]> = output.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0).collect();
    assert_eq!(got, expected);
}

pub async fn variables_keep_every_byte(fixture: Fixture) {
    let all: Vec<u8> = (1..=255).collect();
    let mut spec = fixture.program(&["env", "-0"]);
    for (at, value) in ODD.iter().chain([&&all[..]]).enumerate() {
        spec.env.push((format!("ODD_{at}"), value.to_vec()));
    }
    // Names a script might use for itself.
    for name in ["V", "M", "D", "n", "e", "l", "P", "PS4", "ENV", "CDPATH", "_x"] {
        spec.env.push((name.to_owned(), format!("7{name}").into_bytes()));
    }
    let (output, _) = fixture.run(&spec).await;
    let got: BTreeSet<&[u8]> = output.split(|byte| *byte == 0).collect();
    for (name, value) in &spec.env {
        let mut pair = format!("{name}=").into_bytes();
        pair.extend_from_slice(value);
        assert!(got.contains(&pair[..]), "{name}: {:?}", String::from_utf8_lossy(&output));
    }
    let run = format!("BURSAR_RUN={}", spec.at.run);
    assert!(got.contains(run.as_bytes()) && got.contains(&b"BURSAR_ATTEMPT=1"[..]));
}

pub async fn a_directory_may_have_any_name(fixture: Fixture) {
    for name in ["a b", "-", "$HOME", "new\nline\n", "caf\u{e9}'\"", "*"] {
        let folder = fixture.work().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("here"), "yes").unwrap();
        let mut spec = fixture.program(&["cat", "here"]);
        spec.cwd = folder.to_str().unwrap().into();
        let (output, _) = fixture.run(&spec).await;
        assert_eq!(output, b"yes", "{name:?}");
    }
}

pub async fn a_large_prompt_arrives_whole(fixture: Fixture) {
    let mut spec = fixture.program(&["cat"]);
    spec.input = (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    spec.close_after_input = true;
    let (output, last) = fixture.run(&spec).await;
    assert!(output == spec.input, "{} bytes of {}", output.len(), spec.input.len());
    assert_eq!(status(&last), 0);
}

pub async fn the_agent_gets_the_environment_of_a_script(fixture: Fixture) {
    let (output, _) = fixture.run(&fixture.script("umask; printf '%s\\n' \"$HOME\"; pwd")).await;
    let text = String::from_utf8(output).unwrap();
    let home = fixture.root.path().join("home");
    let (mask, rest) = text.split_once('\n').unwrap();
    assert_eq!(mask.parse::<u32>().unwrap(), umask());
    assert_eq!(rest, format!("{}\n{}\n", home.display(), fixture.work().display()));
}

fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    line.trim().parse().unwrap()
}

pub async fn the_agent_may_be_interrupted(fixture: Fixture) {
    // A shell sets these to be ignored in what it starts in the background, and nobody can undo that.
    let (output, _) = fixture.run(&fixture.program(&["grep", "SigIgn", "/proc/self/status"])).await;
    let text = String::from_utf8(output).unwrap();
    let mask = u64::from_str_radix(text.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    let bit = |signal: u32| mask >> (signal - 1) & 1;
    assert_eq!([1, 2, 3, 13, 15].map(bit), [0; 5], "{text}");
}

pub async fn the_agent_has_its_own_session(fixture: Fixture) {
    let mut spec = fixture.script("read -r line");
    spec.close_after_input = false;
    let pid = fixture.start(&spec).await;
    // It is the agent's process from the start, and makes its session before it becomes the agent.
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = || -> Vec<String> {
        stat().rsplit_once(") ").unwrap().1.split(' ').skip(2).take(3).map(str::to_owned).collect()
    };
    let own = [pid.to_string(), pid.to_string(), "0".to_owned()];
    until("its own group and session, and no terminal", || (fields() == own).then_some(())).await;
}

pub async fn nothing_secret_is_left_in_files(fixture: Fixture) {
    let mut spec = fixture.script("echo ready; read -r line");
    spec.env.push(("TOKEN".to_owned(), b"hunter2-hunter2".to_vec()));
    fixture.start(&spec).await;
    let folder = fixture.folder(&spec.at);
    let mut seen = 0;
    let mut folders = vec![fixture.root.path().join("state"), fixture.root.path().join("home")];
    while let Some(path) = folders.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert!(mode == 0o700 || !path.starts_with(folder.parent().unwrap()), "{mode:o} {}", path.display());
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                seen += 1;
                let bytes = fs::read(entry.path()).unwrap();
                assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{}", entry.path().display());
                assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
    }
    assert!(seen >= 2);
}

pub async fn starting_eight_times_at_once_starts_one_process(fixture: Fixture) {
    let mut spec = fixture.script("echo $$ >>pids; cat >/dev/null");
    spec.input = b"first\n".to_vec();
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let (holder, spec) = (fixture.holder.clone(), spec.clone());
            tokio::spawn(async move { bounded(holder.start(&spec)).await })
        })
        .collect();
    let mut pids = BTreeSet::new();
    let mut fresh = 0;
    for start in starts {
        let started = start.await.unwrap().unwrap();
        pids.insert(started.pid.unwrap());
        fresh += u32::from(!started.attached);
    }
    assert_eq!((pids.len(), fresh), (1, 1), "{pids:?}");
    let text = fixture.file("pids").await;
    assert_eq!(text.trim(), pids.first().unwrap().to_string());
    let staged = fs::read_dir(fixture.folder(&spec.at).join("in")).unwrap().count();
    assert_eq!(staged, 2, "the losers' input is removed");
}

pub async fn starting_again_attaches(fixture: Fixture) {
    let mut spec = fixture.script("read -r line; echo \"$line\"");
    let pid = fixture.start(&spec).await;
    spec.argv = vec![b"false".to_vec()];
    let again = bounded(fixture.holder.start(&spec)).await.unwrap();
    assert_eq!((again.pid, again.attached), (Some(pid), true));
    bounded(fixture.holder.append(&spec.at, 0, b"hello\n")).await.unwrap();
    assert_eq!(fixture.follow(&spec.at, 0).await.0, b"hello\n");
    // After its end as well: an attempt runs once.
    let again = bounded(fixture.holder.start(&spec)).await.unwrap();
    assert_eq!((again.pid, again.attached), (Some(pid), true));
}

pub async fn a_start_that_died_half_way_is_taken_over(fixture: Fixture) {
    let mut spec = fixture.script("cat");
    spec.input = b"mine".to_vec();
    spec.close_after_input = true;
    let folder = fixture.folder(&spec.at);
    fs::create_dir_all(folder.join("in")).unwrap();
    // A holder of an earlier boot, then one that is dead, and what the dead one had prepared.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    symlink("1:1:another-boot", folder.join("lock.1")).unwrap();
    symlink(format!("1999999999:5:{}", boot.trim()), folder.join("lock.2")).unwrap();
    symlink("d.3.stale", folder.join("in/0")).unwrap();
    let (output, _) = fixture.run(&spec).await;
    assert_eq!(output, b"mine");
    assert!(folder.join("lock.3").is_symlink());
}

async fn one_living_agent(
    fixture: Fixture,
    set: impl Fn(&mut StartSpec),
    busy: impl Fn(StartError) -> (bursar_transport::AttemptRef, Option<u32>),
) {
    let mut first = fixture.script("read -r line");
    set(&mut first);
    let pid = fixture.start(&first).await;
    let mut second = fixture.script("echo second");
    set(&mut second);
    let error = bounded(fixture.holder.start(&second)).await.unwrap_err();
    assert_eq!(busy(error), (first.at.clone(), Some(pid)));
    // Even when nobody watches over the first one any more.
    kill(fixture.holder_pid(&first.at), "KILL");
    let error = bounded(fixture.holder.start(&second)).await.unwrap_err();
    assert_eq!(busy(error), (first.at.clone(), Some(pid)));
    kill(pid, "KILL");
    until("the end of the first", || (!lives(pid)).then_some(())).await;
    assert_eq!(fixture.run(&second).await.0, b"second\n");
    // And the next attempt of the same run.
    second.at.attempt = 2;
    assert_eq!(fixture.run(&second).await.0, b"second\n");
}

pub async fn a_session_has_one_living_agent(fixture: Fixture) {
    let set = |spec: &mut StartSpec| spec.session = Some(Name::try_from("018f-session").unwrap());
    one_living_agent(fixture, set, |error| match error {
        StartError::SessionBusy { by, pid } => (by, pid),
        other => panic!("{other:?}"),
    })
    .await;
}

pub async fn a_key_has_one_living_agent(fixture: Fixture) {
    let set = |spec: &mut StartSpec| spec.key = Some(Name::encoded("card/12 \u{e9}".as_bytes()));
    one_living_agent(fixture, set, |error| match error {
        StartError::KeyBusy { by, pid } => (by, pid),
        other => panic!("{other:?}"),
    })
    .await;
}

#[track_caller]
fn untouched(fixture: &Fixture, spec: &StartSpec) {
    assert!(!fixture.folder(&spec.at).join("pid").exists(), "something was started");
}

pub async fn a_missing_directory_is_refused(fixture: Fixture) {
    let mut spec = fixture.script("true");
    for name in ["nowhere", "file"] {
        fs::write(fixture.work().join("file"), "").unwrap();
        spec.cwd = fixture.work().join(name).to_str().unwrap().into();
        let error = bounded(fixture.holder.start(&spec)).await.unwrap_err();
        assert!(matches!(&error, StartError::NoSuchDirectory { path } if *path == spec.cwd), "{error:?}");
        untouched(&fixture, &spec);
    }
}

pub async fn a_missing_agent_is_refused(fixture: Fixture) {
    let path = fixture.work().join("no such agent");
    for program in ["no-such-agent", path.to_str().unwrap()] {
        let spec = fixture.program(&[program]);
        let error = bounded(fixture.holder.start(&spec)).await.unwrap_err();
        assert!(
            matches!(&error, StartError::AgentNotFound { program: p } if p == program.as_bytes()),
            "{error:?}"
        );
        untouched(&fixture, &spec);
    }
}

pub async fn an_agent_that_is_no_program_is_refused(fixture: Fixture) {
    let file = fixture.work().join("agent");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let work = fixture.work();
    let mut by_name = fixture.program(&["agent"]);
    by_name.env.push(("PATH".to_owned(), work.to_str().unwrap().into()));
    for spec in
        [fixture.program(&[file.to_str().unwrap()]), fixture.program(&[work.to_str().unwrap()]), by_name]
    {
        let error = bounded(fixture.holder.start(&spec)).await.unwrap_err();
        assert!(matches!(error, StartError::AgentNotExecutable { .. }), "{error:?}");
        untouched(&fixture, &spec);
    }
}

pub async fn a_read_only_home_is_refused(fixture: Fixture) {
    // Root may write anywhere, so a file stands in the way instead of a permission.
    let state = fixture.root.path().join("state");
    fs::remove_dir_all(&state).unwrap();
    fs::write(&state, "").unwrap();
    let mut spec = fixture.script("echo started >started");
    spec.input = vec![b'x'; 1_000_000];
    let error = bounded(fixture.holder.start(&spec)).await.unwrap_err();
    assert!(matches!(error, StartError::ReadOnlyHome { .. }), "{error:?}");
    assert!(!fixture.work().join("started").exists());
}

pub async fn a_refused_start_may_be_repeated(fixture: Fixture) {
    let mut spec = fixture.script("echo yes");
    let there = std::mem::replace(&mut spec.cwd, fixture.work().join("later").to_str().unwrap().into());
    bounded(fixture.holder.start(&spec)).await.unwrap_err();
    spec.cwd = there;
    assert_eq!(fixture.run(&spec).await.0, b"yes\n");
}

/// A host whose connection dies after so many bytes of payload: what is sent later is lost. Either the end of
/// stdin is seen on the host, or, as when a laptop falls asleep, nothing at all.
#[derive(Debug)]
struct Cut {
    host: std::sync::Arc<dyn Host>,
    after: usize,
    silently: bool,
}

impl Host for Cut {
    fn name(&self) -> &'static str {
        "cut"
    }

    fn transport(&self) -> &'static str {
        self.host.transport()
    }

    fn open(&self, script: bytes::Bytes) -> BoxFuture<'_, Result<Shell, HostError>> {
        Box::pin(async move {
            let mut shell = self.host.open(script).await?;
            shell.stdin =
                Box::new(CutWriter { inner: shell.stdin, left: self.after, silently: self.silently });
            Ok(shell)
        })
    }
}

struct CutWriter {
    inner: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    left: usize,
    silently: bool,
}

impl AsyncWrite for CutWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let n = bytes.len().min(self.left);
        if n == 0 {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &bytes[..n]))?;
        self.left -= written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.silently {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

pub async fn a_start_cut_at_any_point_starts_nothing_and_may_be_repeated(fixture: Fixture) {
    let mut spec = fixture.script("cat >>got; echo >>got");
    spec.input = vec![b'i'; 3000];
    spec.close_after_input = true;
    spec.env.push(("SOME".to_owned(), b"value".to_vec()));
    for after in [0, 5, 40, 150, 250, 400, 2000, 3000] {
        spec.at.attempt += 1;
        let host = fixture.holder.host().clone();
        let cut = Holder::new(std::sync::Arc::new(Cut { host, after, silently: false }));
        let error = bounded(cut.start(&spec)).await.unwrap_err();
        assert!(matches!(error, StartError::Host(_)), "{after}: {error:?}");
        untouched(&fixture, &spec);
        assert!(!bounded(fixture.holder.start(&spec)).await.unwrap().attached);
        fixture.follow(&spec.at, 0).await;
        let got = fs::read(fixture.work().join("got")).unwrap();
        assert!(got.len() == 3001, "{after}: {} bytes", got.len());
        fs::remove_file(fixture.work().join("got")).unwrap();
    }
}

pub async fn a_start_that_hangs_in_the_middle_does_not_keep_others_out(fixture: Fixture) {
    let mut spec = fixture.script("cat");
    spec.input = vec![b'i'; 3000];
    spec.close_after_input = true;
    for after in [0, 40, 150, 2000] {
        spec.at.attempt += 1;
        let host = fixture.holder.host().clone();
        let cut = Holder::new(std::sync::Arc::new(Cut { host, after, silently: true }));
        let hanging = spec.clone();
        let hanging = tokio::spawn(async move { cut.start(&hanging).await });
        let (output, _) = fixture.run(&spec).await;
        assert!(output == spec.input);
        assert!(!hanging.is_finished());
        hanging.abort();
    }
}

/// A host whose caller dies once the script runs: from then on nobody reads its answers.
#[derive(Debug)]
struct Deaf {
    host: std::sync::Arc<dyn Host>,
}

impl Host for Deaf {
    fn name(&self) -> &'static str {
        "deaf"
    }

    fn transport(&self) -> &'static str {
        self.host.transport()
    }

    fn open(&self, script: bytes::Bytes) -> BoxFuture<'_, Result<Shell, HostError>> {
        Box::pin(async move {
            let mut shell = self.host.open(script).await?;
            shell.stdout = Box::new(DeafReader { inner: Some(shell.stdout), heard: Vec::new() });
            Ok(shell)
        })
    }
}

/// Reads up to the word that says that the script runs, and lets go of the stream then.
struct DeafReader {
    inner: Option<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    heard: Vec<u8>,
}

impl AsyncRead for DeafReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(inner) = self.inner.as_mut() else { return Poll::Pending };
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(cx, buffer))?;
        let read = buffer.filled()[before..].to_vec();
        self.heard.extend(read);
        if self.heard.windows(7).any(|word| word == b" ready\n") {
            self.inner = None;
        }
        Poll::Ready(Ok(()))
    }
}

pub async fn a_start_whose_caller_is_gone_before_the_answer_runs_the_agent_all_the_same(fixture: Fixture) {
    let mut spec = fixture.script("echo yes");
    // Several times, since who is first, the answer or the end of its reader, is a matter of luck.
    for _ in 0..10 {
        spec.at.attempt += 1;
        let deaf = Holder::new(std::sync::Arc::new(Deaf { host: fixture.holder.host().clone() }));
        let unheard = spec.clone();
        let waiting = tokio::spawn(async move { deaf.start(&unheard).await });
        until("the record", || fs::read(fixture.folder(&spec.at).join("exit")).ok()).await;
        waiting.abort();
        assert!(bounded(fixture.holder.start(&spec)).await.unwrap().attached);
        let (output, last) = fixture.follow(&spec.at, 0).await;
        assert!(matches!(&last, FollowEvent::Exited(record) if record.status == 0), "{last:?}");
        assert_eq!(output, b"yes\n");
    }
}
