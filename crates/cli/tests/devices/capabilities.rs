//! Which capabilities live devices need, and which a run keeps.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use std::fs;

use rheostat_testkit::namespace::isolated;

use super::instance::Instance;
use super::place::{Place, pairs};
use super::text;

/// The capabilities that the unit gives, which it may also be limited to.
fn unit_capabilities() -> Vec<&'static str> {
    let unit = include_str!("../../../../packaging/rheo@.service");
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
                assert!(errors.contains(&format!("without {missing};")), "{kind}: {errors}");
                assert_eq!(errors.lines().count(), 1, "{kind} without {missing}: {errors}");
            }
        }
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
