//! `rheo test CONFIG --capture FILE --against RUNNING`: packets about which two configurations decide differently.
//!
//! Timed: processes, sockets.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::instance::{Instance, demo};

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

const LINK: &str = "[[device]]\nname = \"link\"\nkind = \"pcap\"\ninside = [\"10.0.0.0/8\"]\n\
     [chain]\nfunctions = [\"firewall\"]\n[function.firewall]\npickup = true\n";
const NO_TCP: &str = "[[function.firewall.rule]]\nname = \"no-tcp\"\naction = \"deny\"\nfrom = \"inside\"\n\
     protocol = \"tcp\"\n";
const WEB: &str =
    "[[function.firewall.rule]]\nname = \"out\"\naction = \"allow\"\nfrom = \"inside\"\n";

struct Scratch(tempfile::TempDir);

impl Scratch {
    /// A folder with a capture of generated traffic.
    fn new() -> Scratch {
        let scratch = Scratch(tempfile::tempdir().unwrap());
        let flags = ["gen", "--packets", "2k", "--flows", "64", "--seed", "7", "--output"];
        let output = Command::new(RHEO).args(flags).arg(scratch.path("x.pcap")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn compare(&self, new: &Path, old: &Path, more: &[&str]) -> Output {
        let mut command = Command::new(RHEO);
        command.arg("test").arg(new).arg("--capture").arg(self.path("x.pcap"));
        command.arg("--against").arg(old).args(more).output().unwrap()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn packets_that_a_new_rule_drops_are_listed_by_both_rules() {
    let scratch = Scratch::new();
    let old = scratch.config("old.toml", &format!("{LINK}{WEB}"));
    let new = scratch.config("new.toml", &format!("{LINK}{NO_TCP}{WEB}"));
    let output = scratch.compare(&new, &old, &["--examples", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = text(&output);
    assert!(text.contains("forward (out) -> drop denied (no-tcp): "), "{text}");
    assert!(text.contains(" are decided differently\n"), "{text}");
    let json = scratch.compare(&new, &old, &["--json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["packets"], &json["schema"]), (&2_000.into(), &1.into()));
    let dropped = &json["differences"][0];
    assert_eq!(dropped["old"]["rule"], "out");
    assert_eq!(dropped["new"]["decision"], "drop denied");
    assert!(dropped["packets"].as_u64() > Some(0) && dropped["first_packet"].as_u64() > Some(0));
    assert!(!dropped["examples"].as_array().unwrap().is_empty(), "{json}");
    let different = json["different_packets"].as_u64().unwrap();
    let listed =
        json["differences"].as_array().unwrap().iter().map(|kind| kind["packets"].as_u64());
    assert_eq!(listed.sum::<Option<u64>>(), Some(different));
}

#[test]
fn configurations_that_decide_the_same_are_equal_though_other_rules_decide() {
    let scratch = Scratch::new();
    let old = scratch.config("old.toml", LINK);
    let same = scratch.compare(&old, &old, &[]);
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stderr));
    assert!(text(&same).contains(": both decide the same"), "{}", text(&same));
    let new = scratch.config("new.toml", &format!("{LINK}{WEB}"));
    let renamed = scratch.compare(&new, &old, &[]);
    assert_eq!(renamed.status.code(), Some(0));
    let expected =
        "the same decision by another rule:\n    forward (default from inside) -> forward (out): ";
    assert!(text(&renamed).contains(expected), "{}", text(&renamed));
}

#[test]
fn a_running_instance_is_asked_for_its_configuration() {
    let scratch = Scratch::new();
    let text_of_demo = std::fs::read_to_string(demo()).unwrap();
    let denied =
        text_of_demo.replace("[function.firewall]", &format!("{NO_TCP}[function.firewall]"));
    let new = scratch.config("new.toml", &denied);
    let instance = Instance::start(&[]);
    let output = scratch.compare(&new, &instance.socket(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text(&output).contains(" -> drop denied (no-tcp): "), "{}", text(&output));
    let same = scratch.compare(&demo(), &instance.socket(), &[]);
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stderr));
    instance.stop();
}

#[test]
fn a_comparison_that_cannot_be_made_says_what_is_missing() {
    let scratch = Scratch::new();
    let config = scratch.config("a.toml", LINK);
    let two = "[[device]]\nname = \"lan\"\nkind = \"pcap\"\nside = \"inside\"\n\
         [[device]]\nname = \"wan\"\nkind = \"pcap\"\nside = \"outside\"\n[chain]\nfunctions = [\"firewall\"]\n";
    let two = scratch.config("two.toml", two);
    let capture = scratch.path("x.pcap");
    let refused = |arguments: &[&Path]| {
        let output = Command::new(RHEO).arg("test").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let flag = |text: &'static str| Path::new(text);
    let no_capture = refused(&[&config, flag("--against"), &config]);
    assert!(no_capture.contains("add --capture FILE"), "{no_capture}");
    let no_other = refused(&[&config, flag("--capture"), &capture]);
    assert!(no_other.contains("--against RUNNING"), "{no_other}");
    let no_inside = refused(&[&two, flag("--capture"), &capture, flag("--against"), &two]);
    assert!(no_inside.contains("add --inside PREFIX"), "{no_inside}");
    let no_file =
        refused(&[&config, flag("--capture"), flag("none.pcap"), flag("--against"), &config]);
    assert!(no_file.contains("cannot read `none.pcap`"), "{no_file}");
    let no_device =
        refused(&[&two, flag("--capture"), flag("dmz=x.pcap"), flag("--against"), &two]);
    assert!(no_device.contains("the configuration has lan, wan"), "{no_device}");
}
