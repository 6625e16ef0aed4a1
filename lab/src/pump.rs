//! What a lane that is away for a while loses: on the simulated NIC that needs no core, and on the one that is stepped
//! through the same moments.

mod round;
mod row;
mod write_cost;

use std::time::Duration;

use rheostat_base::Clock;
use rheostat_io::{DrawnArrivals, Pacing, SimConfig};
use rheostat_packet::Mempool;
use rheostat_packet::mbuf::PoolError;

use crate::datagrams::{Datagrams, Spacing};
use crate::error::BenchError;
use crate::testbed::{dut, lanes};
use round::Round;
pub use row::PumpRow;

/// Entries of the indirection table.
const BUCKETS: usize = 128;

/// What is measured: every absence with every rate and ring.
#[derive(Clone, Debug)]
pub struct PumpBench {
    /// How long the lane is away.
    pub away: Vec<Duration>,
    /// Packets per second, evenly spaced.
    pub rates: Vec<u64>,
    /// Descriptors of the receive queue; the device rounds up to a power of two.
    pub descriptors: Vec<u32>,
    /// Rounds of which the median counts: a virtual machine takes the processor away at times, which is an absence as
    /// well.
    pub rounds: usize,
}

impl PumpBench {
    /// Measures; `each` is called with every row.
    ///
    /// # Errors
    /// [`BenchError`] when a device cannot be had, or the two devices gave a lane different packets.
    pub fn run(&self, mut each: impl FnMut(&PumpRow)) -> Result<(), BenchError> {
        let write_ns = write_cost::measure()?;
        for &rate in &self.rates {
            for &descriptors in &self.descriptors {
                for &away in &self.away {
                    let row = self.row(away, rate, descriptors)?;
                    each(&PumpRow { write_ns, ..row });
                }
            }
        }
        Ok(())
    }

    fn row(&self, away: Duration, rate: u64, descriptors: u32) -> Result<PumpRow, BenchError> {
        let config = config(descriptors)?;
        let pool = pool(config.descriptors.next_power_of_two())?;
        let length = Round::length(away);
        let drawn = DrawnArrivals::draw(&config, Box::new(evenly(rate)), &pool, length)?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.max(1) {
            let round = Round::run(&config, &drawn, rate, away, &pool, &Clock::new())?;
            rounds.push(round);
        }
        rounds.sort_by_key(|round| round.dropped_pumped);
        let round = &rounds[rounds.len() / 2];
        Ok(PumpRow::new(round, (away, rate, config.descriptors.next_power_of_two())))
    }
}

/// Evenly spaced datagrams, the first at zero.
fn evenly(rate: u64) -> Datagrams {
    Datagrams::new(64, Spacing::Constant, rate as f64, 0)
}

/// A pumped device of one queue with so many descriptors.
fn config(descriptors: u32) -> Result<SimConfig, BenchError> {
    let steering = dut::steering(BUCKETS, BUCKETS)?;
    let config = SimConfig::new("pump", 1, steering.into());
    Ok(SimConfig { descriptors, pacing: Pacing::OpenLoop { origin: None }, ..config })
}

/// Buffers for a full ring and a burst.
fn pool(descriptors: u32) -> Result<Mempool, PoolError> {
    lanes::pool(descriptors + 1_024)
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn what_an_absence_costs_is_the_same_on_both_devices_and_at_least_what_a_ring_does_not_hold() {
        let bench = PumpBench {
            away: vec![Duration::from_millis(1), Duration::from_millis(3)],
            rates: vec![200_000],
            descriptors: vec![256],
            rounds: 1,
        };
        let mut rows = Vec::new();
        bench.run(|row| rows.push(row.clone())).unwrap();
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert_eq!(row.dropped_pumped, row.dropped_stepped, "{row:?}");
            assert!(row.write_ns > 0.0);
        }
        // 600 packets in 3 ms; a machine that takes the processor away makes it more.
        assert!(rows[1].dropped_pumped >= 600 - 256 - 1, "{:?}", rows[1]);
    }
}
