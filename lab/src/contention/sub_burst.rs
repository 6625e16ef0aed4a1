//! How many packets share a transaction, and when one has to run alone: the rules of the runtime, in
//! `chain_service/transaction.rs` of the crate `nf`.

/// Packets of a burst.
pub(super) const BURST: u64 = 32;
/// How often a transaction of one packet is tried before it runs alone.
const TIMEOUT: u32 = 8;

/// The size of a lane's sub-bursts: halved by an abort, one more after a success.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubBurst {
    size: u64,
    most: u64,
    /// Aborts of the first packet on its own.
    failures: u32,
}

impl SubBurst {
    /// Up to `most` packets together.
    pub(super) fn new(most: u64) -> SubBurst {
        SubBurst { size: most, most, failures: 0 }
    }

    /// Packets of the next attempt at most.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether the next attempt has to run alone.
    pub(super) fn runs_alone(&self) -> bool {
        self.failures >= TIMEOUT
    }

    /// An attempt of so many packets took effect.
    pub(super) fn committed(&mut self, packets: u64) {
        self.failures = 0;
        // The rest of a burst, smaller than could have been, shows nothing.
        self.size = (self.size + u64::from(packets >= self.size)).min(self.most);
    }

    /// An attempt of so many packets was undone.
    pub(super) fn aborted(&mut self, packets: u64) {
        self.failures += u32::from(packets == 1);
        self.size = (packets / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aborts_halve_down_to_one_packet_which_runs_alone_in_the_end() {
        let mut sub_burst = SubBurst::new(BURST);
        let sizes: Vec<_> = (0..6)
            .map(|_| {
                sub_burst.aborted(sub_burst.size());
                sub_burst.size()
            })
            .collect();
        assert_eq!(sizes, [16, 8, 4, 2, 1, 1]);
        assert!(!sub_burst.runs_alone());
        (1..TIMEOUT).for_each(|_| sub_burst.aborted(1));
        assert!(sub_burst.runs_alone());
        sub_burst.committed(1);
        assert!(!sub_burst.runs_alone() && sub_burst.size() == 2);
        sub_burst.committed(1);
        assert_eq!(sub_burst.size(), 2, "less than could have been");
    }
}
