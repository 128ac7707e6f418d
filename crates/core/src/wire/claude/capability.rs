//! What a version of the agent can do. The ladder asks for these and never for a name or a version.

/// What one agent can do and promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the version was told and understood; if not, nothing below is taken for granted.
    pub known: bool,
    /// It goes on with an open input and tells the result of a reply at once, subagents or not (DRIFT 5, 7).
    pub held: bool,
    /// It follows each message by its id (DRIFT 18).
    pub lifecycle: bool,
    /// It tells the full set of background work at each change (DRIFT 8).
    pub live_set: bool,
    /// It notifies of ends inside a running turn, too (DRIFT 9).
    pub notifies_mid_turn: bool,
    /// It tells at resume that work was lost (DRIFT 25).
    pub tells_lost_work: bool,
    /// It starts with an EMPTY result when it resumes into lost work (DRIFT 25).
    pub empty_result_at_resume: bool,
    /// A signal leaves none of its commands behind, and the exit code says so (DRIFT 21-23).
    pub dies_clean: bool,
    /// It ends output files with a line that tells how the work ended (DRIFT 17).
    pub output_trailer: bool,
    /// It keeps a conversation's first system prompt and ignores a later one (DRIFT 28).
    pub keeps_system_prompt: bool,
    /// It carries the cost over a resume (DRIFT 29).
    pub carries_cost: bool,
    /// With its input closed it waits for shells instead of killing them (DRIFT 1-2).
    pub waits_for_shells: bool,
    /// It stops a background shell at a time limit of its own (DRIFT 3).
    pub limits_shells: bool,
}

/// Returns what the agent of `version` can do; what its own list (`init.capabilities`, from 2.1.212 on) promises
/// counts whatever the version.
///
/// Where a change was only bracketed, the later version counts: a promise is relied on from where it was seen.
#[must_use]
pub fn capabilities(version: Option<&str>, init_caps: &[String]) -> Capabilities {
    let version = version.and_then(parse);
    let since = |patch: u64| version.is_some_and(|version| version >= (2, 1, patch));
    let promised = |name: &str| init_caps.iter().any(|promise| promise == name);
    Capabilities {
        known: version.is_some(),
        held: since(181),
        lifecycle: since(208) || promised("msg_lifecycle_v1"),
        live_set: since(204),
        notifies_mid_turn: since(198),
        tells_lost_work: since(190),
        empty_result_at_resume: since(198),
        dies_clean: since(212),
        output_trailer: since(231),
        keeps_system_prompt: since(270),
        carries_cost: since(282),
        waits_for_shells: since(292) || (version.is_some() && !since(163)),
        limits_shells: since(305),
    }
}

fn parse(version: &str) -> Option<(u64, u64, u64)> {
    let mut parts = version.trim().split('.');
    let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    // `2.1.231 (Claude Code)` and `2.1.231-beta.1` are 2.1.231.
    let patch = parts.next()?;
    let end = patch.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(patch.len());
    Some((major, minor, patch[..end].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_gets_what_was_measured_on_it() {
        let of = |version: &str| capabilities(Some(version), &[]);
        assert!(!of("2.1.178").held && of("2.1.181").held);
        assert!(!of("2.1.202").live_set && of("2.1.204").live_set);
        assert!(!of("2.1.204").lifecycle && of("2.1.208").lifecycle);
        assert!(!of("2.1.208").dies_clean && of("2.1.212").dies_clean);
        assert!(
            of("2.1.162").waits_for_shells
                && !of("2.1.231").waits_for_shells
                && of("2.1.332").waits_for_shells
        );
        assert!(!of("2.1.265").keeps_system_prompt && of("2.1.270").keeps_system_prompt);
        assert!(
            of("2.2.0").live_set
                && of("3.0.0 (Claude Code)").carries_cost
                && of("2.1.231-dev").output_trailer
        );
        assert!(!of("1.0.99").held);
    }

    #[test]
    fn nothing_is_taken_for_granted_of_an_unknown_version_but_what_it_promises() {
        for version in [None, Some(""), Some("nightly"), Some("2.1")] {
            let nothing = capabilities(version, &[]);
            assert!(!nothing.known && !nothing.held && !nothing.waits_for_shells, "{version:?}");
            assert!(capabilities(version, &["msg_lifecycle_v1".to_owned()]).lifecycle);
        }
    }
}
