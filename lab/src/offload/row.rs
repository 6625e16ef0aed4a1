//! What offloading came to.

use std::collections::BTreeMap;
use std::fmt;

use rheostat_measure::rounding::{to_hundredths, to_thousandths};
use serde::Serialize;

use super::{Costs, Hops, Transitions};

/// The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffloadRow {
    /// How often flows left or came home.
    pub transitions: u64,
    /// Packets that no counter explains: of those that arrived, those that neither left, seen from outside, nor were dropped for
    /// any reason.
    pub lost: u64,
    /// Packets that left more than once, seen from outside.
    pub duplicated: u64,
    /// Packets that left after a younger packet of the same direction of their flow, seen from outside.
    pub reordered: u64,
    /// Packets dropped meanwhile, by reason; reasons without drops are left out.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Shards that moved meanwhile.
    pub migrations: u64,
    /// Packets that were processed away from home.
    pub offloaded: u64,
    /// Packets that came back, since they could be processed at home only.
    pub refused: u64,
    /// Packets that arrived meanwhile.
    pub packets: u64,
    /// From when the home publishes a packet until the offloading lane is about to process it, at 100,000 packets a second;
    /// nanoseconds, half of them.
    pub hop_ns_p50: u64,
    /// 99 of 100.
    pub hop_ns_p99: u64,
    /// 995 of 1,000.
    pub hop_ns_p995: u64,
    /// Hops measured.
    pub hops: u64,
    /// The whole way of the same packets: from when the working lane was given one until it left the offloading lane.
    pub trip_ns_p50: u64,
    /// 99 of 100.
    pub trip_ns_p99: u64,
    /// 995 of 1,000.
    pub trip_ns_p995: u64,
    /// The hop's share of the way, of the medians.
    pub hop_share: f64,
    /// The whole way of packets of flows that are at home.
    pub home_trip_ns_p50: u64,
    /// 99 of 100.
    pub home_trip_ns_p99: u64,
    /// 995 of 1,000.
    pub home_trip_ns_p995: u64,
    /// Milliseconds for which threads of the process were ready and had no core while hops were measured.
    pub run_delay_ms: f64,
    /// Milliseconds that the hypervisor took meanwhile.
    pub steal_ms: f64,
    /// Packets per microsecond that left, of flows that were all away.
    pub mpps: f64,
    /// The same with the flows at home.
    pub home_mpps: f64,
    /// What the working lane takes for a packet of a flow that is at home, in nanoseconds.
    pub home_ns: f64,
    /// What it takes for one of a flow that is away.
    pub sender_ns: f64,
    /// What the offloading lane takes for it.
    pub receiver_ns: f64,
    /// What handing over costs both lanes together: `sender_ns` + `receiver_ns` − `home_ns`.
    pub handover_ns: f64,
    /// By how many hundredths packets of flows that stay cost more while others are away.
    pub marked_percent: f64,
}

impl OffloadRow {
    pub(super) fn of(counted: Transitions, hops: &Hops, costs: &Costs) -> OffloadRow {
        let Transitions { transitions, lost, duplicated, reordered, dropped, .. } = counted;
        let Transitions { migrations, offloaded, refused, packets, .. } = counted;
        let Hops { hop, trip, home, .. } = hops;
        OffloadRow {
            transitions,
            lost,
            duplicated,
            reordered,
            dropped,
            migrations,
            offloaded,
            refused,
            packets,
            hop_ns_p50: hop.p50,
            hop_ns_p99: hop.p99,
            hop_ns_p995: hop.p995,
            hops: hops.hops,
            trip_ns_p50: trip.p50,
            trip_ns_p99: trip.p99,
            trip_ns_p995: trip.p995,
            hop_share: to_hundredths(hop.p50 as f64 / trip.p50.max(1) as f64),
            home_trip_ns_p50: home.p50,
            home_trip_ns_p99: home.p99,
            home_trip_ns_p995: home.p995,
            run_delay_ms: to_hundredths(hops.run_delay_ms),
            steal_ms: to_hundredths(hops.steal_ms),
            mpps: to_thousandths(costs.mpps),
            home_mpps: to_thousandths(costs.home_mpps),
            home_ns: to_hundredths(costs.home_ns),
            sender_ns: to_hundredths(costs.sender_ns),
            receiver_ns: to_hundredths(costs.receiver_ns),
            handover_ns: to_hundredths(costs.sender_ns + costs.receiver_ns - costs.home_ns),
            marked_percent: to_hundredths(costs.marked_percent),
        }
    }

    /// Whether every packet left once, in order, or was counted as dropped.
    pub fn is_sound(&self) -> bool {
        self.lost + self.duplicated + self.reordered == 0
    }
}

impl fmt::Display for OffloadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "flows left or came home {} times while {} shards moved, {} packets meanwhile ({} away, {} came back)",
            self.transitions, self.migrations, self.packets, self.offloaded, self.refused
        )?;
        writeln!(
            f,
            "lost {}, duplicated {}, reordered {}",
            self.lost, self.duplicated, self.reordered
        )?;
        for (reason, count) in &self.dropped {
            writeln!(f, "dropped {count} {reason}")?;
        }
        writeln!(f, "at 100,000 packets a second      50 %    99 %  99.5 %")?;
        let mut line = |name: &str, [p50, p99, p995]: [u64; 3]| {
            writeln!(f, "{name:<29}{p50:>8}{p99:>8}{p995:>8} ns")
        };
        line("  from lane to lane", [self.hop_ns_p50, self.hop_ns_p99, self.hop_ns_p995])?;
        line("  whole way, flows away", [self.trip_ns_p50, self.trip_ns_p99, self.trip_ns_p995])?;
        let home = [self.home_trip_ns_p50, self.home_trip_ns_p99, self.home_trip_ns_p995];
        line("  whole way, flows at home", home)?;
        writeln!(
            f,
            "  meanwhile, threads waited {} ms for a core, and the hypervisor took {} ms",
            self.run_delay_ms, self.steal_ms
        )?;
        writeln!(
            f,
            "a packet takes {} ns at home; away {} ns of its home and {} ns of the other lane: {} ns more",
            self.home_ns, self.sender_ns, self.receiver_ns, self.handover_ns
        )?;
        writeln!(f, "{} Mpps with all flows away, {} with all at home", self.mpps, self.home_mpps)?;
        write!(f, "flows that stay pay {} % for those that are away", self.marked_percent)
    }
}
