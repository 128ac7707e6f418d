//! Looking around on a host: processes, output files, old runs, directories, programs.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use bursar_transport::{DirectoryState, FindError, OutputFile};

use super::{Fixture, bounded};

pub async fn a_survey_finds_orphans_and_not_itself(fixture: Fixture) {
    let spec = fixture.script(
        "nohup sh -c 'echo $$ >nohup; while :; do sleep 0.1; done' >/dev/null 2>&1 &
         setsid sh -c 'echo $$ >setsid; while :; do sleep 0.1; done' &
         sh -c 'echo $$ >child; exec sleep 1000' & while read -r line; do :; done; exit 0",
    );
    let agent = fixture.start(&spec).await;
    let mut pids = Vec::new();
    for name in ["nohup", "setsid", "child"] {
        pids.push(fixture.file(name).await.trim().parse::<u32>().unwrap());
    }
    let survey = bounded(fixture.holder.survey(&spec.at.run, &[])).await.unwrap();
    let of = |pid: u32| survey.processes.iter().find(|process| process.pid == pid);
    let found = of(agent).unwrap();
    assert!(found.is_agent && found.in_holder && !found.under_agent, "{found:?}");
    assert_eq!(found.ppid, fixture.holder_pid(&spec.at));
    for pid in &pids {
        let found = of(*pid).unwrap();
        assert!(found.under_agent && !found.is_agent, "{found:?}");
        assert!(found.age.unwrap() < Duration::from_secs(100));
    }
    let sleep = of(pids[2]).unwrap();
    assert_eq!(sleep.command_line(), b"sleep 1000");
    let holder = fixture.holder_pid(&spec.at);
    let known: Vec<u32> = pids.iter().copied().chain([agent]).collect();
    for process in &survey.processes {
        // Besides those, only the short sleeps of the two loops; no searcher, no holder, no pump.
        let sleep = process.command_line() == b"sleep 0.1" || pids.contains(&process.ppid);
        assert!(process.pid != holder && (known.contains(&process.pid) || sleep), "{process:?}");
    }

    bounded(fixture.holder.close_input(&spec.at, 0)).await.unwrap();
    fixture.follow(&spec.at, 0).await;
    let survey = bounded(fixture.holder.survey(&spec.at.run, &[])).await.unwrap();
    for pid in pids {
        let found = survey.processes.iter().find(|process| process.pid == pid).unwrap();
        assert!(!found.under_agent && !found.in_holder && !found.is_agent, "{found:?}");
    }
    bounded(fixture.holder.stop(&spec.at, Duration::ZERO)).await.unwrap();
    let survey = bounded(fixture.holder.survey(&spec.at.run, &[])).await.unwrap();
    assert_eq!(survey.processes, []);
}

pub async fn a_survey_finds_children_with_a_clean_environment(fixture: Fixture) {
    let spec = fixture.script("env -i sh -c 'echo $$ >clean; while :; do sleep 0.1; done' & read -r line");
    fixture.start(&spec).await;
    let clean: u32 = fixture.file("clean").await.trim().parse().unwrap();
    let survey = bounded(fixture.holder.survey(&spec.at.run, &[])).await.unwrap();
    assert!(survey.processes.iter().any(|process| process.pid == clean && process.under_agent), "{survey:?}");
    let report = bounded(fixture.holder.stop(&spec.at, Duration::ZERO)).await.unwrap();
    assert!(report.left.is_empty() && !super::lives(clean));
}

pub async fn a_survey_opens_regular_files_only(fixture: Fixture) {
    let path = |name: &str| fixture.work().join(name);
    fs::write(path("regular \n'name"), b"out\n\n[exited with code 3]\n").unwrap();
    fs::write(path("empty"), b"").unwrap();
    fs::create_dir(path("folder")).unwrap();
    symlink(path("regular \n'name"), path("link")).unwrap();
    assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    let names = ["regular \n'name", "missing", "fifo", "link", "folder", "empty"];
    let paths: Vec<Vec<u8>> = names.iter().map(|name| path(name).to_str().unwrap().into()).collect();
    let survey = bounded(fixture.holder.survey(&fixture.attempt().run, &paths)).await.unwrap();
    let regular = OutputFile::Regular { size: 26, tail: b"out\n\n[exited with code 3]\n".to_vec() };
    assert_eq!(survey.outputs[0], regular);
    let empty = OutputFile::Regular { size: 0, tail: vec![] };
    let others = [OutputFile::Missing, OutputFile::Other, OutputFile::Other, OutputFile::Other, empty];
    assert_eq!(survey.outputs[1..], others);
}

pub async fn a_survey_reads_the_end_of_a_huge_file(fixture: Fixture) {
    let path = fixture.work().join("huge");
    let mut file = File::create(&path).unwrap();
    file.seek(SeekFrom::Start(5_000_000_000)).unwrap();
    file.write_all(b"the end\n").unwrap();
    let paths = [path.to_str().unwrap().into()];
    let look = fixture.holder.survey(&fixture.attempt().run, &paths).await.unwrap();
    let OutputFile::Regular { size, tail } = &look.outputs[0] else { panic!("{look:?}") };
    assert_eq!((*size, tail.len()), (5_000_000_008, 256));
    assert!(tail.ends_with(b"\0the end\n"));
}

pub async fn old_runs_are_removed_and_living_ones_kept(fixture: Fixture) {
    let living = fixture.script("read -r line");
    let survivor = fixture.script("sh -c 'while :; do sleep 0.1; done' >/dev/null 2>&1 & echo $! >pid");
    let (ended, kept) = (fixture.script("exit 0"), fixture.script("exit 0"));
    fixture.start(&living).await;
    fixture.run(&survivor).await;
    fixture.run(&ended).await;
    fixture.run(&kept).await;
    let young = bounded(fixture.holder.gc(Duration::from_secs(3600), &[])).await.unwrap();
    assert_eq!(young.removed, [""; 0]);
    let report =
        bounded(fixture.holder.gc(Duration::ZERO, std::slice::from_ref(&kept.at.run))).await.unwrap();
    assert_eq!(report.removed, [ended.at.run.as_str()]);
    let mut alive = [living.at.run.as_str(), survivor.at.run.as_str()];
    alive.sort_unstable();
    assert_eq!(report.living, alive);
    assert!(!fixture.folder(&ended.at).exists() && fixture.folder(&kept.at).exists());
    bounded(fixture.holder.stop(&living.at, Duration::ZERO)).await.unwrap();
    bounded(fixture.holder.stop(&survivor.at, Duration::ZERO)).await.unwrap();
    let report = bounded(fixture.holder.gc(Duration::ZERO, &[])).await.unwrap();
    assert_eq!((report.removed.len(), report.living.len()), (3, 0));
}

pub async fn directories_are_told_apart(fixture: Fixture) {
    let work = fixture.work();
    let odd = work.join("odd \n'name\n");
    fs::create_dir(&odd).unwrap();
    fs::write(work.join("file"), "").unwrap();
    let bytes = |path: &std::path::Path| path.to_str().unwrap().as_bytes().to_vec();
    let check = async |path: Vec<u8>| bounded(fixture.holder.check_dir(&path)).await.unwrap();
    assert_eq!(check(bytes(&odd)).await, DirectoryState::Ok(bytes(&odd)));
    assert_eq!(check(bytes(&work.join("file"))).await, DirectoryState::NotADirectory);
    assert_eq!(check(bytes(&work.join("none"))).await, DirectoryState::Missing);
    assert_eq!(check(b"~".to_vec()).await, DirectoryState::Ok(bytes(&fixture.root.path().join("home"))));
}

fn program(path: &std::path::Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub async fn an_explicit_path_is_the_only_place(fixture: Fixture) {
    let path = fixture.work().join("some agent");
    program(&path);
    program(&fixture.root.path().join("home/.local/bin/agent-x"));
    let text = path.to_str().unwrap().as_bytes();
    let found = bounded(fixture.holder.find_agent("agent-x", Some(text))).await.unwrap();
    assert_eq!(found.path, text);
    assert_eq!(found.home, fixture.root.path().join("home").to_str().unwrap().as_bytes());
    let path = fixture.work().join("none");
    let text = path.to_str().unwrap();
    match bounded(fixture.holder.find_agent("agent-x", Some(text.as_bytes()))).await {
        Err(FindError::NotFound { places, .. }) => assert_eq!(places, [text]),
        other => panic!("{other:?}"),
    }
    // Without one, the usual folders count, and the folder comes along in the PATH.
    let found = bounded(fixture.holder.find_agent("agent-x", None)).await.unwrap();
    assert!(found.path.ends_with(b"home/.local/bin/agent-x"));
    assert!(String::from_utf8_lossy(&found.env_path).contains("home/.local/bin"));
}

pub async fn a_missing_program_names_the_places(fixture: Fixture) {
    match bounded(fixture.holder.find_agent("no-such-agent-anywhere", None)).await {
        Err(FindError::NotFound { places, name }) => {
            assert_eq!(name, "no-such-agent-anywhere");
            assert!(places.iter().any(|place| place.ends_with("home/.local/bin")), "{places:?}");
            assert!(places.iter().any(|place| place == "/usr/local/bin"), "{places:?}");
        }
        other => panic!("{other:?}"),
    }
}
