//! Interfaces that go and come back: the run takes them up again.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use std::fs;

use rheostat_testkit::namespace::{isolated, shell};
use serde_json::Value;

use super::instance::Instance;
use super::place::{Place, pairs};
use super::{link, sum};

fn device<'a>(status: &'a Value, name: &str) -> &'a Value {
    let devices = status["devices"].as_array().unwrap();
    devices.iter().find(|device| device["device"] == name).unwrap()
}

/// Broadcasts that arrive at `va`.
const ASK: &str = "ip neigh flush dev vb; ping -c 1 -W 1 -i 0.2 -I vb 10.1.1.1";

/// A configuration whose `lan` has packet sockets on `va` and whose `wan` is the tap `tc`.
fn beside_tap() -> Place {
    let place = Place::new();
    let config = place.config("af_packet", ["va", "tc"], "on_loss = \"wait\"");
    let text = fs::read_to_string(&config).unwrap();
    let (lan, wan) = text.split_once("name = \"wan\"").unwrap();
    let wan = wan.replacen("af_packet", "tap", 1);
    fs::write(&config, format!("{lan}name = \"wan\"{wan}")).unwrap();
    place
}

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

/// Takes the interface of each side away in ways after which it is the same interface, while packets come from `vb`.
fn returns(mut instance: Instance, interfaces: [&str; 2]) {
    shell("ip netns add away");
    let sent = |status: &Value| device(status, "wan")["sent"].as_u64().unwrap();
    instance.until("sent", ASK, |status| sent(status) > 0);
    let ways = [
        ("ip link set $I name elsewhere", "ip link set elsewhere name $I"),
        (
            "ip link set $I down; ip link set $I name elsewhere; ip link set elsewhere up",
            "ip link set elsewhere down; ip link set elsewhere name $I; ip link set $I up",
        ),
        ("ip link set $I netns away", "ip -n away link set $I netns $$; ip link set $I up"),
    ];
    let mut returned = 0;
    for (away, back) in ways {
        returned += 1;
        for (name, interface) in ["wan", "lan"].into_iter().zip(interfaces) {
            let of = |line: &str| line.replace("$I", interface);
            let is =
                |state: &'static str| move |status: &Value| link(status, name)["state"] == state;
            shell(&of(away));
            instance.until("gone", "", is("gone"));
            for _ in 0..5 {
                let status = instance.status();
                assert!(is("gone")(&status), "{away}: {status}");
            }
            let before = sent(&instance.status());
            shell(&of(back));
            instance.until(back, ASK, |status| sent(status) > before);
            let status = instance.until("up", "", is("up"));
            assert_eq!(link(&status, name)["returned"], returned, "{back}: {status}");
        }
    }
    let (code, summary) = instance.stop();
    let log = instance.log();
    assert_eq!((code, summary["invariants"].as_str()), (0, Some("ok")), "{summary}\n{log}");
    assert_eq!(sum(&summary).0, sum(&summary).1, "{summary}");
}

fn renamed_and_moved(kind: &str) {
    pairs();
    let place = Place::new();
    place.config(kind, ["va", "vc"], "on_loss = \"wait\"");
    returns(Instance::start(place), ["vc", "va"]);
}

#[test]
fn af_xdp_takes_an_interface_up_again_that_was_renamed_or_moved() {
    let name = "af_xdp_takes_an_interface_up_again_that_was_renamed_or_moved";
    isolated(module_path!(), name, || renamed_and_moved("af_xdp"));
}

#[test]
fn af_packet_takes_an_interface_up_again_that_was_renamed_or_moved() {
    let name = "af_packet_takes_an_interface_up_again_that_was_renamed_or_moved";
    isolated(module_path!(), name, || renamed_and_moved("af_packet"));
}

#[test]
fn a_tap_is_taken_up_again_that_was_renamed_or_moved() {
    isolated(module_path!(), "a_tap_is_taken_up_again_that_was_renamed_or_moved", || {
        pairs();
        returns(Instance::start(beside_tap()), ["tc", "va"]);
    });
}

/// Detaches the program of `vc`.
fn detach() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/devices/detach.py");
    shell(&format!("python3 {script} vc"));
}

#[test]
fn a_program_that_was_detached_is_attached_again() {
    isolated(module_path!(), "a_program_that_was_detached_is_attached_again", || {
        pairs();
        let place = Place::new();
        place.config("af_xdp", ["va", "vc"], "on_loss = \"wait\"");
        let mut instance = Instance::start(place);
        // From the other side: what `vc` does not get is lost.
        shell("ip addr add 10.1.2.2/24 dev vd");
        let ask = "ip neigh flush dev vd; ping -c 1 -W 1 -i 0.2 -I vd 10.1.2.1";
        let sent = |status: &Value| device(status, "lan")["sent"].as_u64().unwrap();
        instance.until("sent", ask, |status| sent(status) > 0);
        detach();
        let returned = |status: &Value| link(status, "wan")["returned"] == 1;
        let status = instance.until("attached again", "", returned);
        assert_eq!(link(&status, "wan")["vanished"], 1, "{status}");
        let before = sent(&status);
        let status = instance.until("sent again", ask, |status| sent(status) > before);
        assert_eq!(link(&status, "wan")["state"], "up", "{status}");
        let (code, summary) = instance.stop();
        let log = instance.log();
        assert_eq!((code, summary["invariants"].as_str()), (0, Some("ok")), "{summary}\n{log}");
        assert_eq!(sum(&summary).0, sum(&summary).1, "{summary}");
        let detached = "interface `vc` was detached by another process; packets to it are dropped";
        assert!(log.contains(detached), "{log}");
    });
}

#[test]
fn a_run_ends_when_its_program_is_detached() {
    isolated(module_path!(), "a_run_ends_when_its_program_is_detached", || {
        pairs();
        let place = Place::new();
        place.config("af_xdp", ["va", "vc"], "on_loss = \"exit\"");
        let mut instance = Instance::start(place);
        detach();
        let (code, summary) = instance.ended();
        let log = instance.log();
        assert_eq!((code, summary["invariants"].as_str()), (3, Some("ok")), "{summary}\n{log}");
        assert_eq!(link(&summary, "wan")["state"], "detached", "{summary}");
        assert!(log.contains("`vc` was detached by another process; the run ends"), "{log}");
    });
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
        let mut instance = Instance::start(beside_tap());
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
