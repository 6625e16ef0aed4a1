//! Decisions about packets of cases.

use rheostat_functions as functions;

use super::*;
use crate::frame;

const DEVICES: &str = "[[device]]\nname = \"wan\"\nkind = \"pcap\"\nside = \"outside\"\n\
     [[device]]\nname = \"lan\"\nkind = \"pcap\"\nside = \"inside\"\n";

fn replay(text: &str) -> Result<Replay, ReplayError> {
    let registry =
        Registry::new().with_chains(functions::shipped::CHAINS).with_functions(functions::ALL);
    let parsed = Config::parse(text, "test.toml", &registry);
    let (config, _) = parsed.unwrap_or_else(|report| panic!("{}", report.render(false)));
    Replay::new(&registry, &config)
}

/// The decisions about these packets, `<` before those from outside.
fn decisions(chain: &str, packets: &[&str]) -> Vec<String> {
    let mut replay = replay(&format!("{DEVICES}{chain}")).unwrap();
    let mut decided = Vec::new();
    for (packet, second) in packets.iter().zip(0..) {
        let (side, words) = match packet.strip_prefix('<') {
            Some(words) => (Side::Outside, words),
            None => (Side::Inside, *packet),
        };
        let (_, frame) = frame(words).unwrap();
        let decision = replay.packet(side, &frame, Time::from_nanos(second * 1_000_000_000));
        let rule = decision.rule.map_or(String::new(), |rule| format!(" ({rule})"));
        decided.push(format!("{}{rule}", decision.effect));
    }
    decided
}

#[test]
fn packets_of_a_flow_have_the_rule_that_let_it_in() {
    let chain = "[chain]\nfunctions = [\"firewall\"]\n[[function.firewall.rule]]\nname = \"web\"\n\
         action = \"allow\"\nfrom = \"outside\"\nprotocol = \"tcp\"\ndestination_port = 80\n\
         [[function.firewall.rule]]\nname = \"no-dns\"\naction = \"reject\"\nprotocol = \"udp\"\n\
         destination_port = 53\n";
    let decided = decisions(
        chain,
        &[
            "<198.51.100.1:1000 > 10.0.0.1:80 tcp S seq 1",
            "10.0.0.1:80 > 198.51.100.1:1000 tcp SA seq 9 ack 2",
            "<198.51.100.1:1000 > 10.0.0.1:81 tcp S seq 1",
            "10.0.0.1:5000 > 198.51.100.1:53 udp len 30",
            "10.0.0.1:5000 > 198.51.100.1:123 udp len 30",
        ],
    );
    assert_eq!(
        decided,
        [
            "forward (web)",
            "forward (web)",
            "drop denied (default from outside)",
            "drop denied, answered (no-dns)",
            "forward (default from inside)",
        ]
    );
}

#[test]
fn a_translation_is_part_of_the_decision_and_the_port_that_it_chooses_is_not() {
    let chain = "[chain]\nfunctions = [\"nat\"]\n[function.nat]\nexternal = [\"203.0.113.1\"]\n\
         inside = [\"10.0.0.0/8\"]\n";
    let decided = decisions(
        chain,
        &[
            "10.0.0.1:1000 > 198.51.100.1:80 tcp S seq 1",
            "10.0.0.2:1000 > 198.51.100.1:80 tcp S seq 1",
            "<198.51.100.1:80 > 203.0.113.1:9 tcp S seq 1",
        ],
    );
    assert_eq!(
        decided,
        ["forward from 203.0.113.1", "forward from 203.0.113.1", "drop no_mapping"]
    );
}

#[test]
fn only_chains_between_two_sides_are_replayed() {
    let port =
        |name: &str| format!("[[device]]\nname = \"{name}\"\nkind = \"pcap\"\nside = \"inside\"\n");
    let ports = port("a") + &port("b") + "[chain]\nfunctions = [\"bridge\"]\n";
    assert_eq!(replay(&ports).err(), Some(ReplayError::Bridge));
}
