use rheostat_tcp::sched::Outstanding;

use super::*;
use crate::record::RequestRow;
use crate::scenario::AnyScenario;
use crate::sim::sched::SchedRow;

const GOOD: &str = r#"
title = "t"
question = "q?"
rig = "simulated"
schedulers = ["inline-dfcfs", "inline-cfcfs"]
workers = [1, 2]
rates = ["20k", "90k"]
[service]
workloads = ["10us", "0.9:10us,0.1:100us"]
[simulation]
lock = 40.0
"#;

fn parsed(text: &str) -> Result<RequestScenario, ScenarioError> {
    match AnyScenario::parse("s.toml", text)? {
        AnyScenario::Requests(scenario) => Ok(*scenario),
        AnyScenario::Packets(scenario) => panic!("{} is about requests", scenario.name),
    }
}

fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    parsed(&GOOD.replace(from, to)).unwrap_err().to_string()
}

fn rows(scenario: &RequestScenario) -> Vec<SchedRow> {
    let mut all = Vec::new();
    let costs = scenario.costs().unwrap();
    scenario.simulate(&costs, 2, |rows| all.extend(rows.iter().cloned())).unwrap();
    all
}

#[test]
fn every_scheduler_has_a_row_for_each_workload_rate_and_number_of_workers() {
    let rows = rows(&parsed(GOOD).unwrap());
    let mut places: Vec<_> = rows
        .iter()
        .map(|row| (row.cores, row.workload.as_str(), row.offered as u64, row.scheduler.as_str()))
        .collect();
    let all = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!((places.len(), all), (16, 16), "{places:?}");
    for row in &rows {
        assert!([20_000.0, 90_000.0].contains(&row.offered) && row.lock_ns == 40.0, "{row:?}");
        assert!(row.saturated == (row.offered > row.capacity), "{row:?}");
        let has_classes = row.workload == "0.9:10us,0.1:100us";
        let read = RequestRow::read(&serde_json::to_value(row).unwrap()).unwrap();
        assert_eq!(read.classes.len(), if has_classes && !row.saturated { 2 } else { 0 });
    }
    assert_eq!(rows.iter().filter(|row| row.saturated).count(), 4);
    // At a quarter of the load, a request takes its service time and the thesis's two microseconds of TCP.
    let one = rows.iter().find(|row| (row.cores, row.workload.as_str()) == (1, "constant-10us"));
    let median = one.unwrap().p50_us;
    assert!((12.0..14.0).contains(&median), "{median}");
}

#[test]
fn the_scenario_that_comes_along_finds_that_one_queue_is_best_for_unequal_requests() {
    let AnyScenario::Requests(mut scenario) = AnyScenario::open("schedulers").unwrap() else {
        panic!("it is about requests");
    };
    assert_eq!(scenario.rig, Rig::Pumped);
    scenario.loads = vec![0.5];
    let rows = rows(&scenario);
    assert_eq!(rows.len(), 8);
    let p999 = |scheduler: &str, workload: &str| {
        let is_it = |row: &&SchedRow| (row.scheduler == scheduler) && row.workload == workload;
        rows.iter().find(is_it).unwrap().p999_us
    };
    let unequal = "0.99:10us,0.01:500us";
    assert!(p999("inline-cfcfs", unequal) < p999("inline-dfcfs", unequal), "{rows:?}");
    assert!(p999("inline-cfcfs", "constant-10us") < p999("inline-cfcfs", unequal), "{rows:?}");
}

#[test]
fn the_rig_gets_what_the_scenario_states() {
    let text = GOOD.replace(
        "[service]",
        "rounds = 5\nwindow = \"20ms\"\n[service]\noutstanding = 2\nburst = 4",
    );
    let text =
        text.replace("[\"10us\"", "[\"null\", \"10us\"").replace("\"simulated\"", "\"pumped\"");
    let scenario = parsed(&text).unwrap();
    let operations = rheostat_serve::work::Operations::new([(10_000, 2_480), (100_000, 24_800)]);
    let bench = scenario.bench(2, &operations, || 0);
    assert_eq!(bench.loads, [OfferedLoad::Rate(20_000.0), OfferedLoad::Rate(90_000.0)]);
    assert_eq!((bench.workers, bench.rounds, bench.windows), (2, 5, 2));
    assert_eq!((bench.window, bench.connections), (Duration::from_millis(20), CONNECTIONS));
    assert_eq!((bench.outstanding, bench.burst), (Outstanding::TWO, 4));
    let names: Vec<String> = bench.workloads.iter().map(RigWorkload::to_string).collect();
    assert_eq!(names, ["null", "constant-10us", "0.9:10us,0.1:100us"]);
    assert_eq!(scenario.targets(), [10_000, 10_000, 100_000]);
    let problem = scenario.simulate(&scenario.costs().unwrap(), 1, |_| {}).unwrap_err().to_string();
    assert!(problem.starts_with("s.toml, line 13: `service.workloads`: `null` is"), "{problem}");
}

#[test]
fn a_rate_far_above_what_workers_can_do_is_refused_with_one_that_is_possible() {
    let scenario = parsed(&GOOD.replace("\"90k\"", "\"1M\"")).unwrap();
    let mut simulated = 0;
    let result = scenario.simulate(&scenario.costs().unwrap(), 2, |rows| simulated += rows.len());
    let problem = result.unwrap_err().to_string();
    // A request takes 12 us of one worker.
    assert!(problem.starts_with("s.toml, line 7: `rates`: constant-10us on 1"), "{problem}");
    assert!(problem.contains("at most 166666 per second"), "{problem}");
    assert_eq!(simulated, 0);
}

#[test]
fn mistakes_are_refused_with_the_line_and_what_would_be_right() {
    for (from, to, line, says) in [
        ("inline-cfcfs", "inline-fifo", "line 5", "use inline-cfcfs, inline-dfcfs"),
        ("\"10us\"", "\"10\"", "line 9", "us"),
        ("0.1:100us", "0.2:100us", "line 9", "add up to 1.1"),
        ("\"10us\"", "\"constant-1\"", "line 9", "write constant-10us"),
        ("\"simulated\"", "\"simulator\"", "line 4", "`pumped`"),
        ("\"20k\"", "\"20 kpps\"", "line 7", "k, M, G"),
        ("[service]", "policies = [\"rss\"]\n[service]", "line 8", "unknown field `policies`"),
        ("lock = 40.0", "costs = \"guess\"", "line 11", "measured:FILE"),
        ("lock = 40.0", "lock = -1.0", "line 11", "`simulation.lock`: between 0 and"),
        ("[1, 2]", "[0]", "line 6", "`workers`: needs numbers from 1 to 64"),
        (
            "[\"inline-dfcfs\", \"inline-cfcfs\"]",
            "[]",
            "line 5",
            "`schedulers`: needs at least one",
        ),
        ("inline-dfcfs", "dispatcher-1:2", "line 5", "dispatcher-1:2 has 3 workers"),
        ("\"20k\"", "\"0\"", "line 7", "`rates`: a rate is between 1 and"),
        ("[service]", "loads = [0.5]\n[service]", "line 7", "either `loads` or `rates`"),
        ("rates = [\"20k\", \"90k\"]", "loads = [2.5]", "line 7", "`loads`: a load is a share"),
        ("[service]", "rounds = 0\n[service]", "line 8", "`rounds`: between 1 and 1000"),
        ("[service]", "window = \"1us\"\n[service]", "line 8", "`window`: between 1ms and 10s"),
        ("[service]", "[service]\noutstanding = 3", "line 9", "`service.outstanding`: 1, or 2"),
        ("[service]", "[service]\nburst = 33", "line 9", "`service.burst`: between 1 and 32"),
        ("[service]", "[service]\nconnections = 0", "line 9", "`service.connections`: between"),
        ("[service]", "[service]\narrivals = \"uniform\"", "line 9", "exponential gaps"),
        ("[service]", "times = true\n[service]", "line 8", "`times`: a simulation times no"),
        ("\"10us\"", "\"lognormal:10us\"", "line 9", "`lognormal:10us` is not simulated"),
    ] {
        let message = refused(from, to);
        assert!(message.starts_with("s.toml") && message.contains(line), "{to}: {message}");
        assert!(message.contains(says), "{to}: {message}");
    }
    assert_eq!(
        refused("rates = [\"20k\", \"90k\"]", ""),
        "s.toml: `loads`: write either `loads` or `rates`, and not both"
    );
}
