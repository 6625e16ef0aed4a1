//! What the NAT counts.

use std::time::Duration;

use rheostat_run::Metrics;
use rheostat_state::bytemuck::{Pod, Zeroable};
use rheostat_state::object::Distributed;
use rheostat_state::txn::Objects;

/// The counts of one lane, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
pub(super) struct Counts {
    /// External endpoints given out, and taken back.
    pub(super) created: u64,
    pub(super) ended: u64,
    /// Of those given out, the ones with the inner endpoint's port.
    pub(super) preserved: u64,
    /// Flows between hosts inside.
    pub(super) hairpinned: u64,
}

impl Counts {
    /// Counts that each lane keeps for itself. They are only read when the run is over.
    pub(super) fn of_lanes(objects: &Objects) -> Distributed<Counts> {
        Distributed::new(objects, "counts", Counts::default(), Counts::merge, Duration::MAX)
    }

    fn merge(&mut self, other: &Counts) {
        self.created += other.created;
        self.ended += other.ended;
        self.preserved += other.preserved;
        self.hairpinned += other.hairpinned;
    }

    /// Adds them to the figures of a run.
    pub(super) fn add_to(self, metrics: &mut Metrics) {
        metrics.add("endpoints_created", self.created);
        metrics.add("endpoints_ended", self.ended);
        metrics.add("ports_preserved", self.preserved);
        metrics.add("flows_hairpinned", self.hairpinned);
    }
}
