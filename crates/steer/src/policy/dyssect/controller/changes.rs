//! An assignment as a plan.

use rheostat_base::{LaneId, ShardId};

use super::super::{FlowAssignment, LaneRole};
use super::Dyssect;
use super::situation::Situation;
use crate::policy::{HeavyFlow, Load, LoadSnapshot, Move, MoveReason, Offloads, Plan, pick_flows};

impl Dyssect {
    /// The assignment as a plan.
    pub(super) fn changes(
        &self,
        load: &LoadSnapshot,
        situation: &Situation,
        assignment: &FlowAssignment,
    ) -> Plan {
        let previous = &situation.previous;
        let lanes = || (0..load.lanes().len() as u16).map(LaneId);
        let role = |lane: &LaneId| assignment.roles[lane.index()];
        let was = |lane: &LaneId| previous.roles[lane.index()];
        let most = situation.working.transient();
        let why = |from: LaneId| match role(&from) {
            LaneRole::Working => MoveReason::Objective { load: load.load(from), most },
            LaneRole::Idle | LaneRole::Offloading => MoveReason::Parking,
        };
        let shards = (0..).map(ShardId).zip(previous.home.iter().zip(&assignment.home));
        let moved = shards.filter(|(_, (from, to))| from != to);
        let moves =
            moved.map(|(shard, (from, to))| Move { shard, from: *from, to: *to, why: why(*from) });
        let begins = |lane: &LaneId| role(lane) == LaneRole::Working && was(lane) != role(lane);
        let ends = |lane: &LaneId| role(lane) == LaneRole::Idle && was(lane) == LaneRole::Working;
        let links = assignment.links != previous.links;
        let shares = of_whole_flows(load, assignment);
        let pairs = shares.iter().zip(&previous.offloaded);
        let more = pairs.clone().map(|(now, then)| now.saturating_sub(*then)).sum::<Load>();
        let less = pairs.map(|(now, then)| then.saturating_sub(*now)).sum::<Load>();
        // Flows that come and go cost, too: a fluctuation moves none.
        let noise = Load::FULL.times(self.margin);
        let offloads = (links || more + less > noise)
            .then(|| Offloads { links: assignment.links.clone(), shares: shares.clone() });
        Plan {
            moves: moves.collect(),
            wake: lanes().filter(begins).collect(),
            park: lanes().filter(ends).collect(),
            offloads,
            why: Vec::new(),
        }
    }
}

/// What leaves each shard when each working lane hands over whole flows: the model spreads what leaves a lane over all of
/// its shards, but a shard's part of it is often less than its heaviest flow. So flows are picked by lane, and what leaves a
/// shard are its picked flows.
fn of_whole_flows(load: &LoadSnapshot, assignment: &FlowAssignment) -> Vec<Load> {
    let mut leaving = vec![Load::ZERO; load.lanes().len()];
    for (home, offloaded) in assignment.home.iter().zip(&assignment.offloaded) {
        leaving[home.index()] += *offloaded;
    }
    let mut shares = vec![Load::ZERO; load.shards().len()];
    for (lane, leaving) in (0..).map(LaneId).zip(leaving) {
        let of_lane = |flow: &&HeavyFlow| assignment.home[flow.shard.index()] == lane;
        let flows: Vec<&HeavyFlow> = load.heavy().iter().filter(of_lane).collect();
        let loads: Vec<Load> = flows.iter().map(|flow| flow.load).collect();
        for picked in pick_flows(&loads, leaving) {
            shares[flows[picked].shard.index()] += flows[picked].load;
        }
    }
    shares
}
