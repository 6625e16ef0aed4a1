//! `rheo check` refuses what `rheo run` refuses, with the same words: each mistake goes through both.
//!
//! Timed: processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

const SIM: &str =
    "[[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"10kpps\"\ninside = [\"10.0.0.0/8\"]\n";
const NO_CHAIN: &str = "chain = { functions = [] }\n";
const TAP: &str = "[[device]]\nname = \"lan\"\nkind = \"tap\"\ninterface = \"rheo-test\"\naddress = \"10.9.0.1/24\"\n";

fn rheo(folder: &Path, command: &str, file: &str, flags: &[&str]) -> Output {
    Command::new(RHEO).current_dir(folder).args([command, file]).args(flags).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The error without what the process itself has in use, which is not the same for each.
fn error(output: &Output) -> String {
    let text = stderr(output);
    let lines = text.lines().filter(|line| !line.contains("what is in use already"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A simulated device and a chain, with more.
fn sim(more: &str) -> String {
    format!("{NO_CHAIN}{SIM}{more}")
}

/// A capture device with these settings.
fn capture(settings: &str) -> String {
    let device = SIM.replace("sim", "pcap").replace("rate = \"10kpps\"\n", settings);
    format!("{NO_CHAIN}{device}")
}

/// A function on a simulated device.
fn function(name: &str, table: &str) -> String {
    format!("chain = {{ functions = [\"{name}\"] }}\n{SIM}[function.{name}]\n{table}")
}

/// Two simulated devices with addresses.
fn router(inside: &str, outside: &str) -> String {
    let device = |name: &str, side: &str, settings: &str| {
        format!(
            "[[device]]\nname = \"{name}\"\nkind = \"sim\"\nrate = \"10kpps\"\nside = \"{side}\"\n{settings}\n"
        )
    };
    let devices = device("a", "inside", inside) + &device("b", "outside", outside);
    format!("chain = {{ functions = [\"router\"] }}\n{devices}")
}

/// A service on a tap interface.
fn service(table: &str) -> String {
    format!("{TAP}[serve]\nport = 80\n{table}")
}

/// What this machine does not have, or cannot do, and a word of the error.
fn mistakes(long: &str) -> Vec<(String, &'static str)> {
    let lb = "seed = 1\nother = \"pass\"\nlog = \"/no/such/log\"\n[[function.lb.service]]\nname = \"web\"\n\
              vip = \"10.200.0.1\"\nprotocol = \"tcp\"\nport = \"80\"\nmode = \"nat\"\n\
              [[function.lb.service.backend]]\naddress = \"10.1.0.1\"\n";
    vec![
        (capture(""), "no file is given"),
        (capture("input = \"missing.pcap\"\n"), "cannot open the capture missing.pcap"),
        (capture("input = \"garbage.pcap\"\n"), "cannot read garbage.pcap"),
        (capture("input = \".\"\n"), "cannot"),
        (capture("input = \"in.pcap\"\noutput = \"out.txt\"\n"), "name it .pcap or .pcapng"),
        (capture("input = \"in.pcap\"\noutput = \"no/such/out.pcap\"\n"), "cannot create"),
        (capture("input = \"in.pcap\"\noutput = \"in.pcap/out.pcap\"\n"), "cannot create"),
        (
            sim("").replace("\"sim\"\nrate = \"10kpps\"", "\"tap\"\ninterface = \"lo\""),
            "`lo` exists",
        ),
        (
            sim("").replace("\"sim\"\nrate = \"10kpps\"", "\"af_packet\""),
            "is an interface, but none",
        ),
        (sim("[run]\nuser = \"no-such-user\"\n"), "no user `no-such-user`"),
        (sim("[run]\nuser = \"root\"\ngroup = \"no-such-group\"\n"), "no group `no-such-group`"),
        (sim("[observe]\ncontrol = \"/no/such/folder/x.sock\"\n"), "control socket"),
        (sim("[observe]\ncontrol = \"garbage.pcap\"\n"), "is no socket"),
        (sim(&format!("[observe]\ncontrol = \"{long}\"\n")), "107 bytes at most"),
        (sim("[state]\nflows = 1_000_000_000\n").replace("[]", "[\"firewall\"]"), "of memory"),
        (
            function("nat", "external = [\"203.0.113.1\"]\nlog = \"/no/such/log\"\n"),
            "cannot write the log",
        ),
        (function("monitor", "log = \"/no/such/log\"\n"), "cannot write the log"),
        (function("lb", lb), "cannot write the log"),
        (router("address = \"fd00::1/64\"\nmtu = 1000", "address = \"fd01::1/64\""), "MTU"),
        (service("service = \"http\"\nroot = \"/no/such/root\"\n"), "cannot serve"),
        (service("service = \"http\"\nroot = \"garbage.pcap\"\n"), "cannot serve"),
        (service("service = \"relay\"\nto = \"192.0.2.1:0\"\n"), "192.0.2.7:22"),
        (service("service = \"work\"\nwork = \"chase\"\nbuffer = \"90000GiB\"\n"), ""),
        (service("service = \"echo\"\nscheduler = \"dispatcher-100:200\"\n"), "300 workers"),
        (
            service("service = \"echo\"\nscheduler = \"dispatcher-1:1\"\n[workers]\nlanes = 2\n"),
            "2 lanes are wanted",
        ),
        (service("service = \"echo\"\nplace = \"split-siblings\"\n"), "split-siblings"),
        (
            service("service = \"echo\"\nbeside_kernel = true\n")
                .replace("tap", "af_packet")
                .replace("rheo-test", "lo"),
            "is no Ethernet interface",
        ),
    ]
}

#[test]
fn what_a_run_refuses_a_check_refuses_with_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("garbage.pcap"), "no capture at all, whatever its name is").unwrap();
    let made = Command::new(RHEO)
        .args(["gen", "--packets", "10", "--output", "in.pcap"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let long = folder.join("x".repeat(120));
    let mut different = Vec::new();
    for (text, word) in mistakes(&long.display().to_string()) {
        fs::write(folder.join("x.toml"), &text).unwrap();
        let [check, run] = ["check", "run"].map(|command| {
            let flags: &[&str] = if command == "run" { &["--duration", "200ms"] } else { &[] };
            rheo(folder, command, "x.toml", flags)
        });
        let (checked, ran) = (error(&check), error(&run));
        if check.status.code() != Some(2)
            || run.status.code() != Some(2)
            || checked != ran
            || !ran.contains(word)
        {
            different.push(format!("{text}\ncheck: {checked}\nrun: {ran}"));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n----\n"));
}

#[test]
fn mistakes_in_the_file_are_the_same_for_both() {
    let mistakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../control/tests/mistakes");
    let files = fs::read_dir(&mistakes).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut count = 0;
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let [check, run] = ["check", "run"].map(|command| rheo(&mistakes, command, name, &[]));
        assert_eq!((check.status.code(), run.status.code()), (Some(2), Some(2)), "{name}");
        assert_eq!(stderr(&check), stderr(&run), "{name}");
        count += 1;
    }
    assert!(count >= 10, "the files have gone");
}

#[test]
fn a_check_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("kept.log"), "lines of yesterday\n").unwrap();
    let text = function("nat", "external = [\"203.0.113.1\"]\nlog = \"kept.log\"\n")
        .replace("inside", "output = \"new.pcap\"\ninside")
        .replace("\"sim\"\nrate = \"10kpps\"", "\"pcap\"\ninput = \"in.pcap\"");
    fs::write(folder.join("x.toml"), text + "[observe]\ncontrol = \"made/x.sock\"\n").unwrap();
    let gen_ = ["gen", "--packets", "10", "--output", "in.pcap"];
    Command::new(RHEO).args(gen_).current_dir(folder).output().unwrap();
    let checked = rheo(folder, "check", "x.toml", &[]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert_eq!(fs::read_to_string(folder.join("kept.log")).unwrap(), "lines of yesterday\n");
    assert!(!folder.join("new.pcap").exists() && !folder.join("made").exists());
}

#[test]
fn bounds_of_a_service_beyond_the_memory_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let text = service("service = \"resp\"\nmemory = \"90000GiB\"\n");
    fs::write(folder.path().join("x.toml"), text).unwrap();
    let checked = rheo(folder.path(), "check", "x.toml", &[]);
    let warned = stderr(&checked);
    assert_eq!(checked.status.code(), Some(0), "{warned}");
    assert!(warned.contains("warning: this configuration takes 9000"), "{warned}");
}

#[test]
fn what_another_machine_may_have_is_left_out_offline() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for text in [
        capture(""),
        capture("input = \"missing.pcap\"\n"),
        sim("[run]\nuser = \"no-such-user\"\n"),
        service("service = \"http\"\nroot = \"/no/such/root\"\n"),
    ] {
        fs::write(folder.join("x.toml"), &text).unwrap();
        let checked = rheo(folder, "check", "x.toml", &["--offline"]);
        assert_eq!(checked.status.code(), Some(0), "{text}{}", stderr(&checked));
    }
}
