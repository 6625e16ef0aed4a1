//! What a sink behind all lanes sees.

use rheostat_base::clock::Cycles;

use super::arrivals::SharingPacket;
use super::lane::BURST;

/// When the packets of a lane's queue left, all of a burst together.
#[derive(Debug)]
pub(super) struct Departures<'a> {
    queue: &'a [SharingPacket],
    /// By burst; ascending.
    left: Vec<Cycles>,
}

impl<'a> Departures<'a> {
    /// None yet, and room for all.
    pub(super) fn of(queue: &'a [SharingPacket]) -> Departures<'a> {
        Departures { queue, left: Vec::with_capacity(queue.len().div_ceil(BURST)) }
    }

    /// The next burst leaves.
    #[inline]
    pub(super) fn note(&mut self, now: Cycles) {
        self.left.push(now);
    }

    fn bursts(&self) -> impl Iterator<Item = (Cycles, &[SharingPacket])> {
        self.left.iter().copied().zip(self.queue.chunks(BURST))
    }
}

/// How many packets of all lanes together leave after one of their flow that came later (RFC 4737,
/// section 3), in whatever way flows were looked up on the way. As exact as the cores' counters of
/// cycles agree.
pub(super) fn reordered(lanes: &[Departures<'_>], flows: usize) -> u64 {
    let mut bursts: Vec<_> = lanes.iter().flat_map(Departures::bursts).collect();
    // Stable, so that what left a lane in the same cycle stays in order.
    bursts.sort_by_key(|(left, _)| left.0);
    let mut next = vec![0; flows];
    let mut reordered = 0;
    for packet in bursts.into_iter().flat_map(|(_, burst)| burst) {
        let next = &mut next[packet.flow as usize];
        reordered += u64::from(packet.position < *next);
        *next = packet.position.max(*next);
    }
    reordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(positions: impl Iterator<Item = u32>, flows: u32) -> Vec<SharingPacket> {
        positions.map(|position| SharingPacket { position, flow: position % flows }).collect()
    }

    fn departed(queue: &[SharingPacket], first: u64) -> Departures<'_> {
        let mut departures = Departures::of(queue);
        let bursts = queue.chunks(BURST).count() as u64;
        (0..bursts).for_each(|burst| departures.note(Cycles(first + 10 * burst)));
        departures
    }

    #[test]
    fn a_flow_that_keeps_its_lane_keeps_its_order_however_late_the_lane() {
        let lanes = [0, 1].map(|lane| queue((0..1_000).filter(|at| at % 2 == lane), 2));
        assert_eq!(reordered(&[departed(&lanes[0], 9_000), departed(&lanes[1], 0)], 2), 0);
    }

    #[test]
    fn what_leaves_behind_its_successors_is_reordered() {
        // One flow on two lanes: the first burst of one leaves after the first burst of the other.
        let lanes = [0, 1].map(|lane| queue((0..64).filter(|at| at % 2 == lane), 1));
        // All of the burst that leaves last came before the last packet of the other.
        assert_eq!(reordered(&[departed(&lanes[0], 5), departed(&lanes[1], 0)], 1), 32);
        // The last packet of all may well leave last.
        assert_eq!(reordered(&[departed(&lanes[0], 0), departed(&lanes[1], 5)], 1), 31);
    }
}
