//! `rheo test`, from the outside.
//!
//! Timed: processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const REPLY: &str = "\
# A host inside asks, and hosts outside answer.
also ipv6
at 0s lan 10.0.0.1:1000 > 198.51.100.1:53 udp len 30
  wan same
at 1s wan 198.51.100.1:53 > 10.0.0.1:1000 udp len 60
  lan same
at 2s wan 198.51.100.9:53 > 10.0.0.1:1000 udp len 60
  drop denied
";

fn rheo(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo"));
    command.arg("test").args(arguments).current_dir(folder).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_else(|| panic!("nothing printed: {}", stderr(output)));
    serde_json::from_str(last).unwrap()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn cases_run_by_their_own_lines_and_by_folder() {
    let nf = root().join("tests/nf");
    let some = ["nat-tcp.case", "lb-ipip.case", "monitor-tcp.case", "router-nat.case"];
    let output = rheo(&nf, &[&some[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = serde_json::json!({ "cases": 4, "passed": 4, "failed": 0, "failures": [] });
    assert_eq!(json(&output), expected);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.case"), REPLY).unwrap();
    fs::write(folder.path().join("b.case"), REPLY).unwrap();
    let output = rheo(folder.path(), &["."]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 cases: 2 passed, 0 failed\n");
}

#[test]
fn a_failure_names_line_expected_and_got() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.case"), REPLY).unwrap();
    fs::write(folder.path().join("bad.case"), REPLY.replace("  lan same", "  drop denied"))
        .unwrap();
    let output = rheo(folder.path(), &["good.case", "bad.case", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let outcome = json(&output);
    assert_eq!(
        (&outcome["cases"], &outcome["passed"], &outcome["failed"]),
        (&2.into(), &1.into(), &1.into())
    );
    let failure = serde_json::json!({
        "file": "bad.case", "line": 6, "expected": "drop denied",
        "got": "lan 198.51.100.1:53 > 10.0.0.1:1000 udp len 60", "on": "1 lane"
    });
    assert_eq!(outcome["failures"], Value::Array(vec![failure]));
    let output = rheo(folder.path(), &["bad.case"]);
    let expected =
        "bad.case:6: expected drop denied\n  got lan 198.51.100.1:53 > 10.0.0.1:1000 udp len 60\n";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
}

#[test]
fn a_configuration_gives_chain_settings_and_network() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("reply.case"), REPLY).unwrap();
    let firewall = root().join("configs/firewall-two-ports.toml");
    let firewall = firewall.to_str().unwrap();
    let output = rheo(folder, &[firewall, "reply.case"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // A chain without functions forwards what the firewall denies.
    let forward = root().join("configs/forward.toml");
    let output = rheo(folder, &[forward.to_str().unwrap(), "reply.case"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("reply.case:8: expected drop denied"), "{}", stderr(&output));
    // The addresses and routes of the devices: the router answers an ARP request for its own.
    let arp = "at 0s lan 192.168.77.9@02:00:00:00:00:09 > 192.168.77.1 arp request\n  \
               lan 192.168.77.1@04:04:04:04:04:04 > 192.168.77.9@02:00:00:00:00:09 arp reply\n";
    fs::write(folder.join("arp.case"), arp).unwrap();
    let router = root().join("configs/router.toml");
    let output = rheo(folder, &[router.to_str().unwrap(), "arp.case"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn cases_with_a_chain_of_their_own_are_refused_beside_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let firewall = root().join("configs/firewall-two-ports.toml");
    let firewall = firewall.to_str().unwrap();
    for line in
        ["chain firewall", "| default_outside = \"allow\"", "state | flows = 512", "also shared"]
    {
        fs::write(folder.join("x.case"), format!("# One.\n{line}\n{REPLY}")).unwrap();
        let output = rheo(folder, &[firewall, "x.case", "--json"]);
        assert_eq!(output.status.code(), Some(2), "{line}");
        let failure = &json(&output)["failures"][0];
        assert_eq!(
            (&failure["file"], &failure["line"]),
            (&"x.case".into(), &2.into()),
            "{failure}"
        );
        assert!(failure["problem"].as_str().unwrap().contains("the chain is given"), "{failure}");
    }
}

#[test]
fn a_case_that_cannot_be_read_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("x.case"), "at 0s lan 10.0.0.1 udp\n").unwrap();
    fs::write(folder.join("x.toml"), "[chain]\n").unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    for (arguments, part) in [
        (&["x.case"][..], "x.case:1: a packet is SOURCE > DESTINATION"),
        (&["missing.case"], "missing.case: No such file"),
        (&["empty"], "no file that ends in `.case`"),
        (&["x.pcap"], "neither a case"),
        (&["x.toml"], "name the cases"),
        (&["x.toml", "x.case"], "x.toml"),
    ] {
        let output = rheo(folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
}
