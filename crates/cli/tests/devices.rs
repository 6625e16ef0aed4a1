//! Live devices of a running `rheo`, each test in a network namespace of its own: rights, interfaces that are
//! named twice, and interfaces that go away and come back. As root, with RHEO_ROOT_TESTS=1.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::veth::await_links;
use serde_json::Value;
use tempfile::TempDir;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");
/// For what happens at once on a machine that is not overloaded.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Two interfaces, `va` and `vc`, and the far ends `vb` and `vd` of their cables.
const PAIRS: &str = "ip link add va type veth peer name vb; ip link add vc type veth peer name vd
for i in va vb vc vd; do sysctl -qw net.ipv6.conf.$i.disable_ipv6=1; ip link set $i up; done
ip addr add 10.1.1.2/24 dev vb";

/// Makes them.
fn pairs() {
    shell(PAIRS);
    await_links(&["va", "vb", "vc", "vd"]);
}

/// A folder that every user can look into, with a copy of the binary and a configuration.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::copy(RHEO, folder.path().join("rheo")).unwrap();
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a configuration that passes packets between two interfaces.
    fn config(&self, kind: &str, interfaces: [&str; 2], more: &str) -> PathBuf {
        let device = |name: &str, side: &str, interface: &str| {
            format!(
                "[[device]]\nname = \"{name}\"\nkind = \"{kind}\"\ninterface = \"{interface}\"\n\
                 side = \"{side}\"\n{more}\n"
            )
        };
        let [lan, wan] = interfaces;
        let text = device("lan", "inside", lan)
            + &device("wan", "outside", wan)
            + "[chain]\nfunctions = []\n[workers]\nlanes = 2\n[polling]\npolicy = \"interrupt\"\n";
        let path = self.path("config.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// A run to its end, with exactly these capabilities, as this user.
    fn run_with(&self, user: &str, capabilities: &[&str]) -> Output {
        let given = |lists: &[&str]| {
            let names = lists.iter().map(|name| format!("+{}", name.to_lowercase()));
            std::iter::once("-all".to_owned()).chain(names).collect::<Vec<_>>().join(",")
        };
        let short: Vec<_> =
            capabilities.iter().map(|name| name.strip_prefix("CAP_").unwrap()).collect();
        let set = given(&short);
        Command::new("setpriv")
            .args(["--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"])
            .args(["--bounding-set", &set, "--inh-caps", &set, "--ambient-caps", &set, "--"])
            .arg(self.path("rheo"))
            .arg("run")
            .arg(self.path("config.toml"))
            .args(["--json", "--duration", "200ms"])
            .output()
            .expect("setpriv (util-linux) is installed")
    }
}

/// The capabilities that the unit gives, which it may also be limited to.
fn unit_capabilities() -> Vec<&'static str> {
    let unit = include_str!("../../../packaging/rheo@.service");
    let list = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("the unit has no {key}"))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    let ambient = list("AmbientCapabilities");
    assert_eq!(ambient, list("CapabilityBoundingSet"));
    ambient
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn live_devices_start_with_the_capabilities_of_the_unit() {
    isolated(module_path!(), "live_devices_start_with_the_capabilities_of_the_unit", || {
        pairs();
        let place = Place::new();
        // /dev/net/tun may be closed to others than root, where there is no udev.
        for (kind, interfaces, user) in [
            ("af_xdp", ["va", "vc"], "65534"),
            ("af_packet", ["va", "vc"], "65534"),
            ("tap", ["ta", "tc"], "0"),
        ] {
            place.config(kind, interfaces, "");
            let output = place.run_with(user, &unit_capabilities());
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{kind}: {errors}");
            assert!(text(&output.stdout).contains("\"invariants\":\"ok\""), "{kind}: {errors}");
        }
    });
}

#[test]
fn a_missing_capability_is_named_in_one_line() {
    isolated(module_path!(), "a_missing_capability_is_named_in_one_line", || {
        pairs();
        let place = Place::new();
        for (kind, needed) in [
            ("af_xdp", ["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"].as_slice()),
            ("af_packet", &["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"]),
            ("tap", &["CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"]),
        ] {
            let interfaces = if kind == "tap" { ["ta", "tc"] } else { ["va", "vc"] };
            place.config(kind, interfaces, "");
            for missing in needed {
                let mut rest = unit_capabilities();
                rest.retain(|name| name != missing);
                let output = place.run_with("0", &rest);
                let errors = text(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{kind} without {missing}: {errors}");
                assert!(errors.contains(&format!("it lacks {missing};")), "{kind}: {errors}");
                assert_eq!(errors.lines().count(), 1, "{kind} without {missing}: {errors}");
            }
        }
    });
}

/// A run that goes on.
struct Instance {
    place: Place,
    child: Child,
}

impl Instance {
    /// Starts what the place's configuration says, and waits until it answers.
    fn start(place: Place) -> Instance {
        let log = fs::File::create(place.path("log")).unwrap();
        let out = fs::File::create(place.path("out")).unwrap();
        let child = Command::new(RHEO)
            .arg("run")
            .arg(place.path("config.toml"))
            .args(["--json", "--duration", "3600s", "--control"])
            .arg(place.path("socket"))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()
            .unwrap();
        let mut instance = Instance { place, child };
        let start = Instant::now();
        while instance.try_status().is_none() {
            let has_ended = instance.child.try_wait().unwrap().is_some();
            assert!(!has_ended && start.elapsed() < TIMEOUT, "no answer: {}", instance.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        instance
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path("log")).unwrap()
    }

    fn try_status(&self) -> Option<Value> {
        let socket = self.place.path("socket");
        let output =
            Command::new(RHEO).args(["status", "--json", "--control"]).arg(socket).output();
        let output = output.unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    fn status(&self) -> Value {
        self.try_status().unwrap_or_else(|| panic!("no answer: {}", self.log()))
    }

    /// Does something again and again until the status is as it should be.
    fn until(&self, what: &str, again: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            if !again.is_empty() {
                shell(&format!("{{ {again}; }} >/dev/null 2>&1 || true"));
            }
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "not {what}: {status}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end: exit status and summary.
    fn ended(&mut self) -> (i32, Value) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < TIMEOUT, "it goes on: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        };
        let out = fs::read_to_string(self.place.path("out")).unwrap();
        let summary = out.lines().last().map(serde_json::from_str);
        (status.code().unwrap(), summary.unwrap_or_else(|| panic!("{}", self.log())).unwrap())
    }

    fn stop(&mut self) -> (i32, Value) {
        shell(&format!("kill -TERM {}", self.child.id()));
        self.ended()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sum(summary: &Value) -> (u64, u64) {
    let count = |name: &str| summary[name].as_u64().unwrap();
    let dropped: u64 =
        summary["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    (
        count("received") + count("originated") + count("copied"),
        count("sent") + count("consumed") + count("held") + dropped,
    )
}

fn device<'a>(status: &'a Value, name: &str) -> &'a Value {
    let devices = status["devices"].as_array().unwrap();
    devices.iter().find(|device| device["device"] == name).unwrap()
}

fn link<'a>(status: &'a Value, name: &str) -> &'a Value {
    let links = status["links"].as_array().unwrap();
    links.iter().find(|link| link["device"] == name).unwrap()
}

#[test]
fn a_second_process_on_an_interface_is_refused() {
    isolated(module_path!(), "a_second_process_on_an_interface_is_refused", || {
        pairs();
        let place = Place::new();
        place.config("af_packet", ["va", "vc"], "");
        let mut first = Instance::start(place);
        let run = |config: &Path| {
            let mut rheo = Command::new(RHEO);
            rheo.arg("run").arg(config).args(["--json", "--duration", "200ms"]).output().unwrap()
        };
        let second = run(&first.place.path("config.toml"));
        assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
        assert!(text(&second.stderr).contains("`va` is in use by another process"));
        // The claim ends with its process, however that ends.
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        let third = run(&first.place.path("config.toml"));
        assert_eq!(third.status.code(), Some(0), "{}", text(&third.stderr));
    });
}

#[test]
fn one_interface_for_two_devices_is_refused_under_any_name() {
    isolated(module_path!(), "one_interface_for_two_devices_is_refused_under_any_name", || {
        pairs();
        shell("ip link property add dev va altname uplink");
        let place = Place::new();
        for (interfaces, said) in [
            (["va", "va"], "both have interface `va`"),
            (["va", "uplink"], "`uplink` is another name of `va`"),
        ] {
            for kind in ["af_packet", "af_xdp"] {
                let config = place.config(kind, interfaces, "");
                for command in ["check", "run"] {
                    let output = Command::new(RHEO).arg(command).arg(&config).output().unwrap();
                    let errors = text(&output.stderr);
                    assert_eq!(output.status.code(), Some(2), "{command} {interfaces:?}: {errors}");
                    assert!(errors.contains(said), "{command} {interfaces:?}: {errors}");
                }
            }
        }
    });
}

/// Workers that block until a device has packets, that come to it after a while, and that sleep between polls for ever.
const SLEEPING: [&str; 3] = [
    "policy = \"interrupt\"",
    "policy = \"metronome\"\nidle_after = \"1ms\"",
    "policy = \"metronome\"\nidle_after = \"never\"",
];

#[test]
fn a_run_ends_with_its_interface_while_all_workers_sleep_and_says_so() {
    let name = "a_run_ends_with_its_interface_while_all_workers_sleep_and_says_so";
    isolated(module_path!(), name, || {
        for (kind, polling) in
            ["af_xdp", "af_packet"].iter().flat_map(|kind| SLEEPING.map(|polling| (kind, polling)))
        {
            pairs();
            let place = Place::new();
            let path = place.config(kind, ["va", "vc"], "");
            let config = fs::read_to_string(&path).unwrap();
            assert!(config.contains(SLEEPING[0]));
            fs::write(&path, config.replace(SLEEPING[0], polling)).unwrap();
            let mut instance = Instance::start(place);
            let blocks = polling != SLEEPING[2];
            instance.until("asleep", "", |status| {
                let workers = status["polling"]["workers"].as_array().unwrap();
                let counter = if blocks { "blocks" } else { "wake_ups" };
                workers.iter().all(|worker| worker[counter].as_u64().unwrap() > 2)
            });
            shell("ip link del vc");
            let (code, summary) = instance.ended();
            let log = instance.log();
            assert_eq!(code, 3, "{kind}: {log}");
            assert!(log.contains("device `wan`: interface `vc` is gone; the run ends"), "{log}");
            assert_eq!(link(&summary, "wan")["state"], "gone", "{summary}");
            assert_eq!(
                (summary["invariants"].as_str(), sum(&summary).0),
                (Some("ok"), sum(&summary).1)
            );
            shell("ip link del va");
        }
    });
}

#[test]
fn down_and_up_are_events() {
    isolated(module_path!(), "down_and_up_are_events", || {
        pairs();
        let place = Place::new();
        place.config("af_xdp", ["va", "vc"], "");
        let mut instance = Instance::start(place);
        instance.until("up", "", |status| link(status, "wan")["state"] == "up");
        shell("ip link set vd down");
        instance.until("down", "", |status| link(status, "wan")["state"] == "down");
        shell("ip link set vd up");
        let status = instance.until("up", "", |status| link(status, "wan")["state"] == "up");
        assert_eq!(link(&status, "wan")["down"], 1, "{status}");
        let (code, summary) = instance.stop();
        assert_eq!((code, &link(&summary, "wan")["down"]), (0, &1.into()), "{summary}");
        // A change is told after it is shown.
        let log = instance.log();
        assert!(log.contains("device `wan`: interface `vc` has no carrier"), "{log}");
        assert!(log.contains("device `wan`: interface `vc` is up"), "{log}");
    });
}

/// Broadcasts that arrive at `va`.
const ASK: &str = "ip neigh flush dev vb; ping -c 1 -W 1 -i 0.2 -I vb 10.1.1.1";

/// Deletes and makes anew the interface of each side in turn, while packets come from `vb`.
fn comes_back(kind: &str) {
    pairs();
    let place = Place::new();
    place.config(kind, ["va", "vc"], "on_loss = \"wait\"");
    let mut instance = Instance::start(place);
    let sent = |status: &Value| device(status, "wan")["sent"].as_u64().unwrap();
    instance.until("sent", ASK, |status| sent(status) > 0);

    shell("ip link del vc");
    let gone = |status: &Value| link(status, "wan")["state"] == "gone";
    instance.until("gone", "", gone);
    let dropped = |status: &Value| status["dropped"]["link_down"].as_u64().unwrap_or(0);
    let before = dropped(&instance.status());
    let status = instance.until("dropped", ASK, |status| dropped(status) > before);
    let before = sent(&status);
    let anew = |near: &str, far: &str| {
        shell(&format!(
            "ip link add {near} type veth peer name {far}; sleep 0.3; for i in {near} {far}; do \
             sysctl -qw net.ipv6.conf.$i.disable_ipv6=1; ip link set $i up; done"
        ))
    };
    anew("vc", "vd");
    instance.until("sent again", ASK, |status| sent(status) > before);

    shell("ip link del va");
    instance.until("gone", "", |status| link(status, "lan")["state"] == "gone");
    anew("va", "vb");
    shell("ip addr add 10.1.1.2/24 dev vb");
    let before = sent(&instance.status());
    let status = instance.until("received again", ASK, |status| sent(status) > before);
    assert_eq!(link(&status, "wan")["vanished"], 1, "{status}");
    assert_eq!(link(&status, "wan")["returned"], 1, "{status}");
    // Packets may pass before it is shown that they do.
    instance.until("up", "", |status| link(status, "lan")["state"] == "up");
    // Nothing of the old device is left on the process: both interfaces are in use, and no others.
    let (code, summary) = instance.stop();
    let log = instance.log();
    assert_eq!((code, summary["invariants"].as_str()), (0, Some("ok")), "{summary}\n{log}");
    assert_eq!(sum(&summary).0, sum(&summary).1, "{summary}");
    assert_eq!(link(&summary, "lan")["state"], "up", "{summary}");
    assert!(log.contains("interface `vc` is gone; packets to it are dropped"), "{log}");
    assert!(log.contains("interface `vc` is back and in use again"), "{log}");
}

#[test]
fn af_xdp_takes_an_interface_up_again() {
    isolated(module_path!(), "af_xdp_takes_an_interface_up_again", || comes_back("af_xdp"));
}

#[test]
fn af_packet_takes_an_interface_up_again() {
    isolated(module_path!(), "af_packet_takes_an_interface_up_again", || comes_back("af_packet"));
}

#[test]
fn a_tap_is_taken_up_again() {
    isolated(module_path!(), "a_tap_is_taken_up_again", || {
        pairs();
        let place = Place::new();
        let config = place.config("af_packet", ["va", "tc"], "on_loss = \"wait\"");
        let text = fs::read_to_string(&config).unwrap();
        let (lan, wan) = text.split_once("name = \"wan\"").unwrap();
        let wan = wan.replacen("af_packet", "tap", 1);
        fs::write(&config, format!("{lan}name = \"wan\"{wan}")).unwrap();
        let mut instance = Instance::start(place);
        let sent = |status: &Value| device(status, "wan")["sent"].as_u64().unwrap();
        instance.until("sent", ASK, |status| sent(status) > 0);
        shell("ip link del tc");
        instance.until("gone", "", |status| link(status, "wan")["state"] == "gone");
        let dropped = |status: &Value| status["dropped"]["link_down"].as_u64().unwrap_or(0);
        let status = instance.until("dropped", ASK, |status| dropped(status) > 0);
        let before = sent(&status);
        shell("ip tuntap add dev tc mode tap multi_queue vnet_hdr");
        instance.until("sent again", ASK, |status| sent(status) > before);
        let (code, summary) = instance.stop();
        assert_eq!((code, summary["invariants"].as_str()), (0, Some("ok")), "{summary}");
        assert_eq!(sum(&summary).0, sum(&summary).1, "{summary}");
    });
}

#[test]
fn lossy_offloads_of_a_peer_are_told_at_the_start() {
    isolated(module_path!(), "lossy_offloads_of_a_peer_are_told_at_the_start", || {
        pairs();
        shell("for i in va vb vc; do ethtool -K $i tx off tso off gso off; done");
        let place = Place::new();
        place.config("af_xdp", ["va", "vc"], "");
        let mut instance = Instance::start(place);
        instance.stop();
        let log = instance.log();
        let warned = log.lines().find(|line| line.starts_with("warning: device `wan`"));
        assert!(warned.is_some_and(|line| line.contains("`ethtool -K vd tx off")), "{log}");
        assert!(!log.contains("warning: device `lan`"), "{log}");
    });
}

#[test]
fn one_thread_alone_keeps_capabilities_and_only_to_open_devices_again() {
    isolated(
        module_path!(),
        "one_thread_alone_keeps_capabilities_and_only_to_open_devices_again",
        || {
            pairs();
            for (more, keepers) in [("", vec![]), ("on_loss = \"wait\"", vec!["rheo-links"])] {
                let place = Place::new();
                place.config("af_packet", ["va", "vc"], more);
                let mut instance = Instance::start(place);
                let tasks = fs::read_dir(format!("/proc/{}/task", instance.child.id())).unwrap();
                let mut found = Vec::new();
                for task in tasks {
                    // A thread may have ended since.
                    let Ok(status) = fs::read_to_string(task.unwrap().path().join("status")) else {
                        continue;
                    };
                    let field = |name: &str| {
                        let line = status.lines().find_map(|line| line.strip_prefix(name));
                        line.unwrap().trim().to_owned()
                    };
                    let held = u64::from_str_radix(&field("CapPrm:"), 16).unwrap();
                    if held != 0 {
                        // NET_ADMIN, NET_RAW, IPC_LOCK, PERFMON and BPF.
                        assert_eq!(held, 1 << 12 | 1 << 13 | 1 << 14 | 1 << 38 | 1 << 39);
                        found.push(field("Name:"));
                    }
                    assert_eq!(field("NoNewPrivs:"), "1");
                }
                assert_eq!(found, keepers);
                instance.stop();
            }
        },
    );
}
