//! How tasks of a lane wait for the members that do them.

use rheostat_base::choice::Outstanding;

/// How tasks wait between a lane and its members. The choices are those of [`rheostat_base::choice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolQueueing {
    /// In one queue at the lane; a member is given the oldest while it holds fewer than so many.
    Central(Outstanding),
    /// In a queue of each member; the hash that comes with a task names the member.
    PerMember,
    /// As `PerMember`; a member without tasks takes some from the member of its lane that has most.
    Stealing {
        /// Tasks taken at a time at most.
        burst: u32,
    },
}

impl Default for PoolQueueing {
    /// A central queue, of which members hold one task each.
    fn default() -> PoolQueueing {
        PoolQueueing::Central(Outstanding::ONE)
    }
}

/// Which lanes a member works for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolSharing {
    /// For all lanes of the run.
    #[default]
    AllLanes,
    /// For one: members are divided evenly among lanes, those of the first lane first.
    OneLane,
}
