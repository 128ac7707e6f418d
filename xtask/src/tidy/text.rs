//! Rules for any text: nothing of the machine it was written on.

use super::File;

/// Folders of one machine, and hosts a build must not depend on. Put together here, so that this file does not
/// complain of itself.
const FOLDERS: [&str; 2] = [concat!("/wo", "rk"), concat!("/ro", "ot")];
const HOSTS: [&str; 5] = [
    concat!("registry.", "npmjs."),
    concat!("www.", "npmjs."),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("deb.", "debian.org"),
];

/// No file names a folder of the machine it was written on, or a registry's host.
pub(super) fn machine_words(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (number, line) in file.text().lines().enumerate() {
            let place = format!("{}:{}", file.path, number + 1);
            complaints.extend(
                FOLDERS
                    .iter()
                    .filter(|folder| names(line, folder))
                    .map(|word| format!("{place}: names the folder {word}")),
            );
            complaints.extend(
                HOSTS
                    .iter()
                    .filter(|host| line.contains(**host))
                    .map(|word| format!("{place}: names the host {word}")),
            );
        }
    }
    complaints
}

/// Says whether a line names an absolute folder: not one that merely ends so, nor one whose name goes on.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + folder.len()..].chars().next();
        let inside = |c: char| c.is_alphanumeric() || "_-./}$".contains(c);
        let longer = |c: char| c.is_alphanumeric() || "_-".contains(c);
        !before.is_some_and(inside) && !after.is_some_and(longer)
    })
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn only_absolute_folders_are_told() {
        let [work, root] = FOLDERS;
        for (line, expected) in [
            (format!("cd {work}/main"), 1),
            (format!("\"{root}\""), 1),
            (format!("/srv/agent{work}"), 0),
            (format!("$HOME{work}"), 0),
            (format!("{root}s and {work}space"), 0),
            ("workspace::root()".to_owned(), 0),
        ] {
            assert_eq!(machine_words(&[file("a.md", &line)]).len(), expected, "{line}");
        }
    }
}
