//! The reference rule for launches and harvests, step by step (`fixtures/vectors/ledger.jsonl`).

use bursar_core::wire::claude::classify;
use serde_json::Value;

const VECTORS: &str = include_str!("../../../fixtures/vectors/ledger.jsonl");

#[test]
fn every_step_of_the_reference_rule_is_classified_alike() {
    let (mut steps, mut scratch) = (0, Vec::new());
    for vector in VECTORS.lines() {
        let vector: Value = serde_json::from_str(vector).unwrap();
        for step in vector["steps"].as_array().unwrap() {
            let input = serde_json::to_vec(&step["input"]).unwrap();
            let call = classify(step["tool"].as_str().unwrap(), &input, &mut scratch);
            assert_eq!(call.flagged_launch, step["launch"].as_bool().unwrap(), "launch: {step}");
            let harvests = call.harvests.filter(|_| !call.newer_harvest);
            assert_eq!(harvests.as_deref(), step["harvest"].as_str(), "harvest: {step}");
            steps += 1;
        }
    }
    assert!(steps > 2000, "only {steps} steps");
}
