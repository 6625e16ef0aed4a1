//! A lane's part in walks through its shards ([`rheostat_run::listing`]): some entries between packets, at most once in a millisecond
//! where the lane has packets, so that a walk takes a hundredth of its time. Nothing here waits: a lane whose client does not
//! read goes on with packets, and looks again a millisecond later.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_packet::FlowKey;
use rheostat_run::listing::{
    EntryRecord, FlowRecord, FunctionFields, ListedFields, Record, Subject, Walk, WalkBoard,
};
use rheostat_run::{Entry, Output, ShardSet};
use rheostat_state::{FlowId, FlowMut, WalkedFlow};

use super::ChainService;
use crate::chain::Chain;
use crate::chain_shard::split;
use crate::listing::{ListedFlow, WantedEntries};
use crate::verdict::Ending;

/// The time between two pieces of a lane that has packets, and of one with next to none.
const PAUSE: Duration = Duration::from_millis(1);
const SHORT_PAUSE: Duration = Duration::from_micros(250);
/// The time between two pieces by that of a piece, likewise, so that neither functions that list slowly nor a slow machine cost more.
const SHARE: u32 = 100;
const IDLE_SHARE: u32 = 10;
/// Packets between two pieces below which a lane that has polled in vain has next to none.
const FEW: usize = 16;
/// What a piece costs at most, in parts of about 50 ns: about 10 us where the lane has packets, a hundredth of its time, and 25 us elsewhere.
const PIECE: u32 = 200;
const LONG_PIECE: u32 = 500;
/// What it costs to look at an entry, to list a flow, and to end one.
const LOOK: u32 = 1;
const LIST: u32 = 8;
const END: u32 = 10;

/// A lane's part in walks.
#[derive(Debug)]
pub(super) struct Walking {
    board: Arc<WalkBoard>,
    /// The word of the board when the walks were read.
    seen: u64,
    walks: Vec<Arc<Walk>>,
    /// When the next piece is due.
    due: Time,
    /// Packets that the service had counted behind the last piece, and the lane's polls that had found nothing.
    packets: usize,
    idle_polls: u64,
    /// Which walk has the first turn.
    turn: usize,
}

/// What came of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Piece {
    /// What it cost.
    cost: u32,
    /// Whether it waits for a flow that another lane works on.
    waits: bool,
}

impl Walking {
    pub(super) fn new(board: Arc<WalkBoard>) -> Walking {
        let (seen, walks) = (0, Vec::new());
        Walking { board, seen, walks, due: Time::ZERO, packets: 0, idle_polls: 0, turn: 0 }
    }

    /// Whether the lane has a piece to do.
    #[inline(always)]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.board.word() != self.seen || self.next_deadline().is_some_and(|due| due <= now)
    }

    /// When the lane next has a piece to do of a walk that it takes part in. That there are others, it sees at its next tick.
    #[inline(always)]
    pub(super) fn next_deadline(&self) -> Option<Time> {
        (!self.walks.is_empty()).then_some(self.due)
    }

    /// Packets of the service are counted from zero again.
    pub(super) fn recount(&mut self) {
        self.packets = 0;
    }

    /// Whether the lane has had next to no packets since the last piece.
    fn has_time(&mut self, packets: usize, idle_polls: u64) -> bool {
        let arrived = packets.saturating_sub(std::mem::replace(&mut self.packets, packets));
        let is_idle = idle_polls != std::mem::replace(&mut self.idle_polls, idle_polls);
        is_idle && arrived < FEW
    }

    /// Reads which walks there are, if that has changed.
    fn refresh(&mut self) {
        let word = self.board.word();
        if word != self.seen
            && let Some(walks) = self.board.walks()
        {
            (self.seen, self.walks) = (word, walks);
        }
    }
}

impl<C: Chain> ChainService<C> {
    /// Does a piece of the walks that are under way, if it is due.
    #[cold]
    #[inline(never)]
    pub(super) fn walk(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.walking.refresh();
        if self.walking.walks.is_empty() || self.walking.due > now {
            return;
        }
        let has_time = self.walking.has_time(self.packets, out.counters().idle_polls.get());
        let (mut budget, least, share) = match has_time {
            true => (LONG_PIECE, SHORT_PAUSE, IDLE_SHARE),
            false => (PIECE, PAUSE, SHARE),
        };
        let start = out.read_clock();
        let walks = std::mem::take(&mut self.walking.walks);
        let mut waits = false;
        for number in 0..walks.len() {
            let walk = &walks[(self.walking.turn + number) % walks.len()];
            if walk.is_over() {
                continue;
            }
            let piece = self.walk_piece(walk, budget, shards, out, now);
            budget = budget.saturating_sub(piece.cost);
            waits |= piece.waits;
        }
        self.walking.turn = self.walking.turn.wrapping_add(1);
        // One that waits for a flow takes it as soon as it is here, before it can leave again.
        let pause = (out.read_clock().since(start) * share).max(least);
        self.walking.due = if waits { now } else { now + pause };
        self.walking.walks = walks;
    }

    /// Goes on with one walk, in the shards that it has not done.
    fn walk_piece(
        &mut self,
        walk: &Walk,
        mut budget: u32,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
    ) -> Piece {
        let mut sum = Piece::default();
        let lane = out.lane();
        if walk.takes_shared() && self.send_fixed(walk, lane).is_none() {
            walk.give_shared_back();
        }
        let wanted: Vec<_> = shards.looked_after().filter(|id| walk.wants(*id)).collect();
        for id in wanted {
            if budget == 0 || walk.is_over() {
                break;
            }
            if !walk.wants(id) {
                continue;
            }
            if !walk.admits_lane(lane) {
                walk.note(id, 0, None);
                continue;
            }
            match shards.enter(id) {
                Entry::Entered => {}
                // Another lane works on it: next time.
                Entry::Elsewhere => continue,
                Entry::Poisoned => {
                    walk.note(id, 0, None);
                    continue;
                }
            }
            let piece = match walk.subject() {
                Subject::Flows | Subject::FlowCount => {
                    self.list_flows(walk, id, budget, shards, lane, now)
                }
                Subject::Deletion => self.delete_flows(walk, id, budget, shards, out, now),
                Subject::Entries(function) => {
                    self.list_entries(walk, function, (id, budget), shards, lane, now)
                }
            };
            self.end_tables(shards);
            shards.leave();
            let Some(piece) = piece else { break };
            budget = budget.saturating_sub(piece.cost);
            sum.cost += piece.cost;
            sum.waits |= piece.waits;
        }
        sum
    }

    /// Lists or counts flows of a shard. `None` when there is no room for records.
    fn list_flows(
        &self,
        walk: &Walk,
        id: ShardId,
        budget: u32,
        shards: &mut ShardSet,
        lane: LaneId,
        now: Time,
    ) -> Option<Piece> {
        let (table, local) = shards.get_mut(id).map(split::<C>)?;
        let counts_only = *walk.subject() == Subject::FlowCount;
        let mut look = |records: Option<&mut Vec<Record>>, room: u64| {
            let mut records = records;
            let room = room.min(walk.wanted());
            let (mut matched, mut cost) = (0, 0);
            let (from, end) = (walk.next(id), walk.bound(id, table.walk_end()));
            let most = budget.min(end.saturating_sub(from));
            let (next, looked) = table.walk(from, most, |mut flow| {
                if cost >= budget || matched == room {
                    return ControlFlow::Break(());
                }
                cost += LOOK;
                if flow.deadline() <= now || !admits(walk, &flow) {
                    return ControlFlow::Continue(());
                }
                matched += 1;
                if let Some(records) = &mut records {
                    cost += LIST;
                    records.push(Record::Flow(self.record(local, &mut flow, (lane, id), now)));
                }
                ControlFlow::Continue(())
            });
            walk.note(id, matched, next.filter(|next| *next < end));
            Piece { cost: cost.max(looked), waits: false }
        };
        match counts_only {
            true => Some(look(None, u64::MAX)),
            false => walk.send(lane, |records, room| look(Some(records), room as u64)),
        }
    }

    /// What is known of a flow.
    fn record(
        &self,
        local: &C::Shard,
        flow: &mut WalkedFlow<'_>,
        (lane, shard): (LaneId, ShardId),
        now: Time,
    ) -> FlowRecord {
        let deadline = flow.deadline();
        let (key, alias) = keys(flow);
        let mut functions = Vec::new();
        if let WalkedFlow::Here(flow) = flow {
            let into = &mut functions;
            self.chain.list(local, &mut ListedFlow { now, key: &key, flow, into });
        }
        let first = |known: fn(&ListedFields) -> Option<(u64, u64)>| {
            functions.iter().find_map(|of: &FunctionFields| known(&of.fields))
        };
        let began = functions.iter().find_map(|of| of.fields.began_at());
        FlowRecord {
            key,
            alias,
            lane,
            shard,
            left: (deadline != Time::NEVER).then(|| deadline.since(now)),
            is_away: matches!(flow, WalkedFlow::Away(_)),
            opened_forward: functions.iter().find_map(|of| of.fields.opened_forward()),
            age: began.map(|began| now.since(began)),
            counted: first(ListedFields::counts),
            functions,
        }
    }

    /// Ends flows of a shard as a time-out does. A flow that is away is taken home first.
    fn delete_flows(
        &mut self,
        walk: &Walk,
        id: ShardId,
        budget: u32,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
    ) -> Option<Piece> {
        let shard = shards.get_mut(id)?;
        let (mut flows, mut away, mut cost) = (Vec::<FlowId>::new(), None, 0);
        let wanted = walk.wanted();
        let (from, end) = (walk.next(id), walk.bound(id, shard.table.walk_end()));
        let most = budget.min(end.saturating_sub(from));
        let (next, looked) = shard.table.walk(from, most, |flow| {
            if cost >= budget || flows.len() as u64 == wanted {
                return ControlFlow::Break(());
            }
            cost += LOOK;
            if flow.deadline() <= now || !admits(walk, &flow) {
                return ControlFlow::Continue(());
            }
            match flow {
                WalkedFlow::Here(flow) => flows.push(flow.id()),
                WalkedFlow::Away(flow) => {
                    away = Some(flow.detached.number);
                    return ControlFlow::Break(());
                }
            }
            cost += END;
            ControlFlow::Continue(())
        });
        for flow in &flows {
            self.end(*flow, id, shards, out, now, Ending::Expired);
        }
        if let Some(number) = away {
            out.recall(rheostat_run::FlowNumber::from_bits(number));
        }
        walk.note(id, flows.len() as u64, next.filter(|next| *next < end));
        Some(Piece { cost: cost.max(looked), waits: away.is_some() })
    }

    /// Lists entries that a function has in tables of its own in a shard. `None` when there is no room for records.
    fn list_entries(
        &self,
        walk: &Walk,
        function: &str,
        (id, budget): (ShardId, u32),
        shards: &mut ShardSet,
        lane: LaneId,
        now: Time,
    ) -> Option<Piece> {
        let (_, local) = shards.get_mut(id).map(split::<C>)?;
        walk.send(lane, |records, room| {
            let most = room.min((budget / LIST) as usize + 1);
            let most = most.min(walk.wanted().try_into().unwrap_or(usize::MAX));
            let (from, mut entries) = (walk.next(id), Vec::new());
            let into = &mut entries;
            let next = self.chain.entries(local, WantedEntries { function, now, from, most, into });
            let count = entries.len();
            let entry = |fields| Record::Entry(EntryRecord { lane, shard: Some(id), fields });
            records.extend(entries.into_iter().map(entry));
            walk.note(id, count as u64, next);
            Piece { cost: most as u32 * LIST, waits: false }
        })
    }

    /// Lists the entries that are the same in all shards. `None` when there is no room for records.
    fn send_fixed(&self, walk: &Walk, lane: LaneId) -> Option<()> {
        let Subject::Entries(function) = walk.subject() else { return Some(()) };
        walk.send(lane, |records, _| {
            let mut entries = Vec::new();
            self.chain.fixed_entries(function, &mut entries);
            walk.note_shared(entries.len() as u64);
            let entry = |fields| Record::Entry(EntryRecord { lane, shard: None, fields });
            records.extend(entries.into_iter().map(entry));
        })
    }
}

/// Whether a walk means a flow.
fn admits(walk: &Walk, flow: &WalkedFlow<'_>) -> bool {
    let (key, alias) = keys(flow);
    walk.admits(&key, alias.as_ref())
}

fn keys(flow: &WalkedFlow<'_>) -> (FlowKey, Option<FlowKey>) {
    match flow {
        WalkedFlow::Here(flow) => (FlowMut::key(flow), flow.alias()),
        WalkedFlow::Away(away) => (away.key, away.alias),
    }
}
