//! What lanes that share a receive queue have counted.

use std::time::Duration;

/// What the claimants of one receive queue have counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingCounters {
    /// Each claimant's own, in the order of their lanes.
    pub claimants: Vec<ClaimantCounters>,
    /// Times that all descriptors of the queue were claimed, so that claimants found nothing to claim until the oldest
    /// claim was done.
    pub stalls: u64,
    /// How long that lasted, in all: from the first poll that found the queue used up to the next claim.
    pub stalled: Duration,
    /// The longest of them.
    pub longest_stall: Duration,
    /// Where packets leave in the order of claims: how they did.
    pub departures: Option<DepartureCounters>,
}

/// How packets left that leave in the order in which they were claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepartureCounters {
    /// Claims that have left.
    pub turns: u64,
    /// From when a lane was done with a claim to its departure, as polls see it: half of all claims waited no longer.
    pub delay_p50: Duration,
    /// 99 of 100 waited no longer.
    pub delay_p99: Duration,
    /// None waited longer.
    pub longest_delay: Duration,
}

/// What one claimant of a receive queue has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimantCounters {
    /// Claims.
    pub claims: u64,
    /// Packets of those claims.
    pub packets: u64,
    /// Races for a claim that another claimant won.
    pub retries: u64,
    /// Times that the queue was used up while this claimant had the oldest claim: it was paused between its claim and the
    /// end of taking it.
    pub pauses: u64,
}

impl SharingCounters {
    /// Adds what the same lanes have counted at another ring, or at a queue before this one. Departures stay.
    pub fn add(&mut self, other: &SharingCounters) {
        let lanes = self.claimants.len().max(other.claimants.len());
        self.claimants.resize(lanes, ClaimantCounters::default());
        for (sum, claimant) in self.claimants.iter_mut().zip(&other.claimants) {
            sum.claims += claimant.claims;
            sum.packets += claimant.packets;
            sum.retries += claimant.retries;
            sum.pauses += claimant.pauses;
        }
        self.stalls += other.stalls;
        self.stalled += other.stalled;
        self.longest_stall = self.longest_stall.max(other.longest_stall);
    }

    /// The figures of all claimants together.
    pub fn total(&self) -> ClaimantCounters {
        self.claimants.iter().fold(ClaimantCounters::default(), |sum, claimant| ClaimantCounters {
            claims: sum.claims + claimant.claims,
            packets: sum.packets + claimant.packets,
            retries: sum.retries + claimant.retries,
            pauses: sum.pauses + claimant.pauses,
        })
    }
}
