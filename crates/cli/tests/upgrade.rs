//! Configurations that earlier versions shipped are accepted, and give the same summaries. `tests/upgrade/README.md` has
//! the format of `runs.json`.
//!
//! Timed: processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value};

/// A value that differs by run.
const ANY: &str = "*";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/upgrade")
}

fn rheo(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(arguments)
        .current_dir(place)
        .output()
        .expect("rheo starts")
}

fn recorded() -> Value {
    let text = fs::read_to_string(folder().join("runs.json")).expect("the recorded summaries");
    serde_json::from_str(&text).expect("JSON")
}

fn words(value: &Value) -> Vec<&str> {
    let words = value.as_array().expect("a list of words");
    words.iter().map(|word| word.as_str().expect("a word")).collect()
}

fn configurations() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).expect("tests/upgrade").map(|entry| entry.unwrap());
    let names = files.map(|file| file.file_name().into_string().expect("a name of letters"));
    names.filter(|name| name.ends_with(".toml")).collect()
}

/// FNV-1a, 64 bits.
fn digest(bytes: &[u8]) -> String {
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{digest:016x}")
}

/// Writes the captures of `runs.json` into `place`.
fn generate(place: &Path, captures: &Map<String, Value>) {
    for (kind, capture) in captures {
        let output = rheo(place, &[&["gen"], &words(&capture["arguments"])[..]].concat());
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        for (file, recorded) in capture["digests"].as_object().expect("digests by file") {
            let bytes = fs::read(place.join(file)).expect("a capture");
            assert_eq!(
                digest(&bytes),
                *recorded,
                "{file}: `rheo gen` writes other packets for this seed than it did, so the summaries say nothing; \
                 record them again with the old program on the new captures"
            );
        }
    }
}

/// Where today's value differs from the recorded one: its path and both values.
fn differences(path: &str, recorded: &Value, today: &Value, found: &mut Vec<String>) {
    match (recorded, today) {
        (Value::String(any), _) if any == ANY => {}
        (Value::Object(recorded), Value::Object(today)) => {
            for (key, value) in recorded {
                let path = format!("{path}.{key}");
                match today.get(key) {
                    // A further reason to drop packets is a change, unlike a further field.
                    Some(today) if key == "dropped" && today != value => {
                        found.push(format!("{path} is {today}; it was {value}"));
                    }
                    Some(today) => differences(&path, value, today, found),
                    None => found.push(format!("{path} is missing; it was {value}")),
                }
            }
        }
        (Value::Array(recorded), Value::Array(today)) if recorded.len() == today.len() => {
            for (at, (recorded, today)) in recorded.iter().zip(today).enumerate() {
                differences(&format!("{path}[{at}]"), recorded, today, found);
            }
        }
        _ if recorded == today => {}
        _ => found.push(format!("{path} is {today}; it was {recorded}")),
    }
}

/// Runs every configuration that was recorded over the captures of one kind; returns how many.
fn compare_runs(place: &Path, runs: &[Value]) -> usize {
    let mut wrong = Vec::new();
    for run in runs {
        let name = run["configuration"].as_str().expect("a configuration");
        let path = folder().join(name);
        let path = path.to_str().expect("a path of letters");
        let options = ["run", path, "--json", "--seed", "1"];
        let output = rheo(place, &[&options[..], &words(&run["arguments"])].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        let summary = String::from_utf8_lossy(&output.stdout);
        let summary = summary.lines().last().and_then(|line| serde_json::from_str(line).ok());
        match summary {
            Some(summary) if output.status.success() => {
                differences(name, &run["summary"], &summary, &mut wrong);
            }
            _ => wrong.push(format!("{name}: {}: {said}", output.status)),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    runs.len()
}

#[test]
fn every_earlier_configuration_gives_the_same_summary() {
    let recorded = recorded();
    let place = tempfile::tempdir().unwrap();
    generate(place.path(), recorded["captures"].as_object().expect("captures"));
    let runs = recorded["runs"].as_array().expect("runs");
    let mut ran: BTreeSet<String> = BTreeSet::new();
    ran.extend(runs.iter().filter_map(|run| Some(run["configuration"].as_str()?.to_owned())));
    // A service needs peers: `tests/serving` runs it.
    ran.insert("serve-live.toml".to_owned());
    assert_eq!(ran, configurations(), "a configuration without a run, or a run without one");
    assert!(compare_runs(place.path(), runs) >= 18);
}

#[test]
fn every_earlier_configuration_gives_the_same_summary_on_a_real_capture() {
    let recorded = recorded();
    let real = recorded["real"].as_object().expect("runs over a real capture");
    let file = real["capture"].as_str().expect("a capture");
    let capture = std::env::var("RHEO_TRACES").map(|folder| Path::new(&folder).join(file));
    let Some(capture) = capture.ok().filter(|capture| capture.exists()) else {
        println!("not run: RHEO_TRACES names no folder with {file}");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(capture, place.path().join("real.pcap")).unwrap();
    assert!(compare_runs(place.path(), real["runs"].as_array().expect("runs")) >= 18);
}

#[test]
fn every_earlier_configuration_passes_the_check() {
    let names = configurations();
    assert_eq!(names.len(), 19, "{names:?}");
    for name in names {
        let checked = rheo(&folder(), &["check", &name, "--offline"]);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(0), "{name}: {said}");
        assert!(!said.contains("warning"), "{name}: {said}");
    }
}

#[test]
fn a_summary_that_changed_is_noticed() {
    let of = |recorded: &str, today: &str| {
        let mut found = Vec::new();
        let [recorded, today] =
            [recorded, today].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        differences("x", &recorded, &today, &mut found);
        found
    };
    let recorded = r#"{"sent": 5, "dropped": {"denied": 1}, "lanes": [{"load": "*"}]}"#;
    let same = r#"{"sent": 5, "dropped": {"denied": 1}, "lanes": [{"load": 0.5, "new": 1}]}"#;
    assert_eq!(of(recorded, same), [""; 0]);
    assert_eq!(of(recorded, &same.replace("sent\": 5", "sent\": 6")), ["x.sent is 6; it was 5"]);
    assert_eq!(
        of(recorded, &same.replace("load", "share")),
        ["x.lanes[0].load is missing; it was \"*\""]
    );
    assert_eq!(of(recorded, &same.replace("[{", "[1, {")).len(), 1);
    assert_eq!(of(recorded, &same.replace("denied\": 1", "denied\": 1, \"policed\": 2")).len(), 1);
}
