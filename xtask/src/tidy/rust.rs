//! Rules for Rust files: each says what it is for, none grows without a reason, nothing is left half done.

use super::File;

/// What the median file must stay under.
const MEDIAN_LIMIT: usize = 300;

/// What no file may exceed without a reason.
const FILE_LIMIT: usize = 800;

/// The word that gives the reason, in the file's header.
const REASON: &str = "//! Size:";

/// Every Rust file opens with what it is for.
pub(super) fn headers(files: &[File]) -> Vec<String> {
    let silent = files.iter().filter(|file| file.is_rust() && !file.text().starts_with("//!"));
    silent.map(|file| format!("{}: the file does not open with `//!`", file.path)).collect()
}

/// Files stay small.
pub(super) fn sizes(files: &[File]) -> Vec<String> {
    let code = files.iter().filter(|file| file.is_rust() && !is_test(&file.path));
    let mut sizes: Vec<(usize, &File)> = code.map(|file| (file.text().lines().count(), file)).collect();
    let mut complaints: Vec<String> = sizes
        .iter()
        .filter(|(lines, file)| *lines > FILE_LIMIT && !header(file.text()).contains(REASON))
        .map(|(lines, file)| {
            format!(
                "{}: {lines} lines, more than {FILE_LIMIT}, and no `{REASON}` in its header says why",
                file.path
            )
        })
        .collect();
    sizes.sort_unstable_by_key(|(lines, _)| *lines);
    if let Some((median, _)) = sizes.get(sizes.len() / 2)
        && *median >= MEDIAN_LIMIT
    {
        complaints.push(format!("the median Rust file has {median} lines, not under {MEDIAN_LIMIT}"));
    }
    complaints
}

/// Nothing is left for later, and no test is switched off.
pub(super) fn leftovers(files: &[File]) -> Vec<String> {
    // Put together here, so that this file does not complain of itself.
    let words = [
        concat!("to", "do!("),
        concat!("dbg", "!("),
        concat!("#[", "ignore"),
        concat!("unimple", "mented!("),
    ];
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for (number, line) in file.text().lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{}:{}: `{word}` is left", file.path, number + 1));
            }
        }
    }
    complaints
}

fn header(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn a_large_file_needs_a_reason() {
        let lines = "x\n".repeat(FILE_LIMIT + 1);
        let large = file("crates/a/src/a.rs", &lines);
        let explained = file("crates/a/src/b.rs", &format!("//! B.\n{REASON} one table.\n{lines}"));
        let test = file("crates/a/tests/c.rs", &lines);
        let mut files = vec![large, explained, test];
        files.extend((0..9).map(|index| file(&format!("crates/a/src/{index}.rs"), "//! S.\n")));

        let complaints = sizes(&files);

        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(complaints[0].starts_with("crates/a/src/a.rs: 801 lines"));
    }

    #[test]
    fn a_high_median_is_told() {
        let files = [file("src/a.rs", &"x\n".repeat(MEDIAN_LIMIT))];
        assert_eq!(sizes(&files), ["the median Rust file has 300 lines, not under 300"]);
    }

    #[test]
    fn leftovers_are_told_with_their_line() {
        let text = concat!("fn a() {}\n    to", "do!(\"x\")\n");
        assert_eq!(leftovers(&[file("src/a.rs", text)]).len(), 1);
    }

    #[test]
    fn a_file_without_a_header_is_told() {
        assert_eq!(headers(&[file("src/a.rs", "fn a() {}"), file("src/b.rs", "//! B.")]).len(), 1);
    }
}
