//! Runs whose lanes share receive queues: nothing is lost, packets that any lane may process stay where they were claimed,
//! and whatever cannot be shared is refused.
//!
//! Timed: threads, processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rheostat_io::backend::pcap::read_all;
use rheostat_testkit::captures;
use serde_json::Value;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

/// A report whose lines are wrapped, on one line.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    // Continued lines have a bar in front.
    text.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ")
}

/// A simulated device that forwards everything.
const WIRE: &str = "chain = { functions = [] }\n\
    [[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"50kpps\"\ninside = [\"10.0.0.0/8\"]\n";

fn write(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("config.toml");
    fs::write(&path, text).unwrap();
    path
}

fn rheo(command: &str, config: &Path, more: &[&str]) -> Output {
    Command::new(RHEO).arg(command).arg(config).args(more).output().unwrap()
}

/// The summary of a run in which every packet is accounted for.
fn summary(config: &Path) -> Value {
    let output = rheo("run", config, &["--json", "--seed", "5"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["invariants"], "ok", "{errors}");
    summary
}

fn sum(values: &Value, name: &str) -> u64 {
    values.as_array().unwrap().iter().map(|value| value[name].as_u64().unwrap()).sum()
}

fn dropped(summary: &Value) -> u64 {
    summary["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn lanes_of_shared_queues_receive_all_packets_by_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    for (workers, lanes, sharing, driver, polling) in [
        (2, 2, 2, "pumped", "busy"),
        (2, 4, 2, "pumped", "metronome"),
        (2, 4, 4, "threaded", "interrupt"),
        (1, 2, 2, "threaded", "step-sleep"),
    ] {
        let text = format!(
            "{WIRE}driver = \"{driver}\"\ntraffic = {{ flows = 100, packets = 5000 }}\n\
             [workers]\ncount = {workers}\nlanes = {lanes}\nqueue_sharing = {sharing}\n\
             [polling]\npolicy = \"{polling}\"\n"
        );
        let summary = summary(&write(folder.path(), &text));
        assert_eq!(summary["received"], 5_000);
        assert_eq!(summary["sent"].as_u64().unwrap() + dropped(&summary), 5_000);
        assert_eq!(summary["handoff"], 0, "packets stay with the lane that claims them");
        let queues = summary["shared_queues"].as_array().unwrap();
        assert_eq!(queues.len(), lanes / sharing);
        let claimed: u64 = queues.iter().map(|queue| sum(&queue["lanes"], "packets")).sum();
        assert_eq!(claimed, sum(&summary["lanes"], "packets"));
        let numbers: Vec<_> = queues
            .iter()
            .flat_map(|queue| queue["lanes"].as_array().unwrap())
            .map(|lane| lane["lane"].as_u64().unwrap() as usize)
            .collect();
        assert_eq!(numbers, (0..lanes).collect::<Vec<_>>());
    }
}

#[test]
fn the_number_of_lanes_is_rounded_up_to_whole_queues() {
    let folder = tempfile::tempdir().unwrap();
    let more = "traffic = { flows = 10, packets = 100 }\n[workers]\ncount = 1\nqueue_sharing = 3\n";
    let summary = summary(&write(folder.path(), &format!("{WIRE}{more}")));
    assert_eq!(summary["lanes"].as_array().unwrap().len(), 3);
}

/// Packets of a capture, by their bytes.
fn packets(path: &Path) -> BTreeMap<Vec<u8>, usize> {
    let (records, fault) = read_all(&fs::read(path).unwrap()).unwrap();
    assert!(fault.is_none(), "{fault:?}");
    let mut packets = BTreeMap::new();
    for record in records {
        *packets.entry(record.bytes).or_default() += 1;
    }
    packets
}

/// A capture of 3,000 packets of 200 flows, made in this folder.
fn generated(folder: &Path) -> PathBuf {
    let path = folder.join("in.pcap");
    let made = Command::new(RHEO)
        .args(["gen", "--packets", "3k", "--flows", "200", "--seed", "7", "--output"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    path
}

/// A chain without functions from one capture to another, up to the number of workers.
fn through_nothing(input: &Path, output: &Path) -> String {
    format!(
        "chain = {{ functions = [] }}\n\
         [[device]]\nname = \"wire\"\nkind = \"pcap\"\ninput = {input:?}\noutput = {output:?}\n\
         inside = [\"10.0.0.0/8\"]\n\
         [workers]\ncount = 2\n"
    )
}

#[test]
fn a_capture_whose_queue_lanes_share_leaves_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.pcap");
    let input = generated(folder.path());
    for (lanes, sharing) in [(2, 2), (4, 2), (3, 3)] {
        let workers = format!("lanes = {lanes}\nqueue_sharing = {sharing}\n");
        let text = through_nothing(&input, &output) + &workers;
        let summary = summary(&write(folder.path(), &text));
        assert_eq!((&summary["received"], &summary["sent"]), (&3_000.into(), &3_000.into()));
        assert_eq!(packets(&output), packets(&input));
        assert_eq!(packets(&output).values().sum::<usize>(), 3_000);
    }
}

/// Packets of a capture in its order.
fn sequence(path: &Path) -> Vec<Vec<u8>> {
    let (records, fault) = read_all(&fs::read(path).unwrap()).unwrap();
    assert!(fault.is_none(), "{fault:?}");
    records.into_iter().map(|record| record.bytes).collect()
}

#[test]
fn packets_of_lanes_that_share_a_queue_leave_in_order_if_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.pcap");
    let input = generated(folder.path());
    for lanes in [2, 4] {
        let workers = format!("queue_sharing = {lanes}\nordered = true\n");
        let text = through_nothing(&input, &output) + &workers;
        let summary = summary(&write(folder.path(), &text));
        assert_eq!((&summary["received"], &summary["sent"]), (&3_000.into(), &3_000.into()));
        assert!(sequence(&output) == sequence(&input), "{lanes} lanes: something is out of order");
        let queue = &summary["shared_queues"][0];
        let claims = sum(&queue["lanes"], "claims");
        // A claim of more than a burst is taken, and leaves, in several turns.
        let turns = queue["departures"]["turns"].as_u64().unwrap();
        assert!((claims..=3_000).contains(&turns), "{turns} turns of {claims} claims have left");
    }
}

#[test]
fn order_without_sharing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        rheo("check", &write(folder.path(), &format!("{WIRE}[workers]\nordered = true\n")), &[]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("are in order anyway"), "{errors}");
}

#[test]
fn functions_on_shared_objects_process_packets_where_they_are_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let port = |name| {
        format!(
            "[[device]]\nname = \"{name}\"\nkind = \"sim\"\nside = \"inside\"\nrate = \"50kpps\"\n\
             traffic = {{ stations = 100, packets = 4000 }}\n"
        )
    };
    let bridge = format!(
        "{}{}[chain]\nfunctions = [\"bridge\"]\n[workers]\ncount = 2\nqueue_sharing = 2\n",
        port("left"),
        port("right")
    );
    let nat = "[[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"50kpps\"\ninside = [\"10.0.0.0/8\"]\n\
        traffic = { flows = 100, packets = 5000 }\n\
        [chain]\nfunctions = [\"nat\"]\n[function.nat]\nexternal = [\"203.0.113.1\"]\nstate = \"shared\"\n\
        [workers]\ncount = 2\nqueue_sharing = 2\n";
    for text in [&bridge, nat] {
        let summary = summary(&write(folder.path(), text));
        assert!(summary["received"].as_u64().unwrap() >= 4_000);
        assert_eq!(summary["handoff"], 0, "{text}");
    }
}

/// Chains that keep flows in shards, and their settings.
const OWNERS: [(&str, &str); 7] = [
    (r#""firewall""#, ""),
    (r#""nat""#, "[function.nat]\nexternal = [\"203.0.113.1\"]\n"),
    (
        r#""nat""#,
        "[function.nat]\nexternal = [\"203.0.113.1\"]\nmapping = \"address-and-port-dependent\"\n",
    ),
    (r#""firewall", "nat""#, "[function.nat]\nexternal = [\"203.0.113.1\"]\n"),
    (
        r#""policer""#,
        "[function.policer]\nper = \"inside\"\nmeter = \"plain\"\nrate = \"1Mbps\"\nburst = \"20kB\"\n",
    ),
    (r#""monitor""#, ""),
    (
        r#""lb""#,
        "[function.lb]\nseed = 7\n[[function.lb.service]]\nname = \"web\"\nvip = \"10.1.0.1\"\nport = \"443\"\nprotocol = \"tcp\"\n\
         mode = \"nat\"\nbackend = [{ address = \"10.2.0.1\", port = 443 }, { address = \"10.2.0.2\", port = 443 }]\n",
    ),
];

#[test]
fn lanes_that_own_shards_together_process_all_packets() {
    let folder = tempfile::tempdir().unwrap();
    for (functions, settings) in OWNERS {
        for (lanes, ordered) in [(2, false), (4, true)] {
            let text = format!(
                "chain = {{ functions = [{functions}] }}\n\
                 [[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"100kpps\"\ninside = [\"10.0.0.0/8\"]\n\
                 traffic = {{ flows = 100, packets = 5000 }}\n{settings}\
                 [workers]\ncount = 2\nlanes = {lanes}\nqueue_sharing = 2\nordered = {ordered}\n\
                 [polling]\npolicy = \"metronome\"\n"
            );
            let summary = summary(&write(folder.path(), &text));
            assert_eq!(summary["received"], 5_000, "{functions}");
            let shards = &summary["shared_shards"];
            assert_eq!(shards["shards"], 128, "{functions}");
            assert!(shards["visits"].as_u64().unwrap() > 100, "{functions}: {shards}");
            let peak = summary["flows"]["peak"].as_u64().unwrap();
            let created = summary["flows"]["created"].as_u64().unwrap();
            assert!(peak <= created, "{functions}: {peak} of {created} at once");
        }
    }
}

#[test]
fn a_capture_leaves_lanes_that_own_shards_together_as_it_leaves_one() {
    let folder = tempfile::tempdir().unwrap();
    let mix = generated(folder.path());
    let visitors = folder.path().join("visitors.pcap");
    let made = Command::new(RHEO)
        .args(["gen", "--traffic", "visitors", "--target", "10.1.0.1:443", "--packets", "3k"])
        .args(["--seed", "7", "--output"])
        .arg(&visitors)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for (functions, settings) in OWNERS {
        let input = if functions.contains("lb") { &visitors } else { &mix };
        let run = |workers: &str| {
            let output = folder.path().join("out.pcap");
            let text = through_nothing(input, &output)
                .replace("functions = []", &format!("functions = [{functions}]"))
                .replace("[workers]", &format!("{settings}[workers]"));
            let summary = summary(&write(folder.path(), &(text + workers)));
            (sequence(&output), summary["dropped"].clone(), summary["flows"]["created"].clone())
        };
        let one = run("lanes = 1\n");
        assert!(one.0.len() > 100, "{functions}: {} packets prove little", one.0.len());
        assert!(one.2.as_u64() > Some(50), "{functions}: {} flows prove little", one.2);
        assert!(run("lanes = 2\nqueue_sharing = 2\n") == one, "{functions}, 2 lanes");
        assert!(run("lanes = 4\nqueue_sharing = 2\n") == one, "{functions}, 4 lanes");
    }
}

#[test]
fn captures_leave_lanes_on_threads_as_they_leave_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut handed_over = 0;
    captures::for_each(|capture| {
        let run = |workers: &str| {
            let output = folder.path().join("out.pcap");
            let text = through_nothing(Path::new(&capture.name()), &output)
                .replace(
                    "10.0.0.0/8\"",
                    "10.0.0.0/8\", \"172.16.0.0/12\", \"192.168.0.0/16\", \"fc00::/7\"",
                )
                .replace("functions = []", "functions = [\"firewall\", \"nat\"]")
                .replace("[workers]", "[function.nat]\nexternal = [\"203.0.113.1\"]\n[workers]");
            let summary = summary(&write(folder.path(), &(text + workers)));
            let sent = summary["sent"].as_u64().unwrap();
            // Without packets there may be no file.
            let sent = if sent > 0 { sequence(&output) } else { Vec::new() };
            (sent, summary["dropped"].clone(), summary["handoff"].as_u64().unwrap())
        };
        let (one, shared) = (run("lanes = 1\n"), run("lanes = 2\nqueue_sharing = 2\n"));
        assert!(one.0 == shared.0, "{}: something else left", capture.name());
        assert_eq!(one.1, shared.1, "{}", capture.name());
        handed_over += shared.2;
    });
    let ran = std::env::var_os("RHEO_TRACES").is_some();
    assert!(!ran || handed_over > 0, "no fragment met the others of its datagram elsewhere");
}

#[test]
fn check_tells_that_lanes_share_queues_and_refuses_chains_that_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let sharing = "[workers]\nqueue_sharing = 2\n";
    let output = rheo("check", &write(folder.path(), &format!("{WIRE}{sharing}")), &[]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains(", 2 to a queue"), "{told}");
    let firewall = WIRE.replace("[]", "[\"firewall\"]");
    let output = rheo("check", &write(folder.path(), &format!("{firewall}{sharing}")), &[]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(", 2 to a queue, which own its shards together"), "{told}");
    for (command, function) in [("check", "antiddos"), ("run", "antiddos")] {
        let refused = WIRE.replace("[]", &format!("[\"{function}\"]"));
        let output = rheo(command, &write(folder.path(), &format!("{refused}{sharing}")), &[]);
        let errors = words(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(&format!("a transaction of `{function}` is about")), "{errors}");
        assert!(errors.contains("remove `queue_sharing`"), "{errors}");
    }
    let rsspp = format!("{firewall}{sharing}[balance]\npolicy = \"rsspp\"\n");
    let errors = words(&rheo("check", &write(folder.path(), &rsspp), &[]).stderr);
    assert!(errors.contains("no policy moves shards between them"), "{errors}");
}

#[test]
fn lanes_share_queues_of_live_devices_that_have_rings_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = |kind: &str, functions: &str| {
        let port = |name: &str, side: &str| {
            format!(
                "[[device]]\nname = \"{name}\"\nkind = \"{kind}\"\ninterface = \"{name}\"\nside = \"{side}\"\n"
            )
        };
        let workers = "[workers]\nlanes = 4\nqueue_sharing = 2\nordered = true\n";
        let chain = format!("[chain]\nfunctions = [{functions}]\n");
        format!("{}{}{chain}{workers}", port("lan", "inside"), port("wan", "outside"))
    };
    let output = rheo("check", &write(folder.path(), &text("af_xdp", "")), &["--offline"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains(", 2 to a queue"), "{told}");
    for (kind, functions, why) in [
        ("af_xdp", "\"antiddos\"", "a transaction of `antiddos` is about"),
        ("af_packet", "", "device `lan`: the kernel gives each lane a ring of its own"),
        ("tap", "", "device `wan`: the kernel gives each lane a queue of its own"),
    ] {
        let output = rheo("check", &write(folder.path(), &text(kind, functions)), &["--offline"]);
        let errors = words(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "{errors}");
    }
}
