//! `rheo gen`, from the outside.
//!
//! Timed: processes.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn rheo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn described(arguments: &[&str]) -> Value {
    let output = rheo(&[&["gen", "--describe", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_kind_can_be_written_and_the_capture_described_as_what_was_generated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.pcapng");
    let crowd = ["--traffic", "flash-crowd", "--rate", "1kpps", "--at", "1ms", "--lasting", "10ms"];
    for kind in [
        &["--flows", "500"][..],
        &["--traffic", "imix", "--flows", "500"],
        &["--traffic", "elephant", "--flows", "500", "--share", "0.5", "--ipv6"],
        &crowd,
        &["--traffic", "attack", "--attack", "udp-flood", "--target", "[fd00::1]:53"],
        &["--traffic", "imix", "--step", "1ms=0.5"],
    ] {
        let of_generator =
            described(&[kind, &["--packets", "5k", "--output", text(&path)]].concat());
        assert_eq!(of_generator["packets"], 5_000, "{kind:?}");
        let of_capture = described(&["--input", text(&path)]);
        for figure in ["packets", "bytes", "flows", "flow_packets", "burstiness", "packet_bytes"] {
            assert_eq!(of_generator[figure], of_capture[figure], "{kind:?}: {figure}");
        }
    }
}

#[test]
fn a_capture_is_replayed_in_loops_under_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let (once, often) = (folder.path().join("once.pcap"), folder.path().join("often.pcap"));
    let generated = described(&["--packets", "2k", "--flows", "200", "--output", text(&once)]);
    let flows = generated["flows"].as_u64().unwrap();
    let replay = ["--traffic", "replay", "--input", text(&once), "--rate", "100kpps"];
    let replayed = described(&[&replay[..], &["--loops", "5", "--output", text(&often)]].concat());
    assert_eq!((&replayed["packets"], &replayed["flows"]), (&10_000.into(), &(5 * flows).into()));
    assert!((replayed["seconds"].as_f64().unwrap() - 0.1).abs() < 0.001, "{}", replayed["seconds"]);
    for figure in ["packet_bytes", "flow_packets", "tcp", "ipv6"] {
        assert_eq!(generated[figure], replayed[figure], "{figure}");
    }
    // Two copies of all of it.
    let twice = described(&[&replay[..], &["--loops", "1", "--copies", "2"]].concat());
    assert_eq!(twice["packets"], 4_000);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("x.pcap");
    for (arguments, part) in [
        (
            &["--share", "0.5"][..],
            "--share is of no use with --traffic mix; it is for --traffic elephant",
        ),
        (&["--traffic", "replay"], "--traffic replay needs a capture: give --input FILE"),
        (
            &["--input", text(&there), "--rate", "1kpps"],
            "--rate is of no use with a capture as it is",
        ),
        (&["--input", text(&there)], "cannot open the capture"),
        (&["--traffic", "elephant", "--share", "2"], "`share` is 2"),
        (&["--step", "2s=-1"], "not negative"),
        (&["--step", "2s"], "write a time and a factor"),
        (&["--traffic", "imix", "--flows", "0"], "0 flows"),
    ] {
        let output = rheo(&[&["gen", "--describe"], arguments].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn a_page_of_any_traffic_has_all_figures_and_asks_for_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    // Ten thousand packets, and one.
    for packets in ["10k", "1"] {
        let output = rheo(&["gen", "--packets", packets, "--flows", "100", "--plot", text(&page)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page = std::fs::read_to_string(&page).unwrap();
        assert_eq!(page.matches("<figure>").count(), 7);
        assert!(!page.contains("NaN") && !page.contains("src=") && !page.contains("href=\"http"));
    }
    let nowhere = folder.path().join("no/folder/page.html");
    let output = rheo(&["gen", "--packets", "10", "--plot", text(&nowhere)]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("page.html"), "{message}");
}
