//! Rules for recorded material: every capture says where it comes from, every snapshot belongs to a test.

use super::File;

/// Files that may describe the fixtures beside and below them.
const NOTES: [&str; 2] = ["README.md", "NOTES.md"];

/// Every fixture is covered by a note: one in its folder or above it names the file, or a folder it lies in.
pub(super) fn without_a_note(files: &[File]) -> Vec<String> {
    let in_fixtures = |file: &&File| file.path.starts_with("fixtures/");
    let notes: Vec<&File> =
        files.iter().filter(in_fixtures).filter(|file| NOTES.contains(&file.name())).collect();
    files
        .iter()
        .filter(in_fixtures)
        .filter(|file| !NOTES.contains(&file.name()) && !notes.iter().any(|note| covers(note, file)))
        .map(|file| format!("{}: no note in fixtures/ names it or its folder", file.path))
        .collect()
}

fn covers(note: &File, file: &File) -> bool {
    let folder = note.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Some(below) = file.path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else {
        return false;
    };
    below.split('/').any(|part| note.text().contains(part))
}

/// Every snapshot's test is still there. A snapshot's file is called `crate__module__name.snap`, with `@input` for a
/// test that runs over inputs and `-2` for a second one of the same test.
pub(super) fn orphan_snapshots(files: &[File]) -> Vec<String> {
    let snapshots = files.iter().filter(|file| file.path.ends_with(".snap"));
    snapshots
        .filter_map(|snapshot| Some(format!("{}: {}", snapshot.path, orphaned(snapshot, files)?)))
        .collect()
}

fn orphaned(snapshot: &File, files: &[File]) -> Option<String> {
    let header = snapshot.text().split("\n---").next().unwrap_or_default();
    let source = header.lines().find_map(|line| line.strip_prefix("source: "))?.trim().trim_matches('"');
    let Some(test) = files.iter().find(|file| file.path == source) else {
        return Some(format!("its source {source} is gone"));
    };
    let stem = snapshot.name().trim_end_matches(".snap");
    let (stem, input) = stem.split_once('@').map_or((stem, None), |(stem, input)| (stem, Some(input)));
    let name = stem.rsplit("__").next().unwrap_or(stem);
    let base = match name.rsplit_once('-') {
        Some((base, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => base,
        Some(_) | None => name,
    };
    // A test may take its snapshots' names from the fixtures it reads.
    let from_fixture = |part: &str| {
        let named = |file: &File| {
            file.path.split('/').any(|folder| folder == part || folder.starts_with(&format!("{part}.")))
        };
        files.iter().filter(|file| file.path.starts_with("fixtures/")).any(named)
    };
    // Or make them of a word and something else: `format!("help_{command}")` and the word `run` somewhere.
    let composed = base.split_once('_').is_some_and(|(head, tail)| {
        test.text().contains(&format!("{head}_{{")) && test.text().contains(&format!("\"{tail}\""))
    });
    let known =
        test.text().contains(base) || composed || from_fixture(name) || input.is_some_and(from_fixture);
    (!known).then(|| format!("no test in {source} makes it"))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn a_fixture_needs_a_note_that_names_it() {
        let files = [
            file("fixtures/README.md", "- `one/`: recorded with a real agent"),
            file("fixtures/one/stream.jsonl", ""),
            file("fixtures/two/stream.jsonl", ""),
            file("fixtures/three/NOTES.md", "stream.jsonl: written by hand"),
            file("fixtures/three/stream.jsonl", ""),
        ];
        assert_eq!(
            without_a_note(&files),
            ["fixtures/two/stream.jsonl: no note in fixtures/ names it or its folder"]
        );
    }

    #[test]
    fn a_snapshot_needs_its_test() {
        let header = |source: &str| format!("---\nsource: {source}\nexpression: x\n---\ntext");
        let files = [
            file(
                "tests/src/a.rs",
                "//! A.\nfn shows_the_table() {}\nname(format!(\"help_{word}\", \"run\"));",
            ),
            file("tests/src/snapshots/a__help_run.snap", &header("tests/src/a.rs")),
            file("fixtures/walkaway/stream.jsonl", ""),
            file("tests/src/snapshots/a__shows_the_table.snap", &header("tests/src/a.rs")),
            file("tests/src/snapshots/a__shows_the_table-2.snap", &header("tests/src/a.rs")),
            file("tests/src/snapshots/a__walkaway.snap", &header("tests/src/a.rs")),
            file("tests/src/snapshots/a__removed_test.snap", &header("tests/src/a.rs")),
            file("tests/src/snapshots/b__gone.snap", &header("tests/src/b.rs")),
        ];
        assert_eq!(
            orphan_snapshots(&files),
            [
                "tests/src/snapshots/a__removed_test.snap: no test in tests/src/a.rs makes it",
                "tests/src/snapshots/b__gone.snap: its source tests/src/b.rs is gone",
            ]
        );
    }
}
