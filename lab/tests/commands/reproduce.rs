//! `rheo reproduce`: the list of claims, and a claim that is measured.
//!
//! Timed: processes.

use std::process::{Command, Output};

use serde_json::Value;

fn reproduce(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    command.arg("reproduce").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn claims_are_listed_with_their_commands() {
    let output = reproduce(&["--list", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let claims: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(claims.iter().any(|claim| claim["name"] == "optimisation-models"), "{printed}");
    for claim in &claims {
        let told = ["claim", "page", "rows", "command", "needs", "time"];
        assert!(told.iter().all(|field| claim[field].is_string()), "{claim}");
    }
    let listed = text(&reproduce(&[]).stdout);
    assert_eq!(listed.lines().count(), 1 + claims.len(), "{listed}");
}

#[test]
fn figures_stand_beside_the_published_ones() {
    let output = reproduce(&["optimisation-models", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["command"], "rheo-lab bench solver --size 128x16");
    let figures = outcome["figures"].as_array().unwrap();
    // The problems are drawn from a seed, so how good the answers are does not depend on the machine.
    for figure in &figures[..2] {
        assert_eq!(figure["ratio"].as_f64(), Some(1.0), "{figure}");
    }
    assert!(figures.iter().all(|figure| figure["here"].as_f64() > Some(0.0)), "{outcome}");
}

#[test]
fn an_unknown_claim_is_an_error_with_the_way_to_the_names() {
    let output = reproduce(&["no-such"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("`no-such`") && errors.contains("--list"), "{errors}");
}
