//! What reaches the model: the user's own bytes, and the standing instruction by the channel that gets there.

use bursar_testkit::{AgentVersion, ModelRequest, Script, Step, on_every_version};
use serde_json::Value;

use crate::rig::{Rig, word};

/// A phrase of the standing instruction.
const STANDING: &str = "Do not end your reply while anything you started is still running";
/// A phrase of the request to verify the work.
const VERIFY: &str = "Before you say that the work is done, check it";

#[test]
fn the_model_receives_a_prompt_byte_for_byte() {
    let prompts = [
        r#"it's $HOME `id` "x" ; rm -rf ~ !!"#.to_owned(),
        "one\n\n  two\ttabbed\r\nthree \\n \\ %s $(id) ${HOME} 'a'\n".to_owned(),
        "größer 漢字 नमस्ते 👩\u{200d}💻 \u{1f980} e\u{301} \u{202e}mirrored \u{2028} \u{7f} \u{1} end"
            .to_owned(),
        "--help -p --max-turns 0".to_owned(),
        "- a list\n- of two".to_owned(),
    ];
    on_every_version(|version| {
        let rig = Rig::new(version, Script::new().then(Step::text("understood").forever()));
        for prompt in &prompts {
            let before = rig.model.main_requests().len();
            let ran = rig.run_piped(&["--as", "chat"], prompt);
            ran.ended("done", 0);
            let requests = rig.model.main_requests().split_off(before);
            assert!(requests.iter().any(|request| request.received_exactly(prompt)), "{prompt:?}: {ran}");
        }
        // As an argument, too; and in the plain form of the agent, where the prompt is all of its input.
        let argument = &prompts[0];
        for options in [&["--as", "chat"][..], &["--as", "chat", "--no-hold"][..]] {
            let before = rig.model.main_requests().len();
            rig.run(options, argument).ended("done", 0);
            let requests = rig.model.main_requests().split_off(before);
            assert!(requests.iter().any(|request| request.received_exactly(argument)), "{options:?}");
        }
    });
}

#[test]
fn a_prompt_of_two_hundred_kilobytes_and_one_of_five_megabytes_arrive_whole() {
    on_every_version(|version| {
        let rig = Rig::new(version, Script::new().then(Step::text("understood").forever()));
        for size in [200 << 10, 3 << 20, 5 << 20] {
            let prompt = prompt_of(size);
            let before = rig.model.main_requests().len();
            let ran = rig.run_piped(&["--as", "chat"], &prompt);
            let requests = rig.model.main_requests().split_off(before);
            if version == AgentVersion::Waits && size > 3 << 20 {
                // The agent itself refuses it, before any request; but it had all of it.
                let finished = ran.ended("failed", 1);
                assert!(word(&finished, "message").contains("Prompt is too long"), "{}", finished["message"]);
                assert!(requests.is_empty() && recorded(&rig, &prompt), "{size}");
            } else {
                ran.ended("done", 0);
                let exact = requests.iter().any(|request| request.received_exactly(&prompt));
                assert!(exact, "{size} bytes: {:?}", lengths(&requests));
            }
        }
    });
}

/// Makes a prompt of a little more than this many bytes.
fn prompt_of(size: usize) -> String {
    let mut prompt = String::with_capacity(size + 64);
    let mut line = 0;
    while prompt.len() < size {
        line += 1;
        prompt.push_str(&format!("{line}: it's \"quoted\" — größer\n"));
    }
    prompt + "the end"
}

/// Whether a transcript of the agent holds a message of exactly this text.
fn recorded(rig: &Rig, text: &str) -> bool {
    let holds =
        |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["message"]["content"] == text);
    rig.transcripts().iter().any(|path| std::fs::read_to_string(path).unwrap().lines().any(holds))
}

fn lengths(requests: &[ModelRequest]) -> Vec<Vec<usize>> {
    requests.iter().map(|request| request.new_texts().iter().map(|text| text.len()).collect()).collect()
}

#[test]
fn the_standing_instruction_reaches_the_model_once_in_every_kind_of_run() {
    // Where a fresh run puts it: in the system prompt, or in the message with or without the request to verify.
    let callers = [
        ("chat", true, false),
        ("bot", true, false),
        ("worker", false, false),
        ("kanban", false, true),
        ("scheduled", false, true),
    ];
    on_every_version(|version| {
        for (caller, in_system, verifies) in callers {
            let rig = Rig::new(version, Script::new().then(Step::text("understood").forever()));
            let ran = rig.run(&["--as", caller], "paint the fence");
            let session = word(&ran.ended("done", 0), "session").to_owned();
            let fresh = rig.told("paint the fence").remove(0);
            assert_eq!(fresh.system.matches(STANDING).count(), usize::from(in_system), "{caller}: {ran}");
            assert_eq!(
                fresh.new_mentions(STANDING),
                usize::from(!in_system),
                "{caller}: {:?}",
                fresh.new_texts()
            );
            assert_eq!(fresh.new_mentions(VERIFY), usize::from(verifies), "{caller}");
            assert!(!fresh.system.contains(VERIFY), "{caller}");

            let ran = rig.run(&["--as", caller, "--resume", &session], "and the gate");
            ran.ended("done", 0);
            let resumed = rig.told("and the gate").remove(0);
            assert_eq!(resumed.new_mentions(STANDING), 1, "{caller}: {:?}", resumed.new_texts());
            assert_eq!(resumed.new_mentions(VERIFY), usize::from(verifies), "{caller}");
            // The first system prompt of a session stays for ever where the agent freezes it.
            let frozen = in_system && version.freezes_system_prompt();
            assert_eq!(resumed.system.matches(STANDING).count(), usize::from(frozen), "{caller}");
        }
    });
}

#[test]
fn without_the_standing_instruction_no_run_speaks_of_it() {
    on_every_version(|version| {
        let rig = Rig::new(version, Script::new().then(Step::text("understood").forever()));
        let session = word(&rig.run(&["--no-instruction"], "paint").ended("done", 0), "session").to_owned();
        rig.run(&["--no-instruction", "--resume", &session], "go on").ended("done", 0);
        for request in rig.model.main_requests() {
            assert!(!request.system.contains(STANDING));
            assert!(!serde_json::to_string(&request.messages).unwrap().contains(STANDING));
        }
        assert!(rig.told("paint")[0].received_exactly("paint"));
    });
}

#[test]
fn a_nudge_to_a_living_agent_does_not_repeat_the_standing_instruction() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 60"))
            .then(Step::text("it runs, and I am off"))
            .then(Step::text("never mind"));
        let rig = Rig::new(version, script);
        rig.run(&["--as", "kanban", "--hold", "1s"], "build it").ended("stranded", 3);
        let nudge = rig.told("You ended your reply").remove(0);
        assert_eq!(nudge.new_mentions(STANDING), 0, "{:?}", nudge.new_texts());
    });
}
