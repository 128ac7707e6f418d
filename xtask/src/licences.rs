//! Checks where dependencies come from and under which licences, from what cargo itself says.
//!
//! The same rules as `cargo deny check licenses sources`, read from the same deny.toml, without the minutes it takes to
//! install it. What it cannot do is look for known vulnerabilities.

use std::fs;

use bursar_testkit::workspace;
use serde_json::Value;

use crate::Outcome;
use crate::step::{cargo, output};

/// The source of every package that is not in the checkout, as cargo names it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn run() -> Outcome {
    let allowed = allowed(&fs::read_to_string(workspace::root().join("deny.toml"))?);
    if allowed.is_empty() {
        return Err("deny.toml allows no licence".into());
    }
    let metadata = output(cargo().args(["metadata", "--format-version", "1", "--all-features", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        let source = text(&package["source"]);
        if !source.is_empty() && source != REGISTRY {
            wrong.push(format!("{name} comes from {source}"));
        }
        let licence = text(&package["license"]);
        if !satisfied(licence, &allowed) {
            wrong.push(format!("{name} is under {licence:?}, which deny.toml does not allow"));
        }
    }
    if wrong.is_empty() {
        println!("{} packages, all of them under allowed licences and from the registry", packages.len());
        return Ok(());
    }
    Err(wrong.join("\n").into())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the names in the list `allow` of deny.toml.
fn allowed(deny: &str) -> Vec<String> {
    let list = deny
        .split_once("\nallow = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Says whether a licence expression can be met by the allowed licences alone. An old `/` means OR; an exception only
/// ever grants more, so `WITH` needs its licence.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = both(tokens, allowed);
    while let ["OR", rest @ ..] = tokens {
        *tokens = rest;
        // Not short-circuited: the tokens have to be read either way.
        met |= both(tokens, allowed);
    }
    met
}

fn both(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = one(tokens, allowed);
    while let ["AND", rest @ ..] = tokens {
        *tokens = rest;
        met &= one(tokens, allowed);
    }
    met
}

fn one(tokens: &mut &[&str], allowed: &[String]) -> bool {
    match tokens {
        ["(", rest @ ..] => {
            *tokens = rest;
            let met = either(tokens, allowed);
            let [")", rest @ ..] = tokens else { return false };
            *tokens = rest;
            met
        }
        [name, "WITH", _, rest @ ..] | [name, rest @ ..] => {
            let met = allowed.iter().any(|licence| licence == name);
            *tokens = rest;
            met
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_judged_by_what_must_be_accepted() {
        let allowed = ["MIT".to_owned(), "Apache-2.0".to_owned()];
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-3.0 WITH X OR MIT AND (MIT)", true),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn the_list_is_read_from_the_configuration() {
        assert_eq!(
            allowed("[licenses]\nallow = [\n  \"MIT\",\n  \"Zlib\",\n]\nx = [\"no\"]"),
            ["MIT", "Zlib"]
        );
    }
}
