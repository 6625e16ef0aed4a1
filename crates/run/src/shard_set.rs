//! The shards a lane owns.

mod visit;

pub(crate) use visit::Visit;

use std::sync::Arc;

use rheostat_base::{LaneId, ShardId};
use rheostat_state::{
    FlowHash, FragmentConfig, FragmentTracker, OpenFlows, PrefetchHint, Probe, Shard, StateBits,
};

use crate::joint_shards::{Claimant, Held, JointShards, Outbox, Taken, Unsent};
use crate::lane::PacketInfo;

/// One place per shard of the run; the places of shards that other lanes own are empty. A shard is in
/// exactly one lane's set, because it is a value.
///
/// The claimants of one receive queue may own shards together. Such a shard is in a lane's set from [`ShardSet::enter`] to
/// [`ShardSet::leave`]. A lane that has any waits for no other lane.
#[derive(Debug)]
pub struct ShardSet {
    shards: Vec<Option<Box<Shard>>>,
    /// Where the tables of owned shards are, in few lines, so that what packets will need is requested without a look at the
    /// tables themselves.
    hints: Vec<Option<PrefetchHint>>,
    /// The lane's part in shards that it owns together with others.
    claimant: Option<Box<Claimant>>,
    /// Shards that wait for flows to come home: no packet is processed that belongs to them.
    stalled: Vec<Box<Shard>>,
    /// Whether flows of the shards may be away.
    has_offloaded: bool,
    /// The fragments of joint shards that meet in this lane: no other one looks at them.
    trackers: Vec<(ShardId, FragmentTracker)>,
}

/// What came of [`ShardSet::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The shard is here.
    Entered,
    /// Another lane has it, or segments of it to send: try again.
    Elsewhere,
    /// A lane panicked while it had it, so that no lane may work on it; or before a packet that was to enter earlier.
    Poisoned,
}

/// In which order packets enter joint shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryOrder {
    /// In none.
    Any,
    /// By tickets ([`ShardSet::draw`]).
    Tickets,
}

impl ShardSet {
    /// A set with room for `count` shards that owns none.
    pub fn new(count: usize) -> ShardSet {
        let shards = (0..count).map(|_| None).collect();
        ShardSet {
            shards,
            hints: vec![None; count],
            claimant: None,
            stalled: Vec::new(),
            has_offloaded: false,
            trackers: Vec::new(),
        }
    }

    /// The sets of these lanes, which own these shards of a run of `count` together. `home` states of each shard in which of the
    /// lanes its fragments meet.
    pub(crate) fn joint(
        count: usize,
        lanes: &[LaneId],
        mut shards: Vec<Box<Shard>>,
        home: impl Fn(ShardId) -> LaneId,
        order: EntryOrder,
    ) -> Vec<ShardSet> {
        let mut sets: Vec<_> = lanes.iter().map(|_| ShardSet::new(count)).collect();
        let place = |home: LaneId| lanes.iter().position(|lane| *lane == home);
        let homes: Arc<[LaneId]> = (0..count as u16).map(|id| home(ShardId(id))).collect();
        for shard in &mut shards {
            let none = FragmentTracker::new(FragmentConfig::default());
            let tracker = std::mem::replace(&mut shard.fragments, none);
            let home = place(homes[shard.id.index()]).expect("its home is one of the lanes");
            sets[home].trackers.push((shard.id, tracker));
            for set in &mut sets {
                // A shard stays where it is in memory while its box moves.
                set.hints[shard.id.index()] = Some(shard.table.prefetch_hint());
            }
        }
        let shards = JointShards::new(count, shards);
        let shards = Arc::new(match order {
            EntryOrder::Any => shards,
            EntryOrder::Tickets => shards.with_tickets(lanes.len()),
        });
        for (number, set) in sets.iter_mut().enumerate() {
            set.claimant = Some(Box::new(Claimant {
                shards: shards.clone(),
                number,
                is_heir: false,
                held: Vec::new(),
                homes: homes.clone(),
                blocked_by: None,
                #[cfg(all(test, shuttle))]
                ignores_unsent: false,
            }));
        }
        sets
    }

    /// Takes a shard into the set.
    pub fn install(&mut self, shard: Box<Shard>) {
        let place = &mut self.shards[shard.id.index()];
        assert!(place.is_none(), "{} is already here", shard.id);
        self.hints[shard.id.index()] = Some(shard.table.prefetch_hint());
        *place = Some(shard);
    }

    /// Takes a shard out of the set, if it is there.
    pub fn remove(&mut self, id: ShardId) -> Option<Box<Shard>> {
        *self.hints.get_mut(id.index())? = None;
        self.shards[id.index()].take()
    }

    /// Whether flows of the lane's shards may be away, or shards stalled.
    #[inline(always)]
    pub fn has_offloaded(&self) -> bool {
        self.has_offloaded
    }

    /// Notes whether flows of the lane's shards are away.
    pub(crate) fn set_offloaded(&mut self, has_offloaded: bool) {
        self.has_offloaded = has_offloaded;
    }

    /// Sets a shard aside until flows of it have come home, so that none of its packets is processed. It stays the lane's.
    #[cold]
    pub fn stall(&mut self, id: ShardId) {
        let shard = self.remove(id);
        self.stalled.extend(shard);
    }

    /// Puts a shard that was set aside back in its place; `false` when it was not.
    pub(crate) fn resume(&mut self, id: ShardId) -> bool {
        let Some(place) = self.stalled.iter().position(|shard| shard.id == id) else {
            return false;
        };
        let shard = self.stalled.swap_remove(place);
        self.install(shard);
        true
    }

    /// The shard to change, also if it is set aside.
    pub(crate) fn stalled_or_owned(&mut self, id: ShardId) -> Option<&mut Shard> {
        match self.stalled.iter_mut().position(|shard| shard.id == id) {
            Some(place) => Some(&mut self.stalled[place]),
            None => self.get_mut(id),
        }
    }

    /// Whether the lane owns shards together with other lanes.
    #[inline]
    pub fn is_joint(&self) -> bool {
        self.claimant.is_some()
    }

    /// Brings a joint shard here, unless another lane has it. Never waits. A shard that only this lane owns is here anyway.
    #[inline]
    pub fn enter(&mut self, id: ShardId) -> Entry {
        match &mut self.claimant {
            None => Entry::Entered,
            Some(claimant) => claimant.enter(id, &mut self.shards),
        }
    }

    /// Whether packets enter joint shards in the order of tickets.
    #[inline]
    pub(crate) fn has_tickets(&self) -> bool {
        self.claimant.as_deref().is_some_and(|claimant| claimant.shards.tickets().is_some())
    }

    /// Draws the ticket with which a packet of the shard enters it, after those that were drawn before. 0 where none are needed.
    #[inline]
    pub(crate) fn draw(&self, id: ShardId) -> u32 {
        let tickets = self.claimant.as_deref().and_then(|claimant| claimant.shards.tickets());
        tickets.map_or(0, |tickets| tickets.draw(id))
    }

    /// As [`ShardSet::enter`], for a packet with this ticket: [`Entry::Elsewhere`] also if the ticket is not due.
    #[inline]
    pub(crate) fn enter_in_order(&mut self, id: ShardId, ticket: u32) -> Entry {
        match &mut self.claimant {
            None => Entry::Entered,
            Some(claimant) => claimant.enter_in_order(id, ticket, &mut self.shards),
        }
    }

    /// Whether a packet with this ticket will never enter the shard, because a lane panicked.
    pub(crate) fn is_given_up(&self, id: ShardId, ticket: u32) -> bool {
        let is_never_due = |claimant: &Claimant| {
            let tickets = claimant.shards.tickets();
            tickets.is_some_and(|all| all.is_broken() && !all.is_due(id, ticket))
        };
        self.get(id).is_none() && self.claimant.as_deref().is_some_and(is_never_due)
            || self.is_poisoned(id)
    }

    /// The lane panics, with tickets or without: no other is to wait for it.
    pub(crate) fn break_off(&self) {
        let tickets = self.claimant.as_deref().and_then(|claimant| claimant.shards.tickets());
        tickets.into_iter().for_each(|tickets| tickets.break_off());
        let outboxes = self.claimant.iter().flat_map(|claimant| claimant.shards.outboxes());
        outboxes.for_each(Outbox::abandon);
    }

    /// Where lanes keep what they have to send, and which outbox is this lane's, where packets have tickets.
    pub(crate) fn outboxes(&self) -> Option<(Arc<JointShards>, usize)> {
        let claimant = self.claimant.as_deref()?;
        let has_some = !claimant.shards.outboxes().is_empty();
        has_some.then(|| (claimant.shards.clone(), claimant.number))
    }

    /// Segments of the joint shards that are here are in this lane's outbox.
    #[inline]
    pub(crate) fn mark_unsent(&mut self, unsent: Unsent) {
        if let Some(claimant) = &mut self.claimant {
            claimant.held.iter_mut().for_each(|held| held.unsent = Some(unsent));
        }
    }

    /// The claimant whose outbox has to be sent before a shard that was [`Entry::Elsewhere`] can be entered, if that is why.
    #[inline]
    pub(crate) fn take_blocked_by(&mut self) -> Option<usize> {
        self.claimant.as_deref_mut()?.blocked_by.take()
    }

    /// Has the lane enter shards whatever outboxes have of them.
    #[cfg(all(test, shuttle))]
    pub(crate) fn ignore_unsent(&mut self) {
        self.claimant.as_deref_mut().expect("joint shards").ignores_unsent = true;
    }

    /// Asks for what [`ShardSet::enter`] will write.
    #[inline]
    pub(crate) fn prefetch_entry(&self, id: ShardId) {
        if let Some(claimant) = &self.claimant {
            claimant.shards.prefetch(id);
        }
    }

    /// Whether a lane panicked while it had the joint shard.
    pub(crate) fn is_poisoned(&self, id: ShardId) -> bool {
        let is_joint = |claimant: &Claimant| claimant.shards.is_poisoned(id);
        self.get(id).is_none() && self.claimant.as_deref().is_some_and(is_joint)
    }

    /// How many joint shards are here.
    pub(crate) fn held(&self) -> usize {
        self.claimant.as_deref().map_or(0, |claimant| claimant.held.len())
    }

    /// Lets other lanes have the joint shards that are here. A thread that panics poisons them.
    #[inline]
    pub fn leave(&mut self) {
        if let Some(claimant) = &mut self.claimant {
            claimant.leave(&mut self.shards);
        }
    }

    /// The shard, if this lane has it.
    #[inline]
    pub fn get(&self, id: ShardId) -> Option<&Shard> {
        self.shards.get(id.index())?.as_deref()
    }

    /// Asks the processor to fetch the first line of a shard's flow table, and that of its index where `hash` leads, if this
    /// lane owns the shard.
    #[inline]
    pub fn prefetch(&self, id: ShardId, hash: FlowHash) {
        if let Some(hint) = self.prefetch_hint(id) {
            hint.prefetch(hash);
        }
    }

    /// Where the flow of a packet may be, which has a key, and asks the processor to fetch that entry.
    #[inline(always)]
    pub(crate) fn probe(&self, info: &PacketInfo) -> Probe {
        match self.get(info.shard) {
            Some(shard) => shard.table.probe(info.hash, info.family()),
            // One that the lane has yet to take.
            None if self.claimant.is_some() => Probe::PENDING,
            None => Probe::NONE,
        }
    }

    /// Where a shard's flow table is, if this lane owns the shard.
    #[inline(always)]
    pub(crate) fn prefetch_hint(&self, id: ShardId) -> Option<PrefetchHint> {
        *self.hints.get(id.index())?
    }

    /// Flows of shards that this lane has, to be opened.
    #[inline(always)]
    pub fn open_flows(&mut self, set: StateBits) -> OpenFlows<'_> {
        OpenFlows::new(&mut self.shards, set)
    }

    /// The shard to change, if this lane has it.
    #[inline]
    pub fn get_mut(&mut self, id: ShardId) -> Option<&mut Shard> {
        self.shards.get_mut(id.index())?.as_deref_mut()
    }

    /// The shards that are here, in the order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.shards.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// The shards that are here, in the order of their numbers, and those that are set aside.
    pub fn all_here_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        let here = self.shards.iter_mut().filter_map(Option::as_deref_mut);
        here.chain(self.stalled.iter_mut().map(|shard| &mut **shard))
    }

    /// The shards that are here, in the order of their numbers, to read.
    pub fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter_map(Option::as_deref)
    }

    /// The numbers of the shards owned, alone or together with others.
    pub fn owned(&self) -> impl Iterator<Item = ShardId> {
        (0..self.shards.len() as u16).map(ShardId).filter(|id| self.owns(*id))
    }

    /// The shards that this lane looks after when it is not about packets: those that it owns alone, and of joint ones those
    /// whose home it is. To be entered before anything is done to them.
    pub fn looked_after(&self) -> impl Iterator<Item = ShardId> {
        let is_joint = self.is_joint();
        let own = self.owned().filter(move |_| !is_joint);
        own.chain(self.trackers.iter().map(|(id, _)| *id))
    }

    /// The lanes that look after joint shards, by shard; `None` where each shard has one owner.
    pub fn homes(&self) -> Option<Arc<[LaneId]>> {
        self.claimant.as_deref().map(|claimant| claimant.homes.clone())
    }

    /// The first owned shard from `from` on, going round; for work that visits one shard at a time, and enters it first.
    pub fn next_owned(&self, from: ShardId) -> Option<ShardId> {
        let count = self.shards.len();
        (0..count)
            .map(|step| ShardId(((from.index() + step) % count) as u16))
            .find(|&id| self.owns(id))
    }

    fn owns(&self, id: ShardId) -> bool {
        let is_joint = |claimant: &Claimant| {
            // When the run is over, they are with the lane that took them.
            !claimant.shards.has_ended() && claimant.shards.contains(id)
        };
        self.shards[id.index()].is_some() || self.claimant.as_deref().is_some_and(is_joint)
    }

    /// The datagrams of a shard that arrive in fragments, if they meet in this lane.
    pub(crate) fn tracker_mut(&mut self, id: ShardId) -> Option<&mut FragmentTracker> {
        if self.claimant.is_none() {
            return self.stalled_or_owned(id).map(|shard| &mut shard.fragments);
        }
        self.trackers.iter_mut().find(|(shard, _)| *shard == id).map(|(_, tracker)| tracker)
    }

    /// The datagrams of all shards that meet in this lane.
    pub(crate) fn trackers_mut(&mut self) -> impl Iterator<Item = &mut FragmentTracker> {
        let own = self.shards.iter_mut().flatten().chain(&mut self.stalled);
        let own = own.map(|shard| &mut shard.fragments);
        own.chain(self.trackers.iter_mut().map(|(_, tracker)| tracker))
    }

    /// Fragments that wait in this lane for the first of their datagram.
    pub(crate) fn fragments_held(&self) -> usize {
        let own = self.shards.iter().flatten().chain(&self.stalled);
        let own = own.map(|shard| &shard.fragments);
        own.chain(self.trackers.iter().map(|(_, tracker)| tracker)).map(FragmentTracker::held).sum()
    }

    /// The most flows that were in joint shards at once; the first claimant reports it for all.
    pub(crate) fn flows_peak(&self) -> Option<u64> {
        let claimant = self.claimant.as_deref().filter(|claimant| claimant.number == 0)?;
        Some(claimant.shards.flows_peak())
    }

    /// Ends the sharing: the first claimant that does so keeps all joint shards but those that are poisoned. No lane may be
    /// polled from then on.
    pub(crate) fn inherit(&mut self) {
        let Some(claimant) = self.claimant.as_deref_mut().filter(|one| one.shards.end()) else {
            return;
        };
        claimant.is_heir = true;
        let ids: Vec<_> = claimant.shards.ids().collect();
        for id in ids {
            if let Taken::Shard(shard, _) = claimant.shards.take(id) {
                self.shards[id.index()] = Some(shard);
            }
        }
    }

    /// Shows all shards for which this lane answers in the account: those that are here, and of joint ones in their cells
    /// those of the first claimant or, after the end, of the one that inherits. Lanes must have stopped.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&Shard)) {
        self.iter().for_each(&mut look);
        if let Some(claimant) = &self.claimant {
            let answers = match claimant.shards.has_ended() {
                true => claimant.is_heir,
                false => claimant.number == 0,
            };
            if answers {
                claimant.shards.for_each(look);
            }
        }
    }
}

impl Claimant {
    #[inline(never)]
    fn enter(&mut self, id: ShardId, places: &mut [Option<Box<Shard>>]) -> Entry {
        if places[id.index()].is_some() {
            return Entry::Entered;
        }
        self.take(id, None, places)
    }

    fn enter_in_order(
        &mut self,
        id: ShardId,
        ticket: u32,
        places: &mut [Option<Box<Shard>>],
    ) -> Entry {
        let Some(tickets) = self.shards.tickets() else { return self.enter(id, places) };
        let next = ticket.wrapping_add(1);
        if places[id.index()].is_none() {
            return match tickets.is_due(id, ticket) {
                true => self.take(id, Some(next), places),
                false if tickets.is_broken() => Entry::Poisoned,
                false => Entry::Elsewhere,
            };
        }
        let held = self.held.iter_mut().find(|held| held.id == id);
        let Some(held) = held else { return Entry::Entered };
        let is_due = match held.due {
            Some(due) => due == ticket,
            None => tickets.is_due(id, ticket),
        };
        if !is_due {
            return Entry::Elsewhere;
        }
        held.due = Some(next);
        Entry::Entered
    }

    fn take(&mut self, id: ShardId, due: Option<u32>, places: &mut [Option<Box<Shard>>]) -> Entry {
        match self.shards.take(id) {
            Taken::Shard(shard, unsent) => {
                let is_own = |unsent: &Unsent| unsent.claimant == self.number;
                if let Some(other) = unsent.filter(|unsent| !is_own(unsent))
                    && self.waits_for(&other)
                {
                    self.blocked_by = Some(other.claimant);
                    self.shards.decline(shard, unsent);
                    return Entry::Elsewhere;
                }
                let unsent = unsent.filter(is_own);
                self.held.push(Held { id, flows: shard.table.counts().live, due, unsent });
                places[id.index()] = Some(shard);
                Entry::Entered
            }
            Taken::Elsewhere => Entry::Elsewhere,
            Taken::Poisoned => Entry::Poisoned,
        }
    }

    #[inline(never)]
    fn leave(&mut self, places: &mut [Option<Box<Shard>>]) {
        for visit in self.held.drain(..) {
            if let Some(shard) = places[visit.id.index()].take() {
                self.shards.put_back(shard, visit);
            }
        }
    }

    /// Whether segments of a shard have to leave another lane's outbox first.
    #[inline]
    fn waits_for(&self, unsent: &Unsent) -> bool {
        #[cfg(all(test, shuttle))]
        if self.ignores_unsent {
            return false;
        }
        !self.shards.has_left(unsent)
    }
}
