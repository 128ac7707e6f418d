//! Serves a model script by hand, to try an agent against it.

use std::io::Read;
use std::path::Path;

use bursar_testkit::{ModelServer, Script};

use crate::Outcome;

pub(crate) fn run(path: &Path) -> Outcome {
    let text = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let script: Script = serde_json::from_slice(&text)
        .map_err(|error| format!("{} is no model script: {error}", path.display()))?;
    let model = ModelServer::start(script)?;
    println!("ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=dummy", model.base_url());
    println!("end the input (Ctrl-D) to stop");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    for exchange in model.exchanges() {
        let request = &exchange.request;
        println!(
            "{:>4} {:<8} {:?} -> {}",
            request.number,
            request.route,
            request.new_texts(),
            exchange.answered
        );
    }
    for fault in model.faults() {
        println!("fault: {fault}");
    }
    Ok(())
}
