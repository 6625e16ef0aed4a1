//! Packets as words: read, built, and told again.

mod told;

pub(crate) use told::{tell, tell_with};

use std::net::{IpAddr, SocketAddr};

use rheostat_packet::build::{Ethernet, FrameBuilder, MIN_FRAME, Payload, TcpHeader, Transport};
use rheostat_packet::wire::MacAddress;

use crate::link::{self, Discovery, arp_packet};

const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
/// FIN, SYN, RST, PSH, ACK, URG, ECE and CWR by their letters.
const FLAGS: [(char, u8); 8] =
    [('F', 1), ('S', 2), ('R', 4), ('P', 8), ('A', 16), ('U', 32), ('E', 64), ('W', 128)];
/// The port on which UDP carries packets (Generic UDP Encapsulation).
const GUE: u16 = 6_080;
/// Bytes of data that a packet has at most, so that headers fit beside them.
const LONGEST: usize = 60_000;
/// The window of a segment for which a case names none.
const WINDOW: u16 = 65_535;

/// A packet as a case describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketSpec {
    pub(super) source: (IpAddr, u16),
    pub(super) destination: (IpAddr, u16),
    pub(super) kind: CasePacketKind,
    /// Bytes of data.
    len: usize,
    /// The packet that it carries, in a tunnel.
    pub(super) carried: Option<Box<PacketSpec>>,
    /// Whether routers may fragment it.
    may_fragment: bool,
    /// The first bytes of data.
    data: Vec<u8>,
    /// Offset, length and identification of a fragment, and whether more follow.
    fragment: Option<(usize, usize, u32, bool)>,
    /// The ethertype of a frame that is not IP.
    ethertype: Option<u16>,
    /// Type of service, or traffic class.
    tos: u8,
    /// Cut off so many bytes at the end.
    cut: usize,
    /// Bytes that are not what they should be, counted from the IP header.
    pub(super) bytes: Vec<(usize, u8)>,
    /// Time to live, or hop limit.
    ttl: Option<u8>,
    /// The VLAN of its frame.
    vlan: Option<u16>,
    /// The link addresses that stand behind its addresses.
    macs: [Option<MacAddress>; 2],
    /// The link address that its frame is for.
    to: Option<MacAddress>,
    /// And the one it comes from.
    from: Option<MacAddress>,
}

/// What is told of a packet only where a case asks for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Details {
    ttl: bool,
    to: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CasePacketKind {
    Tcp {
        flags: u8,
        seq: u32,
        ack: u32,
        window: u16,
        scale: Option<u8>,
    },
    Udp,
    /// Type, code, identifier, the MTU in an error that has one, and the packet quoted.
    Icmp {
        kind: u8,
        code: u8,
        id: u16,
        mtu: Option<u32>,
        quoted: Option<Box<PacketSpec>>,
    },
    Protocol(u8),
    /// ARP: whether it answers.
    Arp {
        is_reply: bool,
    },
    Discovery(Discovery),
}

impl PacketSpec {
    /// Reads `SOURCE > DESTINATION PROTOCOL ...`.
    pub(crate) fn parse(words: &[&str]) -> Result<PacketSpec, String> {
        if let ["ethertype", number, rest @ ..] = words {
            let number = number.strip_prefix("0x").and_then(|n| u16::from_str_radix(n, 16).ok());
            let nowhere = (IpAddr::from([0, 0, 0, 0]), 0);
            let mut packet = PacketSpec {
                source: nowhere,
                destination: nowhere,
                kind: CasePacketKind::Udp,
                len: 46,
                carried: None,
                may_fragment: false,
                data: Vec::new(),
                fragment: None,
                ethertype: Some(number.ok_or("an ethertype is written 0x88cc")?),
                tos: 0,
                cut: 0,
                bytes: Vec::new(),
                ttl: None,
                vlan: None,
                macs: [None; 2],
                to: None,
                from: None,
            };
            packet.attributes(rest.iter().copied())?;
            return Ok(packet);
        }
        let [source, ">", destination, protocol, rest @ ..] = words else {
            return Err("a packet is SOURCE > DESTINATION PROTOCOL ...".to_owned());
        };
        let ((source, source_mac), (destination, destination_mac)) =
            (station(source)?, station(destination)?);
        let mut packet = PacketSpec {
            source,
            destination,
            kind: CasePacketKind::Udp,
            len: 0,
            carried: None,
            may_fragment: false,
            data: Vec::new(),
            fragment: None,
            ethertype: None,
            tos: 0,
            cut: 0,
            bytes: Vec::new(),
            ttl: None,
            vlan: None,
            macs: [source_mac, destination_mac],
            to: None,
            from: None,
        };
        let mut rest = rest.iter();
        packet.kind = match *protocol {
            "tcp" => {
                let letters = rest.next().ok_or("tcp needs flags, or `-` for none")?;
                CasePacketKind::Tcp {
                    flags: flags(letters)?,
                    seq: 0,
                    ack: 0,
                    window: WINDOW,
                    scale: None,
                }
            }
            "udp" => CasePacketKind::Udp,
            "icmp" => {
                let (kind, code) = (number(rest.next())?, number(rest.next())?);
                CasePacketKind::Icmp { kind, code, id: 0, mtu: None, quoted: None }
            }
            "proto" => CasePacketKind::Protocol(number(rest.next())?),
            "arp" => match rest.next() {
                Some(&"request") => CasePacketKind::Arp { is_reply: false },
                Some(&"reply") => CasePacketKind::Arp { is_reply: true },
                _ => return Err("arp is `request` or `reply`".to_owned()),
            },
            "nd" => {
                let tells = match rest.next() {
                    Some(&"ask") => false,
                    Some(&"tell") => true,
                    _ => return Err("nd is `ask` or `tell`".to_owned()),
                };
                let target = rest.next().and_then(|word| word.parse().ok());
                let target = target.ok_or("nd is about an address of IPv6")?;
                packet.ttl = Some(255);
                CasePacketKind::Discovery(Discovery { tells, target, mac: None, flags: 0 })
            }
            other => {
                return Err(format!("`{other}` is not tcp, udp, icmp, proto, arp or nd"));
            }
        };
        let mut rest: Vec<&str> = rest.copied().collect();
        let inner = rest.iter().position(|word| matches!(*word, "about" | "carrying"));
        if let Some(at) = inner {
            let is_quote = rest[at] == "about";
            let inner = Box::new(PacketSpec::parse(&rest[at + 1..])?);
            match &mut packet.kind {
                CasePacketKind::Icmp { quoted, .. } if is_quote => *quoted = Some(inner),
                _ if is_quote => return Err("only ICMP is about another packet".to_owned()),
                _ => packet.carried = Some(inner),
            }
            rest.truncate(at);
        }
        packet.attributes(rest.into_iter())?;
        Ok(packet)
    }

    fn attributes<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) -> Result<(), String> {
        while let Some(word) = words.next() {
            self.attribute(word, &mut words)?;
        }
        Ok(())
    }

    fn attribute<'a>(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        match (word, &mut self.kind) {
            ("tos", _) => {
                self.tos = hex_byte(words.next())?;
                return Ok(());
            }
            ("to", _) => {
                self.to = Some(link::mac(words.next().unwrap_or_default())?);
                return Ok(());
            }
            ("from", _) => {
                self.from = Some(link::mac(words.next().unwrap_or_default())?);
                return Ok(());
            }
            ("mac", CasePacketKind::Discovery(message)) => {
                message.mac = Some(link::mac(words.next().unwrap_or_default())?);
                return Ok(());
            }
            ("flags", CasePacketKind::Discovery(message)) => {
                return message.set_flags(words.next().unwrap_or_default());
            }
            _ => {}
        }
        match (word, &mut self.kind) {
            ("len", _) => {
                self.len = value(words)?;
                if self.len > LONGEST {
                    return Err(format!("a packet has at most {LONGEST} bytes of data"));
                }
            }
            ("ttl", _) => self.ttl = Some(value(words)?),
            ("vlan", _) => self.vlan = Some(value(words)?),
            ("cut", _) => self.cut = value(words)?,
            ("frag", _) => {
                let (offset, len) = (value(words)?, value(words)?);
                self.fragment = Some((offset, len, value(words)?, false));
            }
            ("byte", _) => {
                let at = value(words)?;
                self.bytes.push((at, hex_byte(words.next())?));
            }
            ("more", _) => {
                let fragment = self.fragment.as_mut().ok_or("`more` follows `frag`")?;
                fragment.3 = true;
            }
            ("data", _) => {
                let digits = words.next().unwrap_or_default().as_bytes().chunks(2);
                let bytes = digits.map(|pair| {
                    let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
                    pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
                });
                self.data = bytes.collect::<Option<_>>().ok_or("data is written 40070a01")?;
                self.len = self.len.max(self.data.len());
            }
            ("may", _) => {
                self.may_fragment = words.next() == Some("fragment");
            }
            ("mtu", CasePacketKind::Icmp { mtu, .. }) => *mtu = Some(value(words)?),
            ("seq", CasePacketKind::Tcp { seq, .. }) => *seq = value(words)?,
            ("ack", CasePacketKind::Tcp { ack, .. }) => *ack = value(words)?,
            ("win", CasePacketKind::Tcp { window, .. }) => *window = value(words)?,
            ("scale", CasePacketKind::Tcp { scale, .. }) => *scale = Some(value(words)?),
            ("id", CasePacketKind::Icmp { id, .. }) => *id = value(words)?,
            _ => return Err(format!("`{word}` does not belong here")),
        }
        Ok(())
    }

    /// Whether the case names the frame's destination.
    pub(crate) fn names_receiver(&self) -> bool {
        self.to.is_some() || self.usual_receiver().is_some()
    }

    /// What of the packet the case asks for besides the usual.
    pub(crate) fn details(&self) -> Details {
        let is_nd = matches!(self.kind, CasePacketKind::Discovery(_));
        Details { ttl: self.ttl.is_some() && !is_nd, to: self.to.is_some() }
    }

    /// The destination of frames to many.
    fn usual_receiver(&self) -> Option<MacAddress> {
        match (&self.kind, self.destination.0) {
            (CasePacketKind::Arp { is_reply: false }, _) => Some([0xff; 6]),
            (CasePacketKind::Arp { is_reply: true }, _) => self.macs[1],
            (_, IpAddr::V6(v6)) if v6.is_multicast() => {
                let [.., a, b, c, d] = v6.octets();
                Some([0x33, 0x33, a, b, c, d])
            }
            _ => None,
        }
    }

    /// The frame, padded to the least length unless it is cut short.
    ///
    /// # Errors
    /// When no such packet can be made.
    pub(crate) fn build(&self) -> Result<Vec<u8>, String> {
        let to = self.to.or(self.usual_receiver()).unwrap_or(LINK.destination);
        let mut frame = [to, self.from.unwrap_or(LINK.source)].concat();
        if let Some(vlan) = self.vlan {
            frame.extend([0x81, 0]);
            frame.extend(vlan.to_be_bytes());
        }
        let ethertype = match (&self.kind, self.source.0) {
            (CasePacketKind::Arp { .. }, _) => 0x0806,
            (_, IpAddr::V4(_)) => 0x0800,
            (_, IpAddr::V6(_)) => 0x86dd,
        };
        frame.extend(self.ethertype.unwrap_or(ethertype).to_be_bytes());
        frame.extend(self.packet()?);
        if self.cut == 0 {
            frame.resize(frame.len().max(MIN_FRAME), 0);
        }
        Ok(frame)
    }

    /// What the frame carries, without the link header and padding.
    fn packet(&self) -> Result<Vec<u8>, String> {
        if self.ethertype.is_some() {
            return Ok(vec![0; self.len]);
        }
        if self.source.0.is_ipv4() != self.destination.0.is_ipv4() {
            return Err("both addresses of a packet are of one version of IP".to_owned());
        }
        if let CasePacketKind::Arp { is_reply } = self.kind {
            let [sender, target] = self.macs;
            return Ok(arp_packet(is_reply, (self.source.0, sender), (self.destination.0, target)));
        }
        let mut options = Vec::new();
        let payload = match &self.kind {
            CasePacketKind::Icmp { quoted: Some(quoted), .. } => quoted.packet()?,
            CasePacketKind::Discovery(message) => message.message().2,
            _ => match &self.carried {
                Some(carried) => carried.packet()?,
                None => {
                    let pattern = (self.data.len()..self.len).map(|i| i as u8);
                    self.data.iter().copied().chain(pattern).collect()
                }
            },
        };
        if payload.len() > LONGEST {
            return Err(format!("a packet has at most {LONGEST} bytes of data"));
        }
        let mut packet = self.whole(&mut options, &payload).to_vec();
        if let Some(fragment) = self.fragment {
            packet = self.cut_out(packet, fragment)?;
        }
        let len = packet.len();
        for (at, byte) in &self.bytes {
            let place = packet.get_mut(*at);
            *place.ok_or_else(|| format!("there is no byte {at} of {len}"))? = *byte;
        }
        let left = len.checked_sub(self.cut);
        packet.truncate(left.ok_or_else(|| format!("{} bytes of {len} cannot be cut", self.cut))?);
        Ok(packet)
    }

    /// The fragment of `whole` that the case names.
    fn cut_out(
        &self,
        mut whole: Vec<u8>,
        fragment: (usize, usize, u32, bool),
    ) -> Result<Vec<u8>, String> {
        let (offset, len, id, more) = fragment;
        if offset > LONGEST || len > LONGEST || offset + len > LONGEST || offset % 8 != 0 {
            return Err(format!(
                "a fragment begins at a multiple of 8 and ends before byte {LONGEST}"
            ));
        }
        let (header, icmp) = if self.source.0.is_ipv4() { (20, 1) } else { (40, 58) };
        let mut datagram = whole.split_off(header);
        datagram.resize(datagram.len().max(offset + len), 0);
        let protocol = match self.kind {
            CasePacketKind::Tcp { .. } => 6,
            CasePacketKind::Udp => 17,
            CasePacketKind::Icmp { .. } => icmp,
            CasePacketKind::Protocol(number) => number,
            CasePacketKind::Arp { .. } | CasePacketKind::Discovery(_) => icmp,
        };
        let piece = Payload::Bytes(&datagram[offset..offset + len]);
        let (from, to) = (self.source.0, self.destination.0);
        let fragment = FrameBuilder::new(from, to, Transport::Protocol(protocol), piece);
        let (fragment, tos) = (FrameBuilder { id, ..fragment }, self.tos);
        let (piece, ttl) = (Some((offset as u16, more)), self.ttl.unwrap_or(64));
        Ok(FrameBuilder { tos, ttl, fragment: piece, dont_fragment: false, ..fragment }.to_vec())
    }

    fn whole<'a>(&self, options: &'a mut Vec<u8>, payload: &'a [u8]) -> FrameBuilder<'a> {
        let ports = (self.source.1, self.destination.1);
        let transport = match self.kind {
            CasePacketKind::Tcp { flags, seq, ack, window, scale } => {
                options.extend(scale.into_iter().flat_map(|shift| [1, 3, 3, shift]));
                Transport::Tcp(TcpHeader { ports, seq, ack, flags, window, urgent: 0, options })
            }
            CasePacketKind::Udp => Transport::Udp { ports },
            CasePacketKind::Icmp { kind, code, id, mtu, .. } => {
                let rest = mtu.unwrap_or(u32::from(id) << 16 | 1);
                Transport::Icmp { kind, code, rest }
            }
            CasePacketKind::Protocol(number) => Transport::Protocol(number),
            CasePacketKind::Discovery(message) => {
                let (kind, rest, _) = message.message();
                Transport::Icmp { kind, code: 0, rest }
            }
            CasePacketKind::Arp { .. } => unreachable!("ARP is built without IP"),
        };
        let (from, to, payload) = (self.source.0, self.destination.0, Payload::Bytes(payload));
        let whole = FrameBuilder::new(from, to, transport, payload);
        let ttl = self.ttl.unwrap_or(64);
        FrameBuilder { tos: self.tos, ttl, dont_fragment: !self.may_fragment, ..whole }
    }
}

/// An endpoint, and the link address that may stand behind it.
fn station(word: &str) -> Result<((IpAddr, u16), Option<MacAddress>), String> {
    match word.split_once('@') {
        Some((word, mac)) => Ok((endpoint(word)?, Some(link::mac(mac)?))),
        None => Ok((endpoint(word)?, None)),
    }
}

fn endpoint(word: &str) -> Result<(IpAddr, u16), String> {
    if let Ok(address) = word.parse::<IpAddr>() {
        return Ok((address, 0));
    }
    let end: SocketAddr = word.parse().map_err(|_| format!("`{word}` is no endpoint"))?;
    Ok((end.ip(), end.port()))
}

fn flags(letters: &str) -> Result<u8, String> {
    letters.chars().filter(|&letter| letter != '-').try_fold(0, |bits, letter| {
        let known = FLAGS.iter().find(|(known, _)| *known == letter);
        known
            .map(|(_, bit)| bits | bit)
            .ok_or_else(|| format!("`{letter}` is no flag of F S R P A U E W"))
    })
}

fn hex_byte(word: Option<&str>) -> Result<u8, String> {
    let digits = word.and_then(|word| word.strip_prefix("0x"));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.ok_or_else(|| "a byte is written 0x0f".to_owned())
}

/// The next word as a number.
fn value<'a, T: TryFrom<u32>>(words: &mut impl Iterator<Item = &'a str>) -> Result<T, String> {
    number(words.next().as_ref())
}

/// A number in the range of its type.
fn number<T: TryFrom<u32>>(word: Option<&&str>) -> Result<T, String> {
    let word = word.ok_or("a number is missing")?;
    let number: u32 = word.parse().map_err(|_| format!("`{word}` is no number"))?;
    number.try_into().map_err(|_| format!("{number} is too large here"))
}
