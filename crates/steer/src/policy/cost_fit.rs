//! What packets and bytes cost, fitted to what lanes were busy.

/// Older periods count this much less with each look.
const AGEING: f64 = 0.95;
/// Below this, packets and bytes of all looks were in nearly the same ratio, and their costs cannot be told apart.
const LEAST_SPREAD: f64 = 1e-4;
/// Looks needed before a fit is believed.
const LEAST_LOOKS: u32 = 4;

/// Costs in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkCost {
    /// Of a packet.
    pub packet_ps: u64,
    /// Of a byte.
    pub byte_ps: u64,
}

impl WorkCost {
    /// Packets alone, all alike: what is assumed before anything else is known.
    pub const PACKETS: WorkCost = WorkCost { packet_ps: 1, byte_ps: 0 };

    /// Work in picoseconds; only proportions matter where nothing was fitted.
    pub fn of(self, packets: u64, bytes: u64) -> u64 {
        let part = |count: u64, cost: u64| count.saturating_mul(cost);
        part(packets, self.packet_ps).saturating_add(part(bytes, self.byte_ps))
    }
}

/// Least squares for busy = packets · a + bytes · b with a, b ≥ 0, over the looks at all lanes, aged. Each look is weighted by
/// its inverse packets, as if errors grew with their root.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CostFit {
    packets: f64,
    mixed: f64,
    bytes: f64,
    by_packets: f64,
    by_bytes: f64,
    looks: u32,
}

impl CostFit {
    pub(super) fn age(&mut self) {
        for sum in [
            &mut self.packets,
            &mut self.mixed,
            &mut self.bytes,
            &mut self.by_packets,
            &mut self.by_bytes,
        ] {
            *sum *= AGEING;
        }
    }

    /// A lane was busy so long with so many packets and bytes.
    pub(super) fn add(&mut self, packets: u64, bytes: u64, busy_ns: u64) {
        if packets == 0 || busy_ns == 0 {
            return;
        }
        let (x, y, t) = (packets as f64, bytes as f64, busy_ns as f64);
        self.packets += x;
        self.mixed += y;
        self.bytes += y * y / x;
        self.by_packets += t;
        self.by_bytes += t * y / x;
        self.looks = self.looks.saturating_add(1);
    }

    /// The costs, once they can be told apart.
    pub(super) fn cost(&self) -> Option<WorkCost> {
        let determinant = self.packets * self.bytes - self.mixed * self.mixed;
        let spread = determinant / (self.packets * self.bytes);
        if self.looks < LEAST_LOOKS || spread.is_nan() || spread < LEAST_SPREAD {
            return None;
        }
        let a = (self.by_packets * self.bytes - self.by_bytes * self.mixed) / determinant;
        let b = (self.by_bytes * self.packets - self.by_packets * self.mixed) / determinant;
        let (a, b) = if b <= 0.0 {
            (self.by_packets / self.packets, 0.0)
        } else if a <= 0.0 {
            (0.0, self.by_bytes / self.bytes)
        } else {
            (a, b)
        };
        let picos = |nanos: f64| (nanos * 1e3).round() as u64;
        let cost = WorkCost { packet_ps: picos(a), byte_ps: picos(b) };
        (cost.packet_ps + cost.byte_ps > 0).then_some(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(looks: &[(u64, u64, u64)]) -> Option<WorkCost> {
        let mut fit = CostFit::default();
        for &(packets, bytes, busy) in looks {
            fit.age();
            fit.add(packets, bytes, busy);
        }
        fit.cost()
    }

    /// 200 ns for a packet and 1 ns for a byte.
    fn look(packets: u64, size: u64) -> (u64, u64, u64) {
        (packets, packets * size, packets * (200 + size))
    }

    #[test]
    fn costs_are_found_where_sizes_differ() {
        let cost = fit(&[look(100, 64), look(80, 1_500), look(500, 100), look(10, 700)]);
        assert_eq!(cost, Some(WorkCost { packet_ps: 200_000, byte_ps: 1_000 }));
    }

    #[test]
    fn costs_that_cannot_be_told_apart_are_not_told() {
        assert_eq!(fit(&[look(100, 500), look(300, 500), look(80, 500), look(9, 500)]), None);
        assert_eq!(fit(&[look(100, 64), look(80, 1_500)]), None, "too few");
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn no_cost_is_negative() {
        // Large packets are cheaper than small ones: by the packet, then.
        let cheap = [(100, 6_400, 50_000), (100, 150_000, 40_000)];
        let cost = fit(&[cheap[0], cheap[1], cheap[0], cheap[1]]).unwrap();
        assert_eq!(cost.byte_ps, 0);
        assert!((400_000..500_000).contains(&cost.packet_ps), "{cost:?}");
    }
}
