//! What works, but hardly as meant.

use rheostat_control::{Config, Report};

use crate::registry;

fn warnings(text: &str) -> Report {
    const HEAD: &str = "[chain]\nfunctions = [\"firewall\"]\n\
        [[device]]\nname = \"wire\"\nkind = \"pcap\"\ninside = \"10.0.0.0/8\"\n";
    match Config::parse(&format!("{HEAD}{text}"), "test.toml", &registry::all()) {
        Ok((_, warnings)) => warnings,
        Err(report) => panic!("{}", report.render(false)),
    }
}

/// The warnings of rules written one per line.
fn of_rules(rules: &[&str]) -> Vec<String> {
    let text: String = rules
        .iter()
        .map(|rule| format!("[[function.firewall.rule]]\naction = \"deny\"\n{rule}\n"))
        .collect();
    warnings(&text).findings().iter().map(|finding| finding.message().to_owned()).collect()
}

#[test]
fn a_rule_that_never_matches_is_shown_with_the_one_before_it() {
    let shown = warnings(
        r#"
[[function.firewall.rule]]
name = "all tcp"
action = "deny"
protocol = ["udp", "tcp"]

[[function.firewall.rule]]
action = "allow"
protocol = "tcp"
destination_port = 22
"#,
    );
    let expected = r"  ! test.toml: 1 warning

Warning: 
  ! rule 2 can never match
    ,-[test.toml:8:1]
  7 | 
  8 | [[function.firewall.rule]]
    : ^^^^^^^^^^^^^|^^^^^^^^^^^^
    :              `-- rule `all tcp` matches first
  9 | name = \u{22}all tcp\u{22}
 10 | action = \u{22}deny\u{22}
 11 | protocol = [\u{22}udp\u{22}, \u{22}tcp\u{22}]
 12 | 
 13 | [[function.firewall.rule]]
    : ^^^^^^^^^^^^^|^^^^^^^^^^^^
    :              `-- whatever this would match
 14 | action = \u{22}allow\u{22}
    `----
  help: put the narrower rule first, or remove it
";
    assert_eq!(shown.render(false), expected.replace(r"\u{22}", "\""));
}

#[test]
fn each_part_of_a_rule_can_be_what_lets_it_match() {
    let covered = |wide: &str, narrow: &str| !of_rules(&[wide, narrow]).is_empty();
    for (wide, narrow) in [
        ("", ""),
        ("", "from = \"inside\""),
        ("from = \"inside\"", "from = \"inside\"\nsource = \"10.0.0.0/8\""),
        ("source = \"10.0.0.0/8\"", "source = [\"10.1.0.0/16\", \"10.2.0.0/16\"]"),
        ("destination_port = \"80-90,91,100\"", "destination_port = \"85-91\""),
        ("source_port = \"0-65535\"", "source_port = 65535"),
        ("icmp_type = [8, 0]", "icmp_type = 0"),
        ("device = \"wire\"", "device = \"wire\"\nprotocol = 47"),
    ] {
        assert!(covered(wide, narrow), "{wide} covers {narrow}");
    }
    for (wide, narrow) in [
        ("from = \"inside\"", ""),
        ("from = \"inside\"", "from = \"outside\""),
        ("source = \"10.0.0.0/8\"", ""),
        ("source = \"10.1.0.0/16\"", "source = [\"10.1.0.0/24\", \"10.2.0.0/24\"]"),
        ("destination = \"0.0.0.0/0\"", "destination = \"::/0\""),
        ("destination_port = \"80-90,92\"", "destination_port = \"85-92\""),
        ("destination_port = \"0-65535\"", ""),
        ("protocol = \"tcp\"", "protocol = [\"tcp\", \"udp\"]"),
        ("icmp_type = 8", "protocol = \"icmp\""),
    ] {
        assert!(!covered(wide, narrow), "{wide} does not cover {narrow}");
    }
}

#[test]
fn short_time_outs_and_idle_lanes_are_mentioned() {
    let shown = warnings(
        "[function.firewall.timeouts]\ntcp_transitory = \"30s\"\nudp = \"5min\"\n\
         [workers]\nlanes = 8\n[state]\nshards = 4\n",
    );
    let messages: Vec<_> = shown.findings().iter().map(|finding| finding.message()).collect();
    assert_eq!(
        messages,
        [
            "flows may be forgotten too early: RFC 5382, REQ-5, requires 4min",
            "8 lanes share 4 shards: some lanes will have no work",
        ]
    );
    assert_eq!(shown.to_string(), "test.toml: 2 warnings");
}

#[test]
fn a_burst_that_usual_packets_do_not_fit_is_mentioned() {
    let text = "[[device]]\nname = \"wire\"\nkind = \"pcap\"\ninside = \"10.0.0.0/8\"\n\
        [chain]\nfunctions = [\"policer\"]\n\
        [function.policer]\nper = \"source\"\nmeter = \"srtcm\"\n\
        rate = \"1Mbps\"\nburst = \"1499B\"\nexcess_burst = \"0B\"\n\
        [[function.policer.class]]\nprefixes = \"10.0.0.0/8\"\n\
        rate = \"1Mbps\"\nburst = \"1500B\"\nexcess_burst = \"9B\"\n";
    let (_, shown) = Config::parse(text, "test.toml", &registry::all()).expect("only a warning");
    let messages: Vec<_> = shown.findings().iter().map(|finding| finding.message()).collect();
    assert_eq!(
        messages,
        [
            "packets longer than 1499 bytes will never fit `burst`",
            "packets longer than 9 bytes will never fit `excess_burst`",
        ]
    );
}

#[test]
fn workers_of_a_real_time_class_that_never_sleep_are_stopped_by_the_kernel() {
    let of = |text: &str| {
        let report = warnings(text);
        report.findings().iter().map(|finding| finding.message().to_owned()).collect::<Vec<_>>()
    };
    let busy = of("[workers]\npriority = \"fifo:10\"\n");
    assert_eq!(busy.len(), 1);
    assert!(busy[0].contains("stopped for 50 ms of each second"), "{busy:?}");
    assert!(of("[workers]\npriority = \"nice:-20\"\n").is_empty());
    assert!(
        of("[workers]\npriority = \"fifo:10\"\n[polling]\npolicy = \"interrupt\"\n").is_empty()
    );
}
