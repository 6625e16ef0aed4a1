//! Polling policies on machines that refuse what they request: each reports it in one line, and works.
//!
//! Timed: sleep, clock, processes, devices.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rheostat_testkit::namespace::as_root;
use serde_json::Value;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

const POLICIES: [&str; 4] = ["busy", "interrupt", "metronome", "step-sleep"];

/// A run of as many packets as come in some tenths of a second, on lanes and workers that `more` gives.
fn config(folder: &Path, more: &str) -> PathBuf {
    let text = format!(
        "chain = {{ functions = [\"firewall\"] }}\n\
         [[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"20kpps\"\ninside = [\"10.0.0.0/8\"]\n\
         traffic = {{ flows = 1000, packets = 6000 }}\n{more}\n"
    );
    let path = folder.join("config.toml");
    fs::write(&path, text).unwrap();
    path
}

fn run(config: &Path, more: &[&str]) -> Output {
    let mut rheo = Command::new(RHEO);
    rheo.arg("run").arg(config).args(["--json", "--seed", "5"]).args(more).output().unwrap()
}

/// The summary of a run that ended well, in which every packet is accounted for.
fn summary(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["invariants"], "ok", "{errors}");
    let count = |name: &str| summary[name].as_u64().unwrap();
    let dropped: u64 =
        summary["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(
        count("received") + count("originated") + count("copied"),
        count("sent") + count("consumed") + count("held") + dropped
    );
    assert_eq!(count("received"), 6_000);
    summary
}

#[test]
fn one_worker_and_many_lanes_on_two_run_by_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    for (workers, lanes) in [(1, 1), (1, 3), (2, 64)] {
        let path = config(folder.path(), &format!("[workers]\ncount = {workers}\nlanes = {lanes}"));
        for policy in POLICIES {
            let summary = summary(&run(&path, &["--polling", policy]));
            assert_eq!(summary["polling"]["policy"], policy);
            assert_eq!(summary["polling"]["workers"].as_array().unwrap().len(), workers);
            assert_eq!(summary["lanes"].as_array().unwrap().len(), lanes);
        }
    }
}

#[test]
fn a_target_below_what_the_machine_can_is_told_in_the_output_and_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let more = "[workers]\ncount = 2\n[polling]\npolicy = \"metronome\"\ntarget_vacation = \"1us\"";
    let output = run(&config(folder.path(), more), &[]);
    let warning = "a target vacation of 1 us is shorter than sleeps of this machine can be";
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains(&format!("warning: {warning}")), "{errors}");
    let summary = summary(&output);
    let warnings = summary["polling"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|text| text.as_str().unwrap().starts_with(warning)), "{summary}");
}

#[test]
fn the_time_of_the_source_stands_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "");
    let seen = summary(&run(&path, &[]));
    let [source] = &seen["sources"].as_array().unwrap()[..] else { panic!("{seen}") };
    assert_eq!((&source["device"], &source["drawn"]), (&"wire".into(), &6_000.into()));
    assert!(source["late"].is_u64() && source["cpu_seconds"].as_f64().unwrap() > 0.0, "{source}");
    let text = Command::new(RHEO).arg("run").arg(&path).output().unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("source    wire: 6000 packets drawn in "), "{text}");
}

/// A control group that may use half of one processor, removed when dropped.
struct HalfAProcessor(PathBuf);

impl HalfAProcessor {
    /// `None` where there is no controller of processor time.
    fn new() -> Option<HalfAProcessor> {
        let root = Path::new("/sys/fs/cgroup");
        let name = format!("rheo-test-{}", std::process::id());
        let made = |folder: PathBuf, limits: &[(&str, &str)]| {
            fs::create_dir(&folder).ok()?;
            let group = HalfAProcessor(folder);
            let set = |(file, value): &(&str, &str)| fs::write(group.0.join(file), value).is_ok();
            limits.iter().all(set).then_some(group)
        };
        made(
            root.join("cpu").join(&name),
            &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000")],
        )
        .or_else(|| made(root.join(&name), &[("cpu.max", "50000 100000")]))
    }
}

impl Drop for HalfAProcessor {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn half_a_processor_is_told_by_doctor_and_breaks_no_run() {
    if !as_root() {
        return;
    }
    let Some(group) = HalfAProcessor::new() else {
        // The harness keeps what `eprintln` prints to itself; a run of it by hand shows it.
        eprintln!("NOT RUN: no control group can limit processor time here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[workers]\ncount = 2");
    let inside = |arguments: &[&str]| {
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", group.0.display());
        Command::new("sh").args(["-ec", &enter, RHEO]).args(arguments).output().unwrap()
    };
    for policy in POLICIES {
        let path = path.to_str().unwrap();
        summary(&inside(&["run", path, "--json", "--seed", "5", "--polling", policy]));
    }
    let doctor = inside(&["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let quota = text.lines().find(|line| line.contains("processor quota")).unwrap();
    assert!(quota.starts_with("warning") && quota.contains("0.5"), "{quota}");
}
