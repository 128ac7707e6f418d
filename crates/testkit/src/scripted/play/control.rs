//! Control requests: the ones the product sends, answered as the agent answers them.

use serde_json::{Value, json};

use super::super::log::LogEvent;
use super::player::{Player, Stop};

impl Player {
    pub(super) fn control(&mut self, request: Value) -> Result<(), Stop> {
        let id = request["request_id"].clone();
        let subtype = request["request"]["subtype"].as_str().unwrap_or_default().to_owned();
        let shell = request["request"]["task_id"].as_str().map(str::to_owned);
        self.log.write(LogEvent::Control(request))?;
        if !self.attempt.control {
            return Ok(());
        }
        let succeeded = json!({"subtype": "success", "request_id": id});
        match subtype.as_str() {
            "interrupt" => {
                let mut response = succeeded;
                response["response"] = json!({"still_queued": []});
                self.respond(&response)?;
                // An idle agent only acknowledges it.
                if self.busy { Err(Stop::Interrupted) } else { Ok(()) }
            }
            "end_session" => {
                self.respond(&succeeded)?;
                self.stop_all_shells()?;
                Err(Stop::Exit(0))
            }
            "stop_task" => {
                self.respond(&succeeded)?;
                shell.map_or(Ok(()), |id| self.stop_shell(&id))
            }
            _ => {
                let error = format!("Unsupported control request subtype: {subtype}");
                self.respond(&json!({"subtype": "error", "request_id": id, "error": error}))
            }
        }
    }

    fn respond(&mut self, response: &Value) -> Result<(), Stop> {
        Ok(self.emit(&json!({"type": "control_response", "response": response}))?)
    }
}
