//! One primitive of an expression, as pcap-filter(7) has them: a value behind its qualifiers (`tcp src port 443`), a value alone
//! that has the qualifiers of the one before it (`host 10.0.0.1 or 10.0.0.2`), or a word that needs no value.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use rheostat_packet::Network;
use rheostat_packet::wire::protocol::{SCTP, TCP, UDP};
use rheostat_steer::Prefix;

use super::parse::{Mistake, Parsed, Parser, unknown, written};
use super::token::Token;
use super::{Expression, Term, Way};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    Protocol,
}

/// The words before a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Qualifiers<'t> {
    /// The word of a protocol.
    protocol: Option<&'t str>,
    /// Each of these ends.
    ends: &'static [Way],
    kind: Kind,
}

/// A value that was read.
#[derive(Clone, Debug)]
enum Value {
    Host(IpAddr),
    Net(Prefix),
    Port(RangeInclusive<u16>),
    Protocol(u8),
}

impl<'t> Parser<'t> {
    /// The primitive that starts with `word`, which stands at `at` and has been taken.
    pub(super) fn primitive(&mut self, word: &'t str, at: usize) -> Parsed<Expression> {
        let term = match word {
            "fragment" => Term::Fragment,
            "vlan" => self.vlan()?,
            "less" => Term::AtMost(self.argument(word, "a number of bytes", number)?),
            "greater" => Term::AtLeast(self.argument(word, "a number of bytes", number)?),
            _ => {
                if let Some(protocol) = protocol(word) {
                    let Some(next) = self.word().filter(|next| qualifies(next)) else {
                        self.last = None;
                        return Ok(Expression::Term(protocol));
                    };
                    let at = self.here();
                    self.next += 1;
                    return self.qualified(Some(word), next, at);
                }
                if qualifies(word) {
                    return self.qualified(None, word, at);
                }
                return self.value_alone(word, at);
            }
        };
        Ok(Expression::Term(term))
    }

    /// `first` is the word behind the protocol, if there is one: ends or a kind.
    fn qualified(
        &mut self,
        protocol: Option<&'t str>,
        first: &'t str,
        at: usize,
    ) -> Parsed<Expression> {
        let (ends, kind_word) = match first {
            "src" | "dst" => {
                let ends = self.ends(first);
                let kind = self.word().filter(|word| kind(word).is_some());
                self.next += usize::from(kind.is_some());
                (ends, kind)
            }
            _ => (&[Way::Either][..], Some(first)),
        };
        // A value behind `src` alone shows by itself whether it is an address or a prefix.
        let kind = match kind_word {
            Some(word) => kind(word).expect("only words of kinds come here"),
            None => match self.word() {
                Some(word) if word.parse::<IpAddr>().is_ok() => Kind::Host,
                Some(word) if prefix(word).is_some() => Kind::Net,
                other => {
                    let needs = "an address, a prefix, `host`, `net` or `port`";
                    let got = written(other.map(Token::Word));
                    let after = first.to_owned();
                    return Err((self.here(), Mistake::Argument { after, needs, got }));
                }
            },
        };
        let kind_word = kind_word.unwrap_or(first);
        let has_kind = match protocol {
            None | Some("ip" | "ip6") => true,
            Some("tcp" | "udp" | "sctp") => kind != Kind::Protocol,
            Some(_) => matches!(kind, Kind::Host | Kind::Net),
        };
        if let Some(protocol) = protocol.filter(|_| !has_kind) {
            let (protocol, word) = (protocol.to_owned(), kind_word.to_owned());
            return Err((at, Mistake::Qualifier { protocol, word }));
        }
        if kind == Kind::Protocol && ends != [Way::Either] {
            let (protocol, word) = (first.to_owned(), kind_word.to_owned());
            return Err((at, Mistake::Qualifier { protocol, word }));
        }
        let qualifiers = Qualifiers { protocol, ends, kind };
        let mut value =
            self.argument(kind_word, kind.needs(kind_word), |word| kind.read(kind_word, word))?;
        if let Value::Net(net) = value
            && self.word() == Some("mask")
        {
            self.next += 1;
            let needs = "a mask such as 255.255.0.0 that leaves no bit of the address";
            let masked = self.argument("mask", needs, |word| with_mask(net, word))?;
            value = Value::Net(masked);
        }
        self.last = Some(qualifiers);
        Ok(qualifiers.with(&value))
    }

    /// Takes `or dst` or `and dst` behind `src`, and the reverse.
    fn ends(&mut self, first: &str) -> &'static [Way] {
        let other = if first == "src" { "dst" } else { "src" };
        let joint = self.tokens.get(self.next).map(|placed| placed.token);
        let behind = self.tokens.get(self.next + 1).map(|placed| placed.token);
        if behind == Some(Token::Word(other)) {
            let ends: &[Way] = match joint {
                Some(Token::Or) => &[Way::Either],
                Some(Token::And) => &[Way::Source, Way::Destination],
                _ => &[],
            };
            if !ends.is_empty() {
                self.next += 2;
                return ends;
            }
        }
        if first == "src" { &[Way::Source] } else { &[Way::Destination] }
    }

    /// A value without words before it.
    fn value_alone(&mut self, word: &'t str, at: usize) -> Parsed<Expression> {
        let read = |qualifiers: &Qualifiers<'t>| {
            let value = qualifiers.kind.read(qualifiers.kind.word(), word)?;
            Some(qualifiers.with(&value))
        };
        self.last.as_ref().and_then(read).ok_or_else(|| (at, unknown(word)))
    }

    fn vlan(&mut self) -> Parsed<Term> {
        let id = self.word().and_then(|word| word.parse::<u16>().ok());
        if let Some(id) = id.filter(|id| *id >= 4_096) {
            let (after, needs) = ("vlan".to_owned(), "a number below 4096");
            let got = format!(", not `{id}`");
            return Err((self.here(), Mistake::Argument { after, needs, got }));
        }
        self.next += usize::from(id.is_some());
        Ok(Term::Vlan(id))
    }

    fn argument<T>(
        &mut self,
        after: &str,
        needs: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Parsed<T> {
        if let Some(value) = self.word().and_then(read) {
            self.next += 1;
            return Ok(value);
        }
        let got = written(self.tokens.get(self.next).map(|placed| placed.token));
        Err((self.here(), Mistake::Argument { after: after.to_owned(), needs, got }))
    }

    /// The next token, if it is a word.
    fn word(&self) -> Option<&'t str> {
        match self.tokens.get(self.next)?.token {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }
}

impl Qualifiers<'_> {
    /// The expression that a value behind these words is.
    fn with(&self, value: &Value) -> Expression {
        let mut parts = Vec::new();
        parts.extend(self.protocol.and_then(protocol).map(Expression::Term));
        parts.extend(self.ends.iter().map(|end| Expression::Term(value.term(*end))));
        if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) }
    }
}

impl Kind {
    /// The word that names it.
    fn word(self) -> &'static str {
        match self {
            Kind::Host => "host",
            Kind::Net => "net",
            Kind::Port => "port",
            Kind::Protocol => "proto",
        }
    }

    fn needs(self, word: &str) -> &'static str {
        match self {
            Kind::Host => "an address such as 10.0.0.1",
            Kind::Net => "a prefix such as 10.0.0.0/8",
            Kind::Port if word == "portrange" => "two ports as in 1024-2047",
            Kind::Port => "a port, or two as in 1024-2047",
            Kind::Protocol => "a protocol number, 0 to 255, or a name such as gre",
        }
    }

    fn read(self, word: &str, text: &str) -> Option<Value> {
        Some(match self {
            Kind::Host => Value::Host(text.parse().ok()?),
            Kind::Net => Value::Net(prefix(text)?),
            Kind::Port => {
                Value::Port(ports(text).filter(|_| word != "portrange" || text.contains('-'))?)
            }
            Kind::Protocol => Value::Protocol(protocol_number(text)?),
        })
    }
}

impl Value {
    fn term(&self, end: Way) -> Term {
        match self {
            Value::Host(host) => Term::Host(end, *host),
            Value::Net(net) => Term::Net(end, *net),
            Value::Port(ports) => Term::Port(end, ports.clone()),
            Value::Protocol(number) => Term::Protocol(*number),
        }
    }
}

/// Whether the word stands before a value.
fn qualifies(word: &str) -> bool {
    matches!(word, "src" | "dst") || kind(word).is_some()
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "host" => Kind::Host,
        "net" => Kind::Net,
        "port" | "portrange" => Kind::Port,
        "proto" => Kind::Protocol,
        _ => return None,
    })
}

fn protocol(word: &str) -> Option<Term> {
    Some(match word {
        "ip" => Term::Network(Network::Ipv4),
        "ip6" => Term::Network(Network::Ipv6),
        "arp" => Term::Network(Network::Arp),
        "tcp" => Term::Protocol(TCP),
        "udp" => Term::Protocol(UDP),
        "sctp" => Term::Protocol(SCTP),
        "icmp" => Term::Icmp(Network::Ipv4),
        "icmp6" => Term::Icmp(Network::Ipv6),
        _ => return None,
    })
}

/// A protocol above IP by its number or its name, before which a shell's user writes a backslash.
fn protocol_number(text: &str) -> Option<u8> {
    /// Protocol Numbers, IANA.
    const NAMES: [(&str, u8); 12] = [
        ("icmp", 1),
        ("igmp", 2),
        ("tcp", TCP),
        ("udp", UDP),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("icmp6", 58),
        ("ospf", 89),
        ("pim", 103),
        ("vrrp", 112),
        ("sctp", SCTP),
    ];
    let name = text.strip_prefix('\\').unwrap_or(text);
    let named = NAMES.iter().find(|(known, _)| *known == name);
    named.map(|(_, number)| *number).or_else(|| text.parse().ok())
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// A prefix, of IPv4 also without its last bytes: `10`, `10.1`, `10.1/20`.
fn prefix(text: &str) -> Option<Prefix> {
    text.parse().ok().or_else(|| {
        let (bytes, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let bytes: Vec<u8> =
            bytes.split('.').map(|byte| byte.parse().ok()).collect::<Option<_>>()?;
        let mut whole = [0; 4];
        whole.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        let given = bytes.len() * 8;
        let length = length.map_or(Some(given), |length| length.parse().ok())?;
        format!("{}/{length}", Ipv4Addr::from(whole)).parse().ok()
    })
}

/// `net` with the mask in `text`, if that is one and leaves no bit of the address.
fn with_mask(net: Prefix, text: &str) -> Option<Prefix> {
    let mask = text.parse::<Ipv4Addr>().ok()?.to_bits();
    let length = mask.leading_ones();
    let is_mask = mask.count_ones() == length && net.address().is_ipv4();
    is_mask.then(|| format!("{}/{length}", net.address()).parse().ok())?
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    match text.split_once('-') {
        None => text.parse().ok().map(|port| port..=port),
        Some((first, last)) => {
            let ports = first.parse().ok()?..=last.parse().ok()?;
            (!ports.is_empty()).then_some(ports)
        }
    }
}
