//! What attempts and packets cost a lane.

use super::sub_burst::BURST;
use super::{Pattern, RealLanes};
use crate::error::BenchError;

/// What a lane's time goes into, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// An attempt, its packets apart: beginning and committing.
    pub attempt_ns: f64,
    /// A packet.
    pub packet_ns: f64,
}

/// How often either size of transaction is measured; the least time counts, as what disturbs only adds.
const ROUNDS: usize = 5;

impl Cost {
    /// Measures what one lane of a pattern takes while no other runs, by transactions of one packet and of a burst.
    ///
    /// What comes to it when lines travel between cores is not part of it.
    ///
    /// # Errors
    /// [`BenchError`] as [`RealLanes`].
    pub fn measure(pattern: &dyn Pattern, packets: u64, work: u32) -> Result<Cost, BenchError> {
        let [single, burst] = [1, BURST].map(|batch| least(pattern, batch, packets, work));
        let (single, burst) = (single?, burst?);
        let size = BURST as f64;
        let packet_ns = ((size * burst - single) / (size - 1.0)).clamp(0.0, burst);
        Ok(Cost { attempt_ns: (single - packet_ns).max(0.0), packet_ns })
    }
}

fn least(pattern: &dyn Pattern, batch: u64, packets: u64, work: u32) -> Result<f64, BenchError> {
    let mut lane = RealLanes::new(pattern, 1, batch, work)?;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        least = least.min(lane.run(packets, u32::MAX)?.ns_per_packet(1));
    }
    Ok(least)
}
