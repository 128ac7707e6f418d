//! What bursar says to the agent: its command line, and the lines of its input (FACTS 5, 7).

use serde::Serialize;

use crate::ids::{MessageId, SessionId};

/// What one agent process is started with.
#[derive(Debug, Clone, Default)]
pub struct Launching<'a> {
    /// Whether its input stays open for messages; else it reads the prompt as plain text until the end of its input.
    pub held: bool,
    /// The id of a fresh session.
    pub session: Option<&'a SessionId>,
    /// The session to go on with; a fresh id is not given along.
    pub resume: Option<&'a SessionId>,
    pub model: Option<&'a str>,
    pub permission_mode: Option<&'a str>,
    /// Turn budget of one reply; None or zero gives none.
    pub max_turns: Option<u64>,
    pub append_system_prompt: Option<&'a str>,
    /// The user's own arguments, at the end, so that they win.
    pub extra: &'a [String],
}

/// Returns the arguments of the agent's command line, without its name.
#[must_use]
pub fn args(launching: &Launching<'_>) -> Vec<String> {
    // FACTS 13: stream-json output needs --verbose.
    let mut args: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose"].map(Into::into).into();
    let mut option = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
    if launching.held {
        option("--input-format", "stream-json");
    }
    match (launching.resume, launching.session) {
        (Some(session), _) => option("--resume", &session.0),
        (None, Some(session)) => option("--session-id", &session.0),
        (None, None) => {}
    }
    if let Some(model) = launching.model {
        option("--model", model);
    }
    if let Some(mode) = launching.permission_mode {
        option("--permission-mode", mode);
    }
    if let Some(turns) = launching.max_turns.filter(|turns| *turns > 0) {
        option("--max-turns", &turns.to_string());
    }
    if let Some(text) = launching.append_system_prompt {
        option("--append-system-prompt", text);
    }
    args.extend_from_slice(launching.extra);
    args
}

/// Returns the line that hands `text` to the agent as a message.
///
/// The id makes the message followable, and drops a repetition of it (FACTS 5).
#[must_use]
pub fn message_line(id: &MessageId, text: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Message<'a> {
        role: &'a str,
        content: &'a str,
    }
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'a str,
        message: Message<'a>,
        uuid: &'a MessageId,
    }
    line(&Line { r#type: "user", message: Message { role: "user", content: text }, uuid: id })
}

/// What the agent can be told beside messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Break off the running reply; background work goes on.
    Interrupt,
    /// Leave, killing what still runs.
    EndSession,
    /// Stop one background task.
    StopTask(String),
}

/// Returns the line that gives the agent an order; it is answered under the same request id.
#[must_use]
pub fn control_line(request_id: &str, control: Control) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(tag = "subtype", rename_all = "snake_case")]
    enum Request {
        Interrupt,
        EndSession,
        StopTask { task_id: String },
    }
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'a str,
        request_id: &'a str,
        request: Request,
    }
    let request = match control {
        Control::Interrupt => Request::Interrupt,
        Control::EndSession => Request::EndSession,
        Control::StopTask(task_id) => Request::StopTask { task_id },
    };
    line(&Line { r#type: "control_request", request_id, request })
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("strings in structs are always written");
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_message_is_one_line_whatever_its_text() {
        let line = text(message_line(&MessageId("u-1".into()), "two\nlines \"quoted\" \u{2028} 😀"));
        assert_eq!(
            line,
            "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"two\\nlines \\\"quoted\\\" \u{2028} 😀\"},\"uuid\":\"u-1\"}\n"
        );
    }

    #[test]
    fn control_requests_are_spelled_as_the_agent_reads_them() {
        for (control, request) in [
            (Control::Interrupt, r#"{"subtype":"interrupt"}"#),
            (Control::EndSession, r#"{"subtype":"end_session"}"#),
            (Control::StopTask("b1".into()), r#"{"subtype":"stop_task","task_id":"b1"}"#),
        ] {
            let expected =
                format!("{{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{request}}}\n");
            assert_eq!(text(control_line("r", control)), expected);
        }
    }

    #[test]
    fn a_resumed_session_gets_no_fresh_id_and_the_users_arguments_come_last() {
        let (fresh, old) = (SessionId("fresh".into()), SessionId("old".into()));
        let launching = Launching {
            held: true,
            session: Some(&fresh),
            resume: Some(&old),
            model: Some("m"),
            max_turns: Some(50),
            extra: &["--add-dir".to_owned(), "/x".to_owned()],
            ..Launching::default()
        };
        assert_eq!(
            args(&launching).join(" "),
            "-p --output-format stream-json --verbose --input-format stream-json --resume old --model m --max-turns 50 --add-dir /x"
        );
    }

    #[test]
    fn a_plain_start_has_no_input_format() {
        let fresh = SessionId("fresh".into());
        let launching = Launching {
            session: Some(&fresh),
            permission_mode: Some("acceptEdits"),
            append_system_prompt: Some("be kind"),
            max_turns: Some(0),
            ..Launching::default()
        };
        assert_eq!(
            args(&launching).join(" "),
            "-p --output-format stream-json --verbose --session-id fresh --permission-mode acceptEdits --append-system-prompt be kind"
        );
    }
}
