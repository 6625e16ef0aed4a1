//! What the models return.

use rheostat_base::LaneId;

use super::super::Load;
use super::Counts;

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneRole {
    /// Nothing.
    Idle,
    /// It owns shards (w_c = 1).
    Working,
    /// It serves flows of working lanes (f_k = 1).
    Offloading,
}

/// Lanes of shards and of the flows that leave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowAssignment {
    /// w and f, by lane.
    pub roles: Vec<LaneRole>,
    /// A: the working lane of each shard, by shard.
    pub home: Vec<LaneId>,
    /// O: the offloading lane of each working lane that has one, by lane.
    pub links: Vec<Option<LaneId>>,
    /// L_s · r_s: how much of each shard's load leaves its working lane, by shard.
    pub offloaded: Vec<Load>,
}

/// How two assignments differ (F in (5.16)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Shards that have another working lane.
    pub moved: usize,
    /// Working lanes that have an offloading lane they had not before.
    pub linked: usize,
}

impl Changes {
    /// Both together.
    pub fn total(self) -> usize {
        self.moved + self.linked
    }
}

impl FlowAssignment {
    /// All lanes work and none offloads, as runs begin: shards are dealt out in turn.
    pub fn dealt(shards: usize, lanes: usize) -> FlowAssignment {
        let lane = |shard: usize| LaneId((shard % lanes.max(1)) as u16);
        FlowAssignment {
            roles: vec![LaneRole::Working; lanes],
            home: (0..shards).map(lane).collect(),
            links: vec![None; lanes],
            offloaded: vec![Load::ZERO; shards],
        }
    }

    /// How many lanes have which role.
    pub fn counts(&self) -> Counts {
        let with = |role| self.roles.iter().filter(|other| **other == role).count();
        Counts { working: with(LaneRole::Working), offloading: with(LaneRole::Offloading) }
    }

    /// What has changed since `previous`. A lane that only loses its offloading lane is no change:
    /// F counts positive entries of the differences.
    pub fn changes_since(&self, previous: &FlowAssignment) -> Changes {
        let moved = self.home.iter().zip(&previous.home).filter(|(now, then)| now != then).count();
        let links = self.links.iter().zip(&previous.links);
        let linked = links.filter(|(now, then)| now.is_some() && now != then).count();
        Changes { moved, linked }
    }
}
