//! What it costs a lane to hand a packet to another, learned from what lanes were busy.

use super::WorkCost;

/// Older periods count this much less with each look.
const AGEING: f64 = 0.95;
/// Work is counted in so many parts of the unit of [`WorkCost`], since handing over may cost a small part of a packet.
pub(super) const PARTS: u64 = 1 << 10;

/// The time of packets that lanes processed, from those that hand nothing over; and the time of handing over, from what the others
/// were busy beyond their packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HandoverFit {
    processed: f64,
    processed_ns: f64,
    handed: f64,
    handed_ns: f64,
}

impl HandoverFit {
    pub(super) fn age(&mut self) {
        let HandoverFit { processed, processed_ns, handed, handed_ns } = self;
        [processed, processed_ns, handed, handed_ns].into_iter().for_each(|sum| *sum *= AGEING);
    }

    /// A lane processed so many packets, handed so many to others, and was busy so long. Of lanes that share a look, those that
    /// hand nothing over come first.
    pub(super) fn add(&mut self, processed: u64, handed: u64, busy_ns: u64) {
        let (packets, busy) = (processed as f64, busy_ns as f64);
        if handed == 0 {
            self.processed += packets;
            self.processed_ns += busy;
        } else if let Some(packet) = self.packet_ns() {
            // A packet is handed over for no more than what it costs to process one.
            let rest = (busy - packets * packet).clamp(0.0, handed as f64 * packet);
            self.handed += handed as f64;
            self.handed_ns += rest;
        }
    }

    /// The work of so many packets handed over, in [`PARTS`] of the unit of `cost`: that of packets without bytes as long as
    /// nothing else is known.
    pub(super) fn work(&self, handed: u64, cost: WorkCost) -> u64 {
        let parts = handed.saturating_mul(PARTS);
        let known = self.packet_ns().filter(|_| self.handed > 0.0);
        let Some(packet) = known else { return cost.of(parts, 0) };
        let each = self.handed_ns / self.handed;
        let units = if cost == WorkCost::PACKETS { each / packet } else { each * 1e3 };
        (parts as f64 * units).round() as u64
    }

    fn packet_ns(&self) -> Option<f64> {
        (self.processed >= 1.0 && self.processed_ns > 0.0)
            .then(|| self.processed_ns / self.processed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handing_over_costs_what_lanes_were_busy_beyond_their_packets() {
        let mut fit = HandoverFit::default();
        assert_eq!(fit.work(10, WorkCost::PACKETS), 10 * PARTS, "nothing is known");
        fit.add(1_000, 0, 50_000_000);
        // 500 packets of 50 us, and 800 handed over for 5 us each.
        fit.add(500, 800, 29_000_000);
        assert_eq!(fit.work(10, WorkCost::PACKETS), PARTS);
        let cost = WorkCost { packet_ps: 50_000_000, byte_ps: 1 };
        assert_eq!(fit.work(2, cost), 2 * 5_000_000 * PARTS);
    }

    #[test]
    fn it_costs_no_more_than_a_packet_and_no_less_than_nothing() {
        let mut fit = HandoverFit::default();
        fit.add(100, 0, 1_000);
        fit.add(10, 1, 10_000);
        assert_eq!(fit.work(1, WorkCost::PACKETS), PARTS);
        let mut fit = HandoverFit::default();
        fit.add(100, 0, 1_000);
        fit.add(100, 50, 500);
        assert_eq!(fit.work(1_000, WorkCost::PACKETS), 0);
    }
}
