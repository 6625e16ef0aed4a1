//! What traffic is like: sizes of flows and packets, protocols, concurrency.

use std::collections::HashMap;
use std::fmt;

use rheostat_base::Time;
use rheostat_packet::{Family, FlowKey, Headers, LinkType, Tuple};
use serde::Serialize;

/// Counts over a stream of frames.
#[derive(Debug, Default)]
pub struct Statistics {
    flows: HashMap<FlowKey, Seen>,
    packets: u64,
    bytes: u64,
    small: u64,
    full: u64,
    protocols: [u64; 3],
    unparsed: u64,
    first: Option<Time>,
    last: Time,
}

#[derive(Debug)]
struct Seen {
    packets: u64,
    first: Time,
    last: Time,
}

/// What [`Statistics`] found. Shares lie between 0 and 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Seconds from the first packet to the last.
    pub seconds: f64,
    /// Flows, both directions counted as one.
    pub flows: u64,
    /// Share of flows of one packet.
    pub flows_of_one_packet: f64,
    /// Share of flows of fewer than 10 packets.
    pub flows_below_10_packets: f64,
    /// Packets of the flow that 95 % of the flows do not exceed.
    pub flow_packets_p95: u64,
    /// Packets of the longest flow.
    pub flow_packets_most: u64,
    /// Flows between their first and last packet at once, at most.
    pub flows_at_once: u64,
    /// Share of flows over IPv6.
    pub flows_ipv6: f64,
    /// Share of packets below 74 bytes.
    pub packets_below_74_bytes: f64,
    /// Share of packets of 1,514 bytes and more.
    pub packets_of_full_size: f64,
    /// Share of packets that are TCP.
    pub tcp: f64,
    /// Share of packets that are UDP.
    pub udp: f64,
    /// Share of packets that are ICMP or ICMPv6.
    pub icmp: f64,
    /// Packets that could not be parsed.
    pub unparsed: u64,
}

impl Statistics {
    /// Counts a frame of which `frame` was captured.
    pub fn count(&mut self, time: Time, frame: &[u8], wire_len: u32, link: LinkType) {
        self.packets += 1;
        self.bytes += u64::from(wire_len);
        self.small += u64::from(wire_len < 74);
        self.full += u64::from(wire_len >= 1_514);
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
        let Ok(headers) = Headers::parse_bytes(frame, wire_len as usize, link) else {
            self.unparsed += 1;
            return;
        };
        match headers.protocol {
            6 => self.protocols[0] += 1,
            17 => self.protocols[1] += 1,
            1 | 58 => self.protocols[2] += 1,
            _ => {}
        }
        if let Tuple::Flow(key) = Tuple::of_bytes(frame, &headers) {
            let key = if key.is_sorted() { key } else { key.reversed() };
            let seen =
                self.flows.entry(key).or_insert(Seen { packets: 0, first: time, last: time });
            seen.packets += 1;
            seen.last = seen.last.max(time);
        }
    }

    /// What was counted.
    pub fn summary(&self) -> Summary {
        let mut lengths: Vec<_> = self.flows.values().map(|seen| seen.packets).collect();
        lengths.sort_unstable();
        let of_flows = |count: usize| count as f64 / lengths.len().max(1) as f64;
        let of_packets = |count: u64| count as f64 / self.packets.max(1) as f64;
        let below = |limit: u64| lengths.partition_point(|packets| *packets < limit);
        let v6 = self.flows.keys().filter(|key| key.family() == Family::V6).count();
        let p95 = lengths.len().saturating_sub(1) * 95 / 100;
        Summary {
            packets: self.packets,
            bytes: self.bytes,
            seconds: self.first.map_or(0.0, |first| self.last.since(first).as_secs_f64()),
            flows: lengths.len() as u64,
            flows_of_one_packet: of_flows(below(2)),
            flows_below_10_packets: of_flows(below(10)),
            flow_packets_p95: lengths.get(p95).copied().unwrap_or(0),
            flow_packets_most: lengths.last().copied().unwrap_or(0),
            flows_at_once: self.flows_at_once(),
            flows_ipv6: of_flows(v6),
            packets_below_74_bytes: of_packets(self.small),
            packets_of_full_size: of_packets(self.full),
            tcp: of_packets(self.protocols[0]),
            udp: of_packets(self.protocols[1]),
            icmp: of_packets(self.protocols[2]),
            unparsed: self.unparsed,
        }
    }

    fn flows_at_once(&self) -> u64 {
        let mut starts: Vec<_> = self.flows.values().map(|seen| seen.first).collect();
        let mut ends: Vec<_> = self.flows.values().map(|seen| seen.last).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let mut over = 0;
        let at_start = |(started, start): (usize, &Time)| {
            while ends[over] < *start {
                over += 1;
            }
            (started + 1 - over) as u64
        };
        starts.iter().enumerate().map(at_start).max().unwrap_or(0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        writeln!(
            f,
            "packets      {} in {:.3} s, {} bytes",
            self.packets, self.seconds, self.bytes
        )?;
        writeln!(
            f,
            "             {:.1} % below 74 bytes, {:.1} % of full size",
            percent(self.packets_below_74_bytes),
            percent(self.packets_of_full_size)
        )?;
        writeln!(
            f,
            "             {:.1} % TCP, {:.1} % UDP, {:.1} % ICMP, {} unparsed",
            percent(self.tcp),
            percent(self.udp),
            percent(self.icmp),
            self.unparsed
        )?;
        writeln!(
            f,
            "flows        {}, at most {} at once, {:.1} % IPv6",
            self.flows,
            self.flows_at_once,
            percent(self.flows_ipv6)
        )?;
        write!(
            f,
            "             {:.1} % of one packet, {:.1} % below 10, 95 % up to {}, longest {}",
            percent(self.flows_of_one_packet),
            percent(self.flows_below_10_packets),
            self.flow_packets_p95,
            self.flow_packets_most
        )
    }
}
