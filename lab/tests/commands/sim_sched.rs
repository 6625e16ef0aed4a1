//! `rheo sim sched` and `rheo advise`: rows for programs and people, the page, and what they answer to nonsense.
//!
//! Timed: processes.

use std::process::{Command, Output};

use rheostat_kernel::CoreSet;
use serde_json::Value;
use tempfile::TempDir;

fn rheo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo-lab")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const QUICK: [&str; 10] = [
    "sim",
    "sched",
    "--costs",
    "thesis",
    "--cores",
    "2",
    "--load",
    "0.4",
    "--workload",
    "constant-10us,bimodal-2",
];

#[test]
fn rows_in_json_have_the_fields_that_programs_read() {
    let output = rheo(&[&QUICK[..], &["--load", "1.2", "--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = rows.iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    let all = [
        "inline-cfcfs",
        "inline-dfcfs",
        "inline-ws",
        "dispatcher-1:1",
        "dispatcher-1:1-dfcfs",
        "dispatcher-1:1-ws",
    ];
    // Two workloads, two loads.
    assert_eq!(names, [all; 4].concat());
    for row in &rows {
        assert_eq!(row["simulated"], true);
        assert!(
            row["p999_us"].as_f64().unwrap() > 0.0 && row["throughput"].as_f64().unwrap() > 0.0
        );
        assert_eq!(row["crossover_lock_ns"], Value::Null);
        let is_bimodal = row["workload"] == "bimodal-2";
        for class in ["p999_short_us", "p999_long_us"] {
            assert_eq!(row[class].is_f64(), is_bimodal, "{row}");
        }
        let is_sound = row["saturated"] == false;
        assert_eq!(row["ci95"].as_f64().is_some_and(|by| by <= 0.1), is_sound, "{row}");
        let kept_up = row["throughput"].as_f64() > row["offered"].as_f64().map(|rate| 0.97 * rate);
        assert_eq!(kept_up, is_sound, "{row}");
    }
    let saturated = rows.iter().filter(|row| row["saturated"] == true);
    assert!(saturated.clone().all(|row| row["load"] == 1.2) && saturated.count() == 12);
}

#[test]
fn only_the_shortest_requests_have_a_crossover() {
    let output = rheo(&[
        "sim",
        "sched",
        "--costs",
        "thesis",
        "--cores",
        "4",
        "--load",
        "0.8",
        "--workload",
        "constant-1us",
        "--scheduler",
        "inline-cfcfs,inline-dfcfs",
        "--json",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let crossover = rows[0]["crossover_lock_ns"].as_f64().unwrap();
    assert!(crossover > 0.0 && crossover < 10_000.0, "{crossover}");
    assert_eq!(rows[1]["crossover_lock_ns"].as_f64(), Some(crossover));
}

#[test]
fn rows_for_people_end_with_a_verdict_and_charts_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("sched.html");
    let output = rheo(&[&QUICK[..], &["--ideals", "--output", page.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let lines: Vec<_> = stdout.lines().collect();
    assert!(lines[0].starts_with("simulated by rheo ") && lines[0].contains("costs: the thesis's"));
    assert!(lines[1].starts_with("workload "), "{stdout}");
    assert_eq!(lines.len(), 2 + 16 + 2, "{stdout}");
    assert!(lines[19].starts_with("bimodal-2 at 0.40: "), "{stdout}");
    assert!(stdout.contains("ideal-cfcfs") && stdout.contains("ideal-ps"));
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
}

#[test]
fn recorded_rows_are_drawn_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for seed in ["1", "1", "2"] {
        let record = ["--seed", seed, "--record", &file(&format!("{seed}.jsonl"))];
        let output = rheo(&[&QUICK[..], &record].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let recorded = std::fs::read_to_string(file("1.jsonl")).unwrap();
    let headers = recorded.lines().filter(|line| line.starts_with("{\"command\":")).count();
    assert_eq!((headers, recorded.lines().count()), (2, 2 * (1 + 12)), "{recorded}");

    let output = rheo(&["bench", "report", &file("1.jsonl"), "--output", &file("report.html")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(file("report.html")).unwrap();
    let titles = page.matches("<h3>constant-10us, 2 workers, simulated: p99.9 over the load</h3>");
    assert_eq!(titles.count(), 2, "one for each command");

    let compare = |a: &str, b: &str| {
        let output = rheo(&["bench", "report", "--compare", &file(a), &file(b), "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let ratios = compare("2.jsonl", "1.jsonl");
    let of = |figure: &str| ratios.iter().filter(|line| line["figure"] == figure).count();
    assert_eq!((of("p999_us"), of("capacity")), (12, 12), "{ratios:?}");
    // What was recorded twice has no partner the second time.
    assert_eq!(ratios.iter().filter(|line| line["missing"] == "a").count(), 12);
    let same = compare("1.jsonl", "1.jsonl");
    assert!(same.iter().all(|line| line["ratio"] == 1.0), "{same:?}");
}

#[test]
fn printed_costs_can_be_read_again_and_wrong_ones_name_file_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("costs.json");
    let printed = rheo(&["sim", "sched", "--costs", "thesis", "--print-costs"]);
    assert!(printed.status.success());
    std::fs::write(&file, &printed.stdout).unwrap();
    let costs = format!("measured:{}", file.display());
    let output = rheo(&["sim", "sched", "--costs", &costs, "--lock", "50", "--print-costs"]);
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (again["queue_lock_taken_ns"].as_f64(), again["tcp_in_ns"].as_f64()),
        (Some(50.0), Some(1810.0))
    );
    std::fs::write(&file, text(&printed.stdout).replace("tcp_out_ns", "tcp_away_ns")).unwrap();
    let output = rheo(&["sim", "sched", "--costs", &costs]);
    let stderr = text(&output.stderr);
    assert!(
        !output.status.success() && stderr.contains("costs.json: `tcp_out_ns` is missing"),
        "{stderr}"
    );
}

#[test]
fn advice_names_a_scheduler_a_runner_up_and_a_reason() {
    let case = ["advise", "--service", "100us", "--load", "0.7", "--cores", "2", "--json"];
    let output = rheo(&[&case[..], &["--costs", "thesis"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    // One queue for both workers: a lock of 100 ns is nothing beside 100 us.
    assert_eq!(advice["scheduler"], "inline-cfcfs");
    assert!(advice["expected_p999_us"].as_f64().is_some_and(|time| time > 100.0), "{advice}");
    assert_eq!(advice["runner_up"], "inline-ws");
    assert!(advice["reason"].as_str().unwrap().contains("inline-dfcfs has"), "{advice}");
    let costs = &advice["costs"];
    assert!(costs["about"].as_str().unwrap().starts_with("the thesis's"), "{advice}");
    assert_eq!((&costs["machine"], &costs["measured"]), (&Value::Null, &Value::from(false)));
    assert_eq!(advice["thesis"], Value::Null, "those are in use");
}

/// A cache folder with costs of this machine and build, which differ from the shipped ones by their name.
fn cache_with_costs(about: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
        let output = command.args(arguments).env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let cores = CoreSet::available().unwrap().cores().len();
    let machine = format!("{}, {cores} cores", rheostat_app::terminal::machine_key());
    let version = run(&["--version"]);
    let (_, build) = version.split_once('(').unwrap();
    let [commit, profile, _] = build.split(", ").collect::<Vec<_>>()[..] else {
        panic!("{version}")
    };
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/costs/requests-epyc.json");
    let mut costs: Value =
        serde_json::from_str(&std::fs::read_to_string(shipped).unwrap()).unwrap();
    costs["about"] = about.into();
    let entry = serde_json::json!({
        "machine": machine, "commit": commit, "profile": profile, "costs": costs
    });
    let file = folder.path().join("rheostat/costs.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(file, serde_json::json!([entry]).to_string()).unwrap();
    folder
}

#[test]
fn answers_are_for_the_costs_of_this_machine_and_show_where_the_thesis_differs() {
    let cache = cache_with_costs("a test's");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
        command.args(arguments).env("XDG_CACHE_HOME", cache.path()).output().unwrap()
    };
    let case = ["advise", "--service", "1us", "--load", "0.5", "--cores", "2"];
    let output = run(&[&case[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    let costs = &advice["costs"];
    assert_eq!((&costs["about"], &costs["measured"]), (&"a test's".into(), &true.into()));
    assert!(costs["machine"].as_str().unwrap().starts_with("AMD EPYC"), "{costs}");
    assert_ne!(advice["scheduler"], "inline-cfcfs", "locks are dear on that machine");
    assert_eq!(advice["thesis"]["scheduler"], "inline-cfcfs");
    let said = text(&run(&case).stdout);
    assert!(said.contains("costs: this machine's: a test's"), "{said}");
    assert!(said.contains("with the thesis's costs: inline-cfcfs, "), "{said}");

    let sched = ["sim", "sched", "--cores", "2", "--load", "0.5", "--workload", "constant-2us"];
    let schedulers = ["--scheduler", "inline-cfcfs,inline-dfcfs"];
    let said = text(&run(&[&sched[..], &schedulers].concat()).stdout);
    assert!(said.lines().next().unwrap().ends_with("costs: this machine's: a test's"), "{said}");
    let differs = "with the thesis's costs, constant-2us at 0.50: inline-cfcfs has the least p99.9";
    assert!(said.contains(differs), "{said}");
}

#[test]
fn a_debug_build_without_kept_costs_uses_the_shipped_ones_and_says_so() {
    if !cfg!(debug_assertions) {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    let case = ["advise", "--service", "10us", "--load", "0.3", "--cores", "1", "--json"];
    let output = command.args(case).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    let costs = &advice["costs"];
    assert_eq!(costs["measured"], false);
    assert!(costs["note"].as_str().unwrap().contains("build with --release"), "{costs}");
    assert!(costs["about"].as_str().unwrap().contains("AMD EPYC"), "{costs}");
    assert!(!cache.path().join("rheostat").exists(), "nothing is kept");
}

#[test]
fn a_load_that_no_scheduler_can_do_is_an_error_with_one_that_can() {
    let case = ["advise", "--service", "10us", "--load", "1.2", "--cores", "1"];
    for form in [&["--costs", "thesis"][..], &["--costs", "thesis", "--json"]] {
        let output = rheo(&[&case[..], form].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("no scheduler can do 100000 requests per second"), "{stderr}");
        assert!(stderr.contains("a load of at most 0.9"), "{stderr}");
        let stdout = text(&output.stdout);
        assert!(stdout.contains("the thesis's: TCP in"), "{stdout}");
        if form.contains(&"--json") {
            let advice: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!((&advice["scheduler"], &advice["runner_up"]), (&Value::Null, &Value::Null));
            assert!(advice["reason"].as_str().unwrap().starts_with("no scheduler can do"));
            assert_eq!(advice["considered"][0]["saturated"], true, "{advice}");
        }
    }
}

#[test]
fn nonsense_is_refused_before_anything_is_simulated() {
    for (option, value, says) in [
        ("--load", "0", "error: load 0: above 0 and at most 2"),
        ("--load", "2.1", "error: load 2.1: "),
        ("--cores", "65", "1..=64"),
        ("--connections", "0", "error: 0 connections: between 1 and 16384"),
        (
            "--scheduler",
            "inline-fifo",
            "use inline-cfcfs, inline-dfcfs, inline-ws or dispatcher-D:A",
        ),
        ("--scheduler", "dispatcher-2:7", "use dispatcher-2:6 or dispatcher-2:8"),
        (
            "--scheduler",
            "dispatcher-2:8",
            "error: dispatcher-2:8 has 10 workers, but 8 cores: use dispatcher-2:6",
        ),
        ("--workload", "constant", "use constant-TIME"),
        ("--costs", "guessed", "use machine, thesis, or measured:FILE"),
        ("--costs", "measured:/nowhere.json", "error: /nowhere.json: "),
        ("--lock", "-1", "error: --lock -1"),
        ("--outstanding", "3", "1..=2"),
    ] {
        let output = rheo(&["sim", "sched", &format!("{option}={value}")]);
        let stderr = text(&output.stderr);
        assert!(!output.status.success() && stderr.contains(says), "{option} {value}: {stderr}");
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    }
    let output = rheo(&["advise", "--service", "1s"]);
    assert!(text(&output.stderr).contains("error: a service of 1s: between 10 ns and 10 ms"));
}
