//! Expressions against a naive evaluator, which knows what a packet was made of and never parses it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

use super::*;

/// What a packet is made of. Few values, so that terms often meet them.
#[derive(Clone, Copy, Debug)]
struct Facts {
    v6: bool,
    ends: (u8, u8),
    protocol: u8,
    ports: (u16, u16),
    /// Outer and inner VLAN.
    vlans: (Option<u16>, Option<u16>),
    /// Where its data starts, and whether more follows.
    fragment: Option<(u16, bool)>,
}

impl Facts {
    fn address(&self, last: u8) -> IpAddr {
        match self.v6 {
            false => Ipv4Addr::new(10, 0, 0, last).into(),
            true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()).into(),
        }
    }

    fn has_ports(&self) -> bool {
        matches!(self.protocol, 6 | 17) && self.fragment.is_none_or(|(offset, _)| offset == 0)
    }

    fn frame(&self) -> Vec<u8> {
        let transport = match self.protocol {
            _ if self.fragment.is_some_and(|(offset, _)| offset > 0) => {
                Transport::Protocol(self.protocol)
            }
            6 => Transport::Tcp(TcpHeader { ports: self.ports, ..TcpHeader::default() }),
            17 => Transport::Udp { ports: self.ports },
            1 | 58 => Transport::Icmp { kind: if self.v6 { 128 } else { 8 }, code: 0, rest: 7 },
            other => Transport::Protocol(other),
        };
        let (source, destination) = (self.address(self.ends.0), self.address(self.ends.1));
        let mut frame =
            FrameBuilder::new(source, destination, transport, Payload::Bytes(&[0xab; 64]));
        frame.ethernet = Some(Ethernet { source: [2; 6], destination: [4; 6], vlan: self.vlans.1 });
        frame.service_vlan = self.vlans.0;
        frame.fragment = self.fragment;
        frame.to_vec()
    }

    fn matches(&self, expression: &Expression) -> bool {
        let term = match expression {
            Expression::Term(term) => term,
            Expression::Not(inner) => return !self.matches(inner),
            Expression::And(all) => return !all.iter().any(|one| !self.matches(one)),
            Expression::Or(any) => return any.iter().filter(|one| self.matches(one)).count() > 0,
        };
        let at = |way: Way, source: bool, destination: bool| {
            source && way != Way::Destination || destination && way != Way::Source
        };
        let (from, to) = (self.address(self.ends.0), self.address(self.ends.1));
        match term {
            Term::Network(Network::Ipv4) => !self.v6,
            Term::Network(Network::Ipv6) => self.v6,
            Term::Network(_) => false,
            Term::Protocol(number) => self.protocol == *number,
            Term::Icmp(Network::Ipv6) => self.protocol == 58,
            Term::Icmp(_) => self.protocol == 1,
            Term::Fragment => self.fragment.is_some(),
            Term::AtMost(bytes) => self.frame().len() <= *bytes as usize,
            Term::AtLeast(bytes) => self.frame().len() >= *bytes as usize,
            Term::Vlan(None) => self.vlans != (None, None),
            Term::Vlan(id) => [self.vlans.0, self.vlans.1].contains(id),
            Term::Host(way, host) => at(*way, from == *host, to == *host),
            Term::Net(way, net) => at(*way, net.contains(from), net.contains(to)),
            Term::Port(way, ports) => {
                let (from, to) = (ports.contains(&self.ports.0), ports.contains(&self.ports.1));
                self.has_ports() && at(*way, from, to)
            }
        }
    }
}

fn facts() -> impl Strategy<Value = Facts> {
    let vlan = || prop::option::of(1_u16..4);
    let fragment = prop::option::weighted(0.2, (0_u16..2, any::<bool>()));
    let v4 = (Just(false), prop::sample::select(vec![1_u8, 6, 17, 47]));
    let v6 = (Just(true), prop::sample::select(vec![6_u8, 17, 58, 47]));
    let ports = (0_u16..4, 0_u16..4);
    let parts = (prop_oneof![v4, v6], (0_u8..4, 0_u8..4), ports, (vlan(), vlan()), fragment);
    parts.prop_map(|((v6, protocol), ends, ports, vlans, fragment)| {
        // Where nothing is cut off, it is no fragment.
        let fragment = fragment.map(|(start, more)| (start * 8, more || start == 0));
        Facts { v6, ends, protocol, ports, vlans, fragment }
    })
}

fn way() -> impl Strategy<Value = Way> {
    prop::sample::select(vec![Way::Either, Way::Source, Way::Destination])
}

fn term() -> impl Strategy<Value = Term> {
    let address = (any::<bool>(), 0_u8..4).prop_map(|(v6, last)| {
        Facts { v6, ends: (0, 0), protocol: 0, ports: (0, 0), vlans: (None, None), fragment: None }
            .address(last)
    });
    let prefix =
        (address.clone(), 0_u8..=128).prop_map(|(a, length)| Prefix::containing(a, length));
    let ports = (0_u16..4, 0_u16..3).prop_map(|(first, more)| first..=first + more);
    prop_oneof![
        prop::sample::select(vec![Network::Ipv4, Network::Ipv6, Network::Arp])
            .prop_map(Term::Network),
        prop::sample::select(vec![6_u8, 17, 47, 132]).prop_map(Term::Protocol),
        prop::sample::select(vec![Network::Ipv4, Network::Ipv6]).prop_map(Term::Icmp),
        Just(Term::Fragment),
        prop::option::of(1_u16..4).prop_map(Term::Vlan),
        (way(), address).prop_map(|(way, address)| Term::Host(way, address)),
        (way(), prefix).prop_map(|(way, prefix)| Term::Net(way, prefix)),
        (way(), ports).prop_map(|(way, ports)| Term::Port(way, ports)),
        (90_u32..140).prop_map(Term::AtMost),
        (90_u32..140).prop_map(Term::AtLeast),
    ]
}

fn expression() -> impl Strategy<Value = Expression> {
    let leaf = term().prop_map(Expression::Term);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
            list().prop_map(Expression::And),
            list().prop_map(Expression::Or),
        ]
    })
}

proptest! {
    #[test]
    fn an_expression_means_what_the_naive_evaluator_says(
        expression in expression(),
        packets in prop::collection::vec(facts(), 1..8),
    ) {
        let pool = Mempool::new(&MempoolConfig { buffers: 8, ..MempoolConfig::default() }).unwrap();
        let mut pool = PoolCache::new(pool);
        for facts in packets {
            let packet = pool.alloc_from(&facts.frame()).unwrap();
            let matches = expression.matches(&packet);
            prop_assert_eq!(matches, facts.matches(&expression), "{} on {:?}", expression, facts);
            pool.free(packet);
        }
    }

    #[test]
    fn what_is_written_is_read_again(expression in expression()) {
        let text = expression.to_string();
        prop_assert_eq!(text.parse::<Expression>(), Ok(expression), "{}", text);
    }

    #[test]
    fn any_text_has_an_outcome_that_can_be_shown(text in "(\\PC|[ ()!&|a-z0-9./:-]){0,60}") {
        if let Err(error) = text.parse::<Expression>() {
            prop_assert!(error.at <= text.len());
            prop_assert!(error.to_string().ends_with("^ here"));
        }
    }
}

#[test]
fn not_binds_most_closely_and_and_before_or_needs_no_parentheses() {
    let parse = |text: &str| text.parse::<Expression>().unwrap();
    let shown = |text: &str| parse(text).to_string();
    assert_eq!(shown("tcp and not icmp or udp"), "(tcp and not icmp) or udp");
    assert_eq!(shown("(tcp || udp) && ! icmp"), "(tcp or udp) and not icmp");
    assert_eq!(shown("not (tcp and port 80)"), "not (tcp and port 80)");
    assert_eq!(shown("vlan and vlan 7"), "vlan and vlan 7");
    assert_eq!(shown("dst port 1024-2047"), "dst port 1024-2047");
    assert_eq!(parse("((tcp))"), parse("tcp"));
}

#[test]
fn values_have_the_qualifiers_of_the_value_before() {
    let shown = |text: &str| text.parse::<Expression>().unwrap().to_string();
    for (text, expected) in [
        ("tcp port 443", "tcp and port 443"),
        ("host 10.0.0.1 or fd00::2", "host 10.0.0.1 or host fd00::2"),
        ("not host 10.0.0.1 and 10.0.0.2", "not host 10.0.0.1 and host 10.0.0.2"),
        ("tcp dst port 80 or 443", "(tcp and dst port 80) or (tcp and dst port 443)"),
        ("port 80 or 443 or 8000-8080", "port 80 or port 443 or port 8000-8080"),
        ("src 10.0.0.1", "src host 10.0.0.1"),
        ("dst 10.0.0.0/8 and icmp", "dst net 10.0.0.0/8 and icmp"),
        ("src or dst port 53", "port 53"),
        ("src and dst net 10", "src net 10.0.0.0/8 and dst net 10.0.0.0/8"),
        ("dst and src net fd00::/8", "src net fd00::/8 and dst net fd00::/8"),
        ("src host 10.0.0.1 or dst host 10.0.0.1", "src host 10.0.0.1 or dst host 10.0.0.1"),
        ("net 10.1", "net 10.1.0.0/16"),
        ("net 10.16/12", "net 10.16.0.0/12"),
        ("net 10.16.0.0 mask 255.240.0.0", "net 10.16.0.0/12"),
        ("portrange 1-2", "port 1-2"),
        ("ip proto \\gre or 50", "(ip and proto 47) or (ip and proto 50)"),
        ("ip6 host fd00::1", "ip6 and host fd00::1"),
        ("arp host 10.0.0.1", "arp and host 10.0.0.1"),
        ("less 128 and greater 64", "less 128 and greater 64"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn addresses_of_arp_are_compared() {
    let pool = Mempool::new(&MempoolConfig { buffers: 2, ..MempoolConfig::default() }).unwrap();
    let mut pool = PoolCache::new(pool);
    let mut frame = vec![0xff; 6];
    frame.extend([
        2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
    ]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    let packet = pool.alloc_from(&frame).unwrap();
    for (text, matches) in [
        ("arp src 10.0.0.1", true),
        ("dst net 10.0.0.2/31", true),
        ("src 10.0.0.2", false),
        ("ip host 10.0.0.1", false),
    ] {
        assert_eq!(text.parse::<Expression>().unwrap().matches(&packet), matches, "{text}");
    }
    pool.free(packet);
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let wrong = |text: &str| text.parse::<Expression>().unwrap_err();
    let expected = "`tpc` is no term: did you mean `tcp`?\n  udp or tpc\n         ^ here";
    assert_eq!(wrong("udp or tpc").to_string(), expected);
    for (text, at, part) in [
        ("", 0, "is empty"),
        ("tcp and", 7, "something is missing here"),
        ("and tcp", 0, "something is missing here"),
        ("tcp udp", 4, "`and` or `or` is missing before `udp`"),
        (
            "tcp or udp and port 53",
            11,
            "write `(tcp or udp) and port 53`, as tcpdump reads it, or `tcp or (udp and port 53)`",
        ),
        ("tcp proto 6", 4, "`tcp` does not go with `proto`"),
        ("arp port 6", 4, "`arp` does not go with `port`"),
        ("src proto 6", 0, "`src` does not go with `proto`"),
        ("portrange 80", 10, "two ports"),
        ("net 10.0.0.0 mask 255.0.255.0", 18, "a mask"),
        ("host 10.0.0.1 or 80", 17, "did you mean `port 80`?"),
        ("(tcp", 0, "not closed"),
        ("tcp)", 3, "closes none"),
        ("()", 1, "something is missing here"),
        ("10.0.0.1", 0, "did you mean `host 10.0.0.1`?"),
        ("10.0.0.0/8", 0, "did you mean `net 10.0.0.0/8`?"),
        ("443", 0, "did you mean `port 443`?"),
        ("TCP", 0, "did you mean `tcp`?"),
        ("elephant", 0, "the words are ip, ip6"),
        ("host", 4, "`host` needs an address such as 10.0.0.1 behind it"),
        ("host example.org", 5, "not `example.org`"),
        ("net 10.0.0.1/8", 4, "`net` needs a prefix"),
        ("port 70000", 5, "not `70000`"),
        ("port 9-3", 5, "not `9-3`"),
        ("proto 256", 6, "0 to 255, or a name"),
        ("vlan 4096", 5, "below 4096"),
        (
            "src tcp",
            4,
            "`src` needs an address, a prefix, `host`, `net` or `port` behind it, not `tcp`",
        ),
    ] {
        let error = wrong(text);
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
    assert_eq!(wrong(&"(".repeat(100)).mistake, Mistake::TooDeep);
    assert_eq!(wrong(&"not ".repeat(100)).mistake, Mistake::TooDeep);
    assert_eq!(wrong(&"tcp or ".repeat(1_000)).mistake, Mistake::TooLong);
}
