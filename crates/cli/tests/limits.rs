//! Configurations that need more than the machine has, and what `rheo check` reports to programs.
//!
//! Timed: processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

const FIREWALL: &str = r#"chain = { functions = ["firewall"] }

[[device]]
name = "wire"
kind = "sim"
rate = "1kpps"
inside = ["10.0.0.0/8"]
"#;

fn rheo(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(RHEO).args(arguments).current_dir(folder).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn state_beyond_the_machine_is_refused_with_the_arithmetic() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.toml"), format!("{FIREWALL}[state]\nflows = 1_000_000_000\n"))
        .unwrap();
    for command in [&["run", "x.toml", "--duration", "1s"][..], &["check", "x.toml"]] {
        let refused = rheo(folder.path(), command);
        let text = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        for part in
            ["flow tables: 1000000000 flows", "packet buffers", "GiB", "lower [state] flows"]
        {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
    let elsewhere = rheo(folder.path(), &["check", "x.toml", "--offline"]);
    assert_eq!(elsewhere.status.code(), Some(0), "{}", stderr(&elsewhere));
}

#[test]
fn a_limit_of_the_address_space_is_named_with_the_arithmetic() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.toml"), format!("{FIREWALL}[state]\nflows = 4_000_000\n"))
        .unwrap();
    let script = format!("ulimit -v 600000; exec {RHEO} run x.toml --duration 1s");
    let refused =
        Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let text = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("`ulimit -v`") && text.contains("flow tables: 4000000 flows"), "{text}");
}

#[test]
fn a_sum_is_shown_by_check() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.toml"), FIREWALL).unwrap();
    let text = rheo(folder.path(), &["check", "x.toml"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("memory when all of it is in use: "), "{text}");
    let json: Value =
        serde_json::from_slice(&rheo(folder.path(), &["check", "x.toml", "--json"]).stdout)
            .unwrap();
    let parts = json["memory"]["parts"].as_array().unwrap().iter();
    let sum: u64 = parts.map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert_eq!(json["memory"]["bytes"].as_u64(), Some(sum));
}

#[test]
fn what_is_missing_on_this_machine_is_refused_and_left_out_offline() {
    let folder = tempfile::tempdir().unwrap();
    let generated = "kind = \"sim\"\nrate = \"1kpps\"";
    let live = FIREWALL.replace(generated, "kind = \"af_packet\"\ninterface = \"no-such0\"");
    fs::write(folder.path().join("x.toml"), format!("{live}[workers]\ncores = \"1000-1001\"\n"))
        .unwrap();
    let refused = rheo(folder.path(), &["check", "x.toml"]);
    let text = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("there is no interface `no-such0`"), "{text}");
    assert!(text.contains("this machine has no cores 1000,1001"), "{text}");
    let elsewhere = rheo(folder.path(), &["check", "x.toml", "--offline"]);
    assert_eq!(elsewhere.status.code(), Some(0), "{}", stderr(&elsewhere));
}

#[test]
fn mistakes_are_json_with_their_place_and_the_exit_status_of_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{FIREWALL}[balance]\npolicy = \"rss++\"\n[state]\nflows = -1\n");
    fs::write(folder.path().join("x.toml"), &text).unwrap();
    let plain = rheo(folder.path(), &["check", "x.toml"]);
    let json = rheo(folder.path(), &["check", "x.toml", "--json"]);
    assert_eq!((json.status.code(), plain.status.code()), (Some(2), Some(2)));
    assert_eq!(stderr(&json), "", "all of it is in the JSON");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ok"], false);
    let mistakes = json["diagnostics"].as_array().unwrap();
    assert_eq!(mistakes.len(), 2, "{json}");
    let policy = &mistakes[0];
    assert_eq!((&policy["file"], &policy["severity"]), (&"x.toml".into(), &"error".into()));
    let place = text.find("\"rss++\"").unwrap();
    let line = text[..place].matches('\n').count() as u64 + 1;
    assert_eq!((policy["line"].as_u64(), policy["column"].as_u64()), (Some(line), Some(10)));
    assert!(policy["message"].as_str().unwrap().contains("rss++"), "{policy}");
    assert!(policy["help"].as_str().unwrap().contains("rsspp"), "{policy}");
    assert_eq!(policy["labels"][0]["message"], "did you mean `rsspp`?");
}

#[test]
fn a_file_that_is_not_there_and_a_warning_are_json_too() {
    let folder = tempfile::tempdir().unwrap();
    let missing = rheo(folder.path(), &["check", "no.toml", "--json"]);
    assert_eq!(missing.status.code(), Some(2));
    let json: Value = serde_json::from_slice(&missing.stdout).unwrap();
    assert!(json["diagnostics"][0]["message"].as_str().unwrap().contains("no.toml"), "{json}");
    let few = format!("{FIREWALL}[workers]\nlanes = 8\n[state]\nshards = 4\n");
    fs::write(folder.path().join("x.toml"), few).unwrap();
    let warned = rheo(folder.path(), &["check", "x.toml", "--json"]);
    let json: Value = serde_json::from_slice(&warned.stdout).unwrap();
    assert_eq!((warned.status.code(), &json["ok"]), (Some(0), &true.into()), "{json}");
    assert_eq!(json["diagnostics"][0]["severity"], "warning", "{json}");
}

/// Lanes that wait for each other's packets do not poll for them: how often they look in vain is bounded by the
/// packets, whatever the machine is busy with.
#[test]
fn lanes_of_a_capture_wait_instead_of_polling() {
    let folder = tempfile::tempdir().unwrap();
    let size = ["--packets", "5k", "--flows", "200", "--seed", "3"];
    let made = rheo(folder.path(), &[&["gen", "--output", "in.pcap"], &size[..]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/nat.toml");
    for lanes in ["1", "2", "4"] {
        let run = ["run", config, "--input", "in.pcap", "--lanes", lanes, "--seed", "5", "--json"];
        let run = rheo(folder.path(), &run);
        let summary: Value = serde_json::from_slice(&run.stdout).unwrap();
        let metrics = summary["lanes"].as_array().unwrap().iter();
        let idle: u64 = metrics.map(|lane| lane["idle_polls"].as_u64().unwrap()).sum();
        let work = summary["received"].as_u64().unwrap() + summary["handoff"].as_u64().unwrap();
        // A lane looks once more after its work, and twice before it sleeps; a worker has several lanes.
        let looks = 4 * lanes.parse::<u64>().unwrap();
        // Where nothing comes for half a second, lanes look all the same.
        let seconds = summary["seconds"].as_f64().unwrap() as u64 + 1;
        let most = looks * (work + 4 * seconds);
        assert!(idle <= most, "{lanes} lanes: {idle} polls in vain for {work} packets");
    }
}
