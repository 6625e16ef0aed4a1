//! Which flow the next packet of a benchmark belongs to, and which endpoints that flow has.

use std::net::Ipv4Addr;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Zipf};

/// How packets are spread over flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every flow alike.
    Uniform,
    /// The k-th most popular of n flows with probability proportional to k to the power of minus this
    /// exponent, which is positive. Which flow that is follows from the seed.
    Zipf(f64),
}

/// An endless sequence of flow numbers, drawn beforehand and repeated.
#[derive(Clone, Debug)]
pub struct FlowPicker {
    sequence: Vec<u32>,
    at: usize,
}

impl FlowPicker {
    /// Draws `length` numbers below `flows`. The popular flows of a Zipf distribution are scattered
    /// over the numbers.
    ///
    /// # Panics
    /// When there is no flow, nothing to draw, or the exponent is not positive.
    pub fn new(flows: u32, distribution: Distribution, length: usize, seed: u64) -> FlowPicker {
        assert!(flows > 0 && length > 0, "a picker picks among flows");
        let mut rng = SmallRng::seed_from_u64(seed);
        let sequence = match distribution {
            Distribution::Uniform => (0..length).map(|_| rng.random_range(0..flows)).collect(),
            Distribution::Zipf(exponent) => {
                let zipf = Zipf::new(f64::from(flows), exponent).expect("a positive exponent");
                let first = rng.random_range(0..flows);
                let scatter = |rank: u32| {
                    // A prime above all numbers of flows: ranks keep apart.
                    let number = u64::from(rank) * 4_294_967_291 + u64::from(first);
                    (number % u64::from(flows)) as u32
                };
                (0..length).map(|_| scatter(zipf.sample(&mut rng) as u32 - 1)).collect()
            }
        };
        FlowPicker { sequence, at: 0 }
    }

    /// The next flow.
    #[inline]
    pub fn pick(&mut self) -> u32 {
        let flow = self.sequence[self.at];
        self.at += 1;
        if self.at == self.sequence.len() {
            self.at = 0;
        }
        flow
    }
}

/// The endpoints of benchmark flow `number`, by arithmetic alone: a client in 10.0.0.0/8 with its port,
/// and a server in 198.18.0.0/15 (RFC 2544). Numbers below 2^38 have different endpoints.
#[inline]
pub fn tuple_of(number: u64) -> ((Ipv4Addr, u16), (Ipv4Addr, u16)) {
    // An odd multiplier permutes the numbers below 2^38.
    let mixed = number.wrapping_mul(0x16_9b2b_8dd5) & ((1 << 38) - 1);
    let client = Ipv4Addr::from_bits(0x0a00_0000 | (mixed >> 14) as u32);
    let port = 0x4000 | (mixed & 0x3fff) as u16;
    let spread = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47) as u32;
    let server = Ipv4Addr::from_bits(0xc612_0000 | spread);
    ((client, port), (server, 443))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tuples_of_different_flows_differ() {
        let tuples: HashSet<_> = (0..100_000).map(tuple_of).collect();
        assert_eq!(tuples.len(), 100_000);
    }

    #[test]
    fn a_zipf_distribution_has_a_head_and_a_uniform_one_has_none() {
        let share_of_top = |distribution| {
            let mut picker = FlowPicker::new(1_000, distribution, 100_000, 3);
            let mut counts = vec![0_u32; 1_000];
            (0..100_000).for_each(|_| counts[picker.pick() as usize] += 1);
            f64::from(*counts.iter().max().unwrap()) / 100_000.0
        };
        assert!(share_of_top(Distribution::Uniform) < 0.003);
        // 1 ÷ Σ k^-1.1 for k up to 1,000 is 0.179.
        assert!((share_of_top(Distribution::Zipf(1.1)) - 0.179).abs() < 0.02);
    }
}
