//! What arrives at the simulated NIC of a measurement.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat_base::Time;
use rheostat_io::{Arrival, Source};
use rheostat_packet::LinkType;

use crate::datagram;
use crate::vacation::arrivals::{Arrivals, Spacing};

/// How many flows take turns.
const FLOWS: u64 = 1_024;

/// Datagrams of 64 bytes on the wire until a given time.
pub(super) struct Datagrams {
    arrivals: Arrivals,
    random: StdRng,
    end: u64,
    number: u64,
}

impl Datagrams {
    /// At these rates, each from so many nanoseconds on, until `end`.
    pub(super) fn new(spacing: Spacing, rates: Vec<(u64, f64)>, end: u64, seed: u64) -> Datagrams {
        let mut random = StdRng::seed_from_u64(seed);
        let arrivals = Arrivals::new(spacing, rates, &mut random);
        Datagrams { arrivals, random, end, number: 0 }
    }
}

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let due = self.arrivals.next();
        if due >= self.end {
            return None;
        }
        self.arrivals.advance(&mut self.random);
        datagram::write((self.number % FLOWS) as u16, frame);
        self.number += 1;
        let len = frame.len();
        let time = Time::from_nanos(due);
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive_in_order_until_the_end() {
        let rates = vec![(0, 1e6), (1_000_000, 2e6)];
        let mut source = Datagrams::new(Spacing::Poisson, rates, 2_000_000, 1);
        let mut frame = Vec::new();
        let mut times = Vec::new();
        while let Some(arrival) = source.next(&mut frame) {
            assert_eq!(arrival.len, 60);
            times.push(arrival.time.as_nanos());
        }
        assert!(times.is_sorted() && *times.last().unwrap() < 2_000_000);
        assert!(times.len().abs_diff(3_000) < 300, "{}", times.len());
    }
}
