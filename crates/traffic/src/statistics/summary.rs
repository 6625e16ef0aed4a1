//! What was found.

use serde::Serialize;

use super::{Burstiness, Curve, Histogram, OverTime, Quantiles, Statistics, TopShares};

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
    /// Packets of flows.
    pub flow_packets: Quantiles,
    /// What the flows with the most packets have of all packets.
    pub flow_packets_share: TopShares,
    /// Bytes of flows on the wire.
    pub flow_bytes: Quantiles,
    /// What the flows with the most bytes have of all bytes.
    pub flow_bytes_share: TopShares,
    /// Seconds from the first packet of a flow to its last.
    pub flow_seconds: Quantiles,
    /// Flows between their first and last packet at once, at most.
    pub flows_at_once: u64,
    /// Flows with a packet in a second, on average. RSS++ calls them active.
    pub flows_active_per_second: f64,
    /// Flows with a packet in a second, at most.
    pub flows_active_most: u64,
    /// Share of flows active in a second that were not there before.
    pub flows_new_among_active: f64,
    /// Flows whose first packet came, per second.
    pub flows_new_per_second: f64,
    /// Share of flows over IPv6.
    pub flows_ipv6: f64,
    /// Bytes of packets on the wire.
    pub packet_bytes: Quantiles,
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
    /// Share of packets that are IPv6.
    pub ipv6: f64,
    /// Packets that could not be parsed.
    pub unparsed: u64,
    /// How bursty packets come, on the scales of which there are enough windows.
    pub burstiness: Vec<Burstiness>,
    /// Time stamps that lay before the one before.
    pub stamps_backward: u64,
    /// Gaps that were too long to be believed, and cut.
    pub gaps_cut: u64,
    /// Numbers to be drawn.
    pub series: Series,
}

/// What can be drawn of traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Share of flows by their packets.
    pub flow_packets: Curve,
    /// Share of flows by their bytes.
    pub flow_bytes: Curve,
    /// Share of flows by how many seconds they last.
    pub flow_seconds: Curve,
    /// Packets by size.
    pub packet_bytes: Histogram,
    /// Load, concurrency and new flows.
    pub over_time: OverTime,
}

/// Seconds per nanosecond.
const NS: f64 = 1e-9;

impl Statistics {
    /// What was counted.
    pub fn summary(&self) -> Summary {
        let (flows, protocols) = (&self.flows, &self.protocols);
        let (packets, bytes) = (flows.packets(), flows.bytes());
        let durations = flows.durations();
        let sizes = self.sizes.distribution();
        let (small, full) = self.sizes.small_and_full();
        let seconds = self.last.as_nanos() as f64 * NS;
        let (active, most_active) = flows.active_per_second();
        let share = |count: u64| count as f64 / protocols.packets.max(1) as f64;
        Summary {
            packets: protocols.packets,
            bytes: self.sizes.bytes(),
            seconds,
            flows: flows.len(),
            flows_of_one_packet: packets.below(2),
            flows_below_10_packets: packets.below(10),
            flow_packets: packets.quantiles(1.0),
            flow_packets_share: TopShares::of(&packets),
            flow_bytes: bytes.quantiles(1.0),
            flow_bytes_share: TopShares::of(&bytes),
            flow_seconds: durations.quantiles(NS),
            flows_at_once: flows.at_once(),
            flows_active_per_second: active,
            flows_active_most: most_active,
            flows_new_among_active: flows.new_among_active(),
            flows_new_per_second: if seconds > 0.0 { flows.len() as f64 / seconds } else { 0.0 },
            flows_ipv6: flows.ipv6(),
            packet_bytes: sizes.quantiles(1.0),
            packets_below_74_bytes: small,
            packets_of_full_size: full,
            tcp: share(protocols.tcp),
            udp: share(protocols.udp),
            icmp: share(protocols.icmp),
            ipv6: share(protocols.ipv6),
            unparsed: protocols.unparsed,
            burstiness: self.windows.burstiness(),
            stamps_backward: self.clock.backward(),
            gaps_cut: self.clock.cut(),
            series: Series {
                flow_packets: packets.curve(1.0),
                flow_bytes: bytes.curve(1.0),
                flow_seconds: durations.curve(NS),
                packet_bytes: self.sizes.histogram(),
                over_time: self.timeline.over_time(flows.spans()),
            },
        }
    }
}
