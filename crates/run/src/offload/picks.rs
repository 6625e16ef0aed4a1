//! Which flows of a lane are to be away, so that of each shard about as much leaves as a plan wants. A state machine over figures:
//! once per epoch the heaviest flows go in, and flows to begin and to recall come out.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use rheostat_base::ShardId;
use rheostat_steer::policy::{Load, pick_flows};

use super::FlowNumber;
use crate::classes::FlowName;

/// Flows that leave in one epoch at most: a flow that makes itself heavy and idle in turn makes no more work than that.
pub(crate) const BEGINS_PER_EPOCH: usize = 64;
/// Epochs for which a flow stays that could not leave, or came back by itself.
const STAYS: u32 = 10;
/// Flows that are known to stay, at most.
const KNOWN_TO_STAY: usize = 1_024;
/// What is away may differ from what is wanted by this part of it before anything changes.
const TOLERANCE: Load = Load::from_percent(20);

/// A flow that is away.
#[derive(Clone, Copy, Debug)]
struct Left {
    number: FlowNumber,
    /// Whether it was recalled, because it is not to be away any more.
    is_recalled: bool,
}

/// What is to change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Picked {
    /// Flows that are to leave, heaviest first.
    pub(crate) leave: Vec<FlowName>,
    /// Flows that are to come home.
    pub(crate) recall: Vec<FlowNumber>,
}

/// What is to leave, and what has left.
#[derive(Debug, Default)]
pub(crate) struct Picks {
    /// By shard, the part of its work that is to leave.
    targets: HashMap<ShardId, Load>,
    left: HashMap<FlowName, Left>,
    names: HashMap<FlowNumber, FlowName>,
    /// Flows that stay, each until an epoch.
    stays: HashMap<FlowName, u32>,
    epoch: u32,
}

impl Picks {
    /// This part of each shard's work is to leave, and nothing of others.
    pub(crate) fn aim(&mut self, targets: impl IntoIterator<Item = (ShardId, Load)>) {
        self.targets = targets.into_iter().filter(|(_, part)| *part > Load::ZERO).collect();
    }

    /// Nothing of a shard is to leave: it moves.
    pub(crate) fn give_up(&mut self, shard: ShardId) {
        self.targets.remove(&shard);
    }

    /// A flow has left under this number.
    pub(crate) fn note_left(&mut self, name: FlowName, number: FlowNumber) {
        self.left.insert(name, Left { number, is_recalled: false });
        self.names.insert(number, name);
    }

    /// A flow may not leave for now.
    pub(crate) fn note_stays(&mut self, name: FlowName) {
        if self.stays.len() < KNOWN_TO_STAY {
            self.stays.insert(name, self.epoch + STAYS);
        }
    }

    /// A flow is home again. One that was not recalled from here stays for a while.
    pub(crate) fn note_home(&mut self, number: FlowNumber) {
        let Some(name) = self.names.remove(&number) else { return };
        if self.left.remove(&name).is_some_and(|left| !left.is_recalled) {
            self.note_stays(name);
        }
    }

    /// The name of a flow that is away.
    pub(crate) fn name_of(&self, number: FlowNumber) -> Option<FlowName> {
        self.names.get(&number).copied()
    }

    /// An epoch has ended, in which flows had these parts of their shards' work. Returns what is to change. O(flows · log flows).
    pub(crate) fn end_epoch(&mut self, parts: &[(FlowName, Load)]) -> Picked {
        self.epoch += 1;
        let epoch = self.epoch;
        self.stays.retain(|_, until| *until > epoch);
        let part_of: HashMap<FlowName, Load> = parts.iter().copied().collect();
        let of_left = self.left.keys().map(|name| name.shard);
        let shards: BTreeSet<ShardId> = self.targets.keys().copied().chain(of_left).collect();
        let mut picked = Picked::default();
        for shard in shards {
            self.pick(shard, parts, &part_of, &mut picked);
        }
        picked.leave.sort_by_key(|name| (Reverse(part_of[name]), name.shard));
        picked.leave.truncate(BEGINS_PER_EPOCH);
        // So that equal runs recall them in the same order.
        picked.recall.sort_by_key(|number| number.bits());
        picked
    }

    fn pick(
        &mut self,
        shard: ShardId,
        parts: &[(FlowName, Load)],
        part_of: &HashMap<FlowName, Load>,
        picked: &mut Picked,
    ) {
        let target = self.targets.get(&shard).copied().unwrap_or(Load::ZERO);
        let part = |name: &FlowName| part_of.get(name).copied().unwrap_or(Load::ZERO);
        let mut away: Vec<(Load, FlowName)> = Vec::new();
        for (name, left) in &mut self.left {
            if name.shard != shard || left.is_recalled {
                continue;
            }
            // What has become idle makes room for others.
            if target == Load::ZERO || part(name) == Load::ZERO {
                left.is_recalled = true;
                picked.recall.push(left.number);
            } else {
                away.push((part(name), *name));
            }
        }
        let mut sum: Load = away.iter().map(|(part, _)| *part).sum();
        let least = target.saturating_sub(target.times(TOLERANCE));
        if sum < least {
            let may_leave = |(name, _): &&(FlowName, Load)| {
                name.shard == shard
                    && !self.left.contains_key(name)
                    && !self.stays.contains_key(name)
            };
            let others: Vec<_> = parts.iter().filter(may_leave).collect();
            let loads: Vec<Load> = others.iter().map(|(_, part)| *part).collect();
            let more = pick_flows(&loads, target.saturating_sub(sum));
            picked.leave.extend(more.into_iter().map(|place| others[place].0));
            return;
        }
        away.sort_by_key(|(part, name)| (*part, name.hash.0));
        for (part, name) in away {
            if sum <= target + target.times(TOLERANCE) || sum.saturating_sub(part) < least {
                return;
            }
            sum = sum.saturating_sub(part);
            let left = self.left.get_mut(&name).expect("it is away");
            left.is_recalled = true;
            picked.recall.push(left.number);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rheostat_base::LaneId;
    use rheostat_packet::FlowKey;
    use rheostat_state::FlowHash;

    use super::*;

    fn name(number: u64) -> FlowName {
        FlowName { shard: ShardId(0), hash: FlowHash(number), key: FlowKey::NONE }
    }

    fn parts(of: &[(u64, u64)]) -> Vec<(FlowName, Load)> {
        of.iter().map(|&(number, percent)| (name(number), Load::from_percent(percent))).collect()
    }

    /// Picks of which flows leave at once, with numbers in the order in which they leave.
    #[derive(Default)]
    struct World {
        picks: Picks,
        next: usize,
    }

    impl World {
        fn end_epoch(&mut self, of: &[(u64, u64)]) -> (Vec<u64>, Vec<u64>) {
            let Picked { leave, recall } = self.picks.end_epoch(&parts(of));
            for name in &leave {
                self.picks.note_left(*name, FlowNumber::new(LaneId(0), self.next));
                self.next += 1;
            }
            let hash = |number: &FlowNumber| self.picks.name_of(*number).unwrap().hash.0;
            let home = recall.iter().map(hash).collect();
            recall.iter().for_each(|number| self.picks.note_home(*number));
            (leave.iter().map(|name| name.hash.0).collect(), home)
        }
    }

    #[test]
    fn the_heaviest_flows_leave_until_the_share_is_reached() {
        let mut world = World::default();
        let flows = [(1, 10), (2, 30), (3, 5), (4, 20)];
        assert_eq!(world.end_epoch(&flows), (vec![], vec![]), "nothing is wanted");
        world.picks.aim([(ShardId(0), Load::from_percent(55))]);
        assert_eq!(world.end_epoch(&flows), (vec![2, 4, 3], vec![]));
        assert_eq!(world.end_epoch(&flows), (vec![], vec![]), "enough is away");
        let heavier = [(1, 10), (2, 36), (3, 5), (4, 26)];
        assert_eq!(world.end_epoch(&heavier), (vec![], vec![3]), "a little too much: the lightest");
        world.picks.aim([]);
        let (leave, mut home) = world.end_epoch(&flows);
        home.sort_unstable();
        assert_eq!((leave, home), (vec![], vec![2, 4]));
    }

    #[test]
    fn an_idle_flow_makes_room_for_one_that_became_heavy() {
        let mut world = World::default();
        world.picks.aim([(ShardId(0), Load::from_percent(30))]);
        assert_eq!(world.end_epoch(&[(1, 30), (2, 2)]), (vec![1], vec![]));
        assert_eq!(world.end_epoch(&[(2, 30)]), (vec![2], vec![1]));
    }

    #[test]
    fn a_flow_that_came_back_by_itself_or_could_not_leave_stays_for_a_while() {
        let mut world = World::default();
        world.picks.aim([(ShardId(0), Load::from_percent(30))]);
        assert_eq!(world.end_epoch(&[(1, 30)]).0, [1]);
        world.picks.note_home(FlowNumber::new(LaneId(0), 0));
        for _ in 0..STAYS - 1 {
            assert!(world.end_epoch(&[(1, 30)]).0.is_empty());
        }
        assert_eq!(world.end_epoch(&[(1, 30)]).0, [1]);
        world.picks.note_stays(name(2));
        assert!(world.end_epoch(&[(2, 30)]).0.is_empty(), "and the other is idle");
    }

    #[test]
    fn flows_that_flap_leave_at_a_bounded_rate() {
        let mut world = World::default();
        world.picks.aim([(ShardId(0), Load::from_percent(100))]);
        let mut left = 0;
        for epoch in 0..100_u64 {
            // Other thousand flows are heavy in each epoch; those before are idle.
            let flows: Vec<_> = (0..1_000).map(|flow| (1_000 * epoch + flow, 1)).collect();
            left += world.end_epoch(&flows).0.len();
            assert!(world.picks.left.len() <= BEGINS_PER_EPOCH, "{}", world.picks.left.len());
        }
        assert_eq!(left, 100 * BEGINS_PER_EPOCH);
    }

    #[test]
    fn nothing_leaves_of_a_shard_that_moves() {
        let mut world = World::default();
        world.picks.aim([(ShardId(0), Load::from_percent(30))]);
        world.picks.give_up(ShardId(0));
        assert_eq!(world.end_epoch(&[(1, 30)]), (vec![], vec![]));
    }
}
