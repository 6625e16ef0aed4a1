//! `rheo try`: two hosts and a gateway in namespaces, of which nothing is left.
//!
//! Timed: processes, devices, sockets, sleep, clock.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use rheostat_testkit::namespace::isolated;
use rustix::process::{Pid, Signal, kill_process};

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

fn namespaces() -> String {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn once(chain: &str) -> Output {
    Command::new(RHEO).args(["try", chain, "--once"]).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_nat_is_shown_between_two_hosts_and_nothing_is_left_of_it() {
    isolated(module_path!(), "a_nat_is_shown_between_two_hosts_and_nothing_is_left_of_it", || {
        let output = once("nat");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        for expected in [
            "64 bytes from 203.0.113.254",
            "64 bytes from 2001:db8:113::fe",
            "nat",
            "203.0.113.1",
            "4 packets captured",
            "Look around:",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert_eq!(namespaces(), "");
    });
}

/// A second one, which waits for its end.
fn start() -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(RHEO)
        .args(["try", "firewall"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let reader = BufReader::new(child.stdout.take().unwrap());
    (child, reader)
}

#[test]
fn two_at_a_time_do_not_meet_and_an_interrupt_deletes_everything() {
    isolated(
        module_path!(),
        "two_at_a_time_do_not_meet_and_an_interrupt_deletes_everything",
        || {
            let mut both = [start(), start()];
            for (_, reader) in &mut both {
                let ready =
                    reader.lines().map(Result::unwrap).any(|line| line.starts_with("Ctrl-C"));
                assert!(ready, "both have shown everything");
            }
            assert_eq!(namespaces().lines().count(), 6);
            for (child, _) in &mut both {
                kill_process(Pid::from_child(child), Signal::INT).unwrap();
                assert!(child.wait().unwrap().success());
            }
            assert_eq!(namespaces(), "");
        },
    );
}
