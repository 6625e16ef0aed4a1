//! Interfaces that go down, come up or go for good while a run uses them.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use std::fs;

use rheostat_testkit::namespace::{isolated, shell};

use super::instance::Instance;
use super::place::{Place, pairs};
use super::{link, sum};

/// Workers that block until a device has packets, that come to it after a while, and that sleep between polls for ever.
const SLEEPING: [&str; 3] = [
    "policy = \"interrupt\"",
    "policy = \"metronome\"\nidle_after = \"1ms\"",
    // Sleeps of a millisecond: shorter ones are spun where the machine's sleeps take too long.
    "policy = \"metronome\"\nidle_after = \"never\"\ntarget_vacation = \"1ms\"",
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
        // A change is logged after it is shown.
        let log = instance.log();
        assert!(log.contains("device `wan`: interface `vc` has no carrier"), "{log}");
        assert!(log.contains("device `wan`: interface `vc` is up"), "{log}");
    });
}
