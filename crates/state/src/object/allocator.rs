//! Resources that are lent for a time: ports, entries of a table, numbers.

mod list;

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;

use self::list::Lists;
use crate::txn::{
    ObjectId, ObjectKind, Objects, Operation, Outcome, Part, Plain, Slab, Touch, Transactional,
    Txn, Words, WordsMut, load, store, words_of,
};

/// Resources that move at once from another lane's pool, so that the lane need not come again for each.
const MOVED: u32 = 8;

/// What was lent: a resource, and which time it was lent. Plain data, to be kept in other objects.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable,
)]
#[repr(C)]
pub struct Lease {
    /// The number of the resource.
    pub resource: u32,
    generation: u32,
}

/// Resources, numbered from 0, and their leases. A leased resource comes back when it is freed, or when its time is up and was
/// not extended.
///
/// Each lane has a pool of free resources, the longest free first, and lists of those lent out of it, by the order in
/// which they end. A lane whose pool is empty takes from the fullest other one. Conflicts: that; leases of one lane
/// that move in its lists; two lanes that touch one lease.
///
/// A lease whose time is up is gone at once for readers; its resource is free again when
/// [`Allocator::expired`] has returned it, so that the author can clean up what refers to it.
pub struct Allocator<T> {
    leases: Arc<Slab>,
    lists: Lists,
    object: ObjectId,
    lifetimes: Box<[Duration]>,
    refresh_interval: Duration,
    values: PhantomData<fn() -> T>,
}

/// Another handle of the same resources.
impl<T> Clone for Allocator<T> {
    fn clone(&self) -> Allocator<T> {
        Allocator {
            leases: self.leases.clone(),
            lists: self.lists.clone(),
            object: self.object,
            lifetimes: self.lifetimes.clone(),
            refresh_interval: self.refresh_interval,
            values: PhantomData,
        }
    }
}

/// A resource, apart from its place in a list and the value of its lease. Words: how often it was lent; the lifetime
/// plus one, zero while it is free; the deadline.
#[derive(Clone, Copy)]
struct AllocatorState {
    generation: u32,
    lifetime: Option<usize>,
    deadline: Time,
}

/// Words in front of a lease's value.
const HEAD: usize = 2;

impl AllocatorState {
    #[inline(always)]
    fn load(words: &Words<'_>) -> AllocatorState {
        let (first, second) = (words.get(0), words.get(1));
        AllocatorState {
            generation: first as u32,
            lifetime: ((first >> 32) as usize).checked_sub(1),
            deadline: Time::from_nanos(second),
        }
    }

    #[inline(always)]
    fn store(self, words: &mut WordsMut<'_>) {
        let lifetime = self.lifetime.map_or(0, |lifetime| lifetime as u64 + 1);
        words.set(0, lifetime << 32 | u64::from(self.generation));
        words.set(1, self.deadline.as_nanos());
    }

    fn is_live(self, now: Time) -> bool {
        self.lifetime.is_some() && self.deadline > now
    }
}

impl<T: Plain> Allocator<T> {
    /// `resources` of them, all free and dealt out to the lanes in turn. A lease lives for one of `lifetimes`, which
    /// operations name by their position. Prolonging one does nothing while that was done less than
    /// `refresh_interval` ago; so leases may end that much earlier than they would otherwise.
    ///
    /// # Panics
    /// Without a lifetime, and with 2³² resources or more.
    pub fn new(
        objects: &Objects,
        name: &str,
        resources: usize,
        lifetimes: &[Duration],
        refresh_interval: Duration,
    ) -> Allocator<T> {
        assert!(!lifetimes.is_empty(), "leases need a lifetime");
        let object = objects.register(name, ObjectKind::Allocator, resources);
        Allocator {
            leases: Slab::new(objects, resources, HEAD + words_of::<T>(), None, |_, _| ()),
            lists: Lists::new(objects, resources, lifetimes.len()),
            object,
            lifetimes: lifetimes.into(),
            refresh_interval,
            values: PhantomData,
        }
    }

    /// The same resources with other lifetimes, as many as before: leases get them when they are made or prolonged. One that is
    /// over behind others which were made to live longer is gone for readers, and its resource is free once those are over.
    ///
    /// # Panics
    /// When there are more lifetimes, or fewer.
    #[must_use]
    pub fn with_lifetimes(
        self,
        lifetimes: &[Duration],
        refresh_interval: Duration,
    ) -> Allocator<T> {
        assert_eq!(self.lifetimes.len(), lifetimes.len(), "each lifetime has lists of its own");
        Allocator { lifetimes: lifetimes.into(), refresh_interval, ..self }
    }

    /// The object's number, for profiles.
    pub fn id(&self) -> ObjectId {
        self.object
    }

    /// How many resources there are.
    pub fn resources(&self) -> usize {
        self.leases.cells()
    }

    /// Leases a resource: the one of the lane's pool that has been free for longest. `None` when all are leased.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    pub fn allocate(
        &self,
        cx: &mut impl Transactional,
        value: T,
        lifetime: usize,
    ) -> Outcome<Option<Lease>> {
        self.allocate_where(cx.txn(), |_| true, 1, value, lifetime, Location::caller())
    }

    /// As [`Allocator::allocate`], but only a resource that is `wanted`, of the first `tries` of the pool.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    pub fn allocate_if(
        &self,
        cx: &mut impl Transactional,
        wanted: impl FnMut(u32) -> bool,
        tries: usize,
        value: T,
        lifetime: usize,
    ) -> Outcome<Option<Lease>> {
        self.allocate_where(cx.txn(), wanted, tries, value, lifetime, Location::caller())
    }

    fn allocate_where(
        &self,
        txn: &mut Txn,
        mut wanted: impl FnMut(u32) -> bool,
        tries: usize,
        value: T,
        lifetime: usize,
        site: &'static Location<'static>,
    ) -> Outcome<Option<Lease>> {
        let touch = self.touch(Operation::Allocate, site);
        let lane = txn.lane().index();
        let mut next = self.lists.first(txn, self.lists.pool(lane), touch)?;
        if next.is_none() {
            if !self.lists.refill(txn, lane, MOVED, touch)? {
                return Ok(None);
            }
            next = self.lists.first(txn, self.lists.pool(lane), touch)?;
        }
        for _ in 0..tries {
            let Some(resource) = next else { return Ok(None) };
            if wanted(resource) {
                return self.lease(txn, resource, value, lifetime, touch).map(Some);
            }
            next = self.lists.after(txn, resource, touch)?;
        }
        Ok(None)
    }

    /// Leases this very resource, if it is free.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    ///
    /// # Panics
    /// When there is no such resource.
    #[track_caller]
    pub fn take(
        &self,
        cx: &mut impl Transactional,
        resource: u32,
        value: T,
        lifetime: usize,
    ) -> Outcome<Option<Lease>> {
        let touch = self.touch(Operation::Allocate, Location::caller());
        let txn = cx.txn();
        if self.state(txn, resource, touch)?.lifetime.is_some() {
            return Ok(None);
        }
        self.lease(txn, resource, value, lifetime, touch).map(Some)
    }

    /// Asks the processor to fetch a resource, if there is such a one. Needs no transaction, and changes nothing but how
    /// long others take.
    #[inline]
    pub fn prefetch(&self, resource: u32) {
        self.leases.prefetch(resource as usize);
    }

    /// What was written about a lease, unless it has ended.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn get(&self, cx: &mut impl Transactional, lease: Lease) -> Outcome<Option<T>> {
        let touch = self.touch(Operation::Get, Location::caller());
        let held = self.held(cx.txn(), lease.resource, touch)?;
        Ok(held.filter(|(own, _)| *own == lease).map(|(_, value)| value))
    }

    /// As [`Allocator::get`], with whether [`Allocator::refresh`] with this lifetime would leave the lease as it is: then it need
    /// not be called.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn get_fresh(
        &self,
        cx: &mut impl Transactional,
        lease: Lease,
        lifetime: usize,
    ) -> Outcome<Option<(T, bool)>> {
        let touch = self.touch(Operation::Get, Location::caller());
        let txn = cx.txn();
        let now = txn.now();
        txn.read(&self.leases, lease.resource as usize, touch, |words| {
            let state = AllocatorState::load(words);
            let is_held = state.generation == lease.generation && state.is_live(now);
            let (_, is_fresh) = self.prolonged(state, now, lifetime);
            is_held.then(|| (load(words, HEAD), is_fresh))
        })
    }

    /// When a lease ends that is prolonged now, and whether that is not to be done so soon.
    #[inline(always)]
    fn prolonged(&self, state: AllocatorState, now: Time, lifetime: usize) -> (Time, bool) {
        let deadline = now + self.lifetimes[lifetime];
        let same = state.lifetime == Some(lifetime);
        // The difference is the time since the lease was prolonged last.
        (deadline, same && deadline.since(state.deadline) <= self.refresh_interval)
    }

    /// The lease of a resource, if it is lent, and what was written about it.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    ///
    /// # Panics
    /// When there is no such resource.
    #[track_caller]
    #[inline]
    pub fn holder(
        &self,
        cx: &mut impl Transactional,
        resource: u32,
    ) -> Outcome<Option<(Lease, T)>> {
        let touch = self.touch(Operation::Get, Location::caller());
        self.held(cx.txn(), resource, touch)
    }

    /// Writes something else about a lease. Returns whether it is still there.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    pub fn set(&self, cx: &mut impl Transactional, lease: Lease, value: T) -> Outcome<bool> {
        let touch = self.touch(Operation::Write, Location::caller());
        let txn = cx.txn();
        if !self.is_live(txn, lease, touch)? {
            return Ok(false);
        }
        let cell = lease.resource as usize;
        txn.update(&self.leases, cell, touch, |words| store(words, HEAD, &value))?;
        Ok(true)
    }

    /// Lets a lease live for a lifetime from now. Returns whether it is still there. With the lifetime it has, it never
    /// ends earlier than before.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn refresh(
        &self,
        cx: &mut impl Transactional,
        lease: Lease,
        lifetime: usize,
    ) -> Outcome<bool> {
        let touch = self.touch(Operation::Refresh, Location::caller());
        let txn = cx.txn();
        let now = txn.now();
        let state = self.state(txn, lease.resource, touch)?;
        if state.generation != lease.generation || !state.is_live(now) {
            return Ok(false);
        }
        let (deadline, is_fresh) = self.prolonged(state, now, lifetime);
        if is_fresh {
            return Ok(true);
        }
        self.lists.move_to_end(txn, lease.resource, lifetime, touch)?;
        let state = AllocatorState { lifetime: Some(lifetime), deadline, ..state };
        txn.update(&self.leases, lease.resource as usize, touch, |words| state.store(words))?;
        Ok(true)
    }

    /// Gives a lease back before its time. Returns whether it was still there.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    pub fn free(&self, cx: &mut impl Transactional, lease: Lease) -> Outcome<bool> {
        let touch = self.touch(Operation::Free, Location::caller());
        let txn = cx.txn();
        if !self.is_live(txn, lease, touch)? {
            return Ok(false);
        }
        self.take_back(txn, lease.resource, touch)?;
        Ok(true)
    }

    /// Takes back one lease whose time is up, and returns what was written about it. Those that the lane has lent
    /// come first; once it has no free resource, those of other lanes, too. To be called until it returns `None`, or
    /// a bounded number of times, in `periodic` and before something is allocated.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    pub fn expired(&self, cx: &mut impl Transactional) -> Outcome<Option<(Lease, T)>> {
        let touch = self.touch(Operation::Expire, Location::caller());
        let txn = cx.txn();
        let own = txn.lane().index();
        if let Some(found) = self.expired_of(txn, own, touch)? {
            return Ok(Some(found));
        }
        if self.lists.first(txn, self.lists.pool(own), touch)?.is_some() {
            return Ok(None);
        }
        let lanes = self.lists.lanes();
        for lane in (1..lanes).map(|distance| (own + distance) % lanes) {
            if let Some(found) = self.expired_of(txn, lane, touch)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn expired_of(&self, txn: &mut Txn, lane: usize, touch: Touch) -> Outcome<Option<(Lease, T)>> {
        for lifetime in 0..self.lifetimes.len() {
            let list = self.lists.lent(lane, lifetime);
            let Some(resource) = self.lists.first(txn, list, touch)? else { continue };
            let state = self.state(txn, resource, touch)?;
            if state.deadline <= txn.now() {
                let value =
                    txn.read(&self.leases, resource as usize, touch, |words| load(words, HEAD))?;
                self.take_back(txn, resource, touch)?;
                return Ok(Some((Lease { resource, generation: state.generation }, value)));
            }
        }
        Ok(None)
    }

    /// How many resources are lent, or have ended and not been taken back, for figures: while lanes run, of slightly
    /// different moments.
    pub fn lent(&self) -> usize {
        self.resources() - self.lists.free()
    }

    fn lease(
        &self,
        txn: &mut Txn,
        resource: u32,
        value: T,
        lifetime: usize,
        touch: Touch,
    ) -> Outcome<Lease> {
        let deadline = txn.now() + self.lifetimes[lifetime];
        self.lists.lease(txn, resource, lifetime, touch)?;
        let generation = txn.update(&self.leases, resource as usize, touch, |words| {
            let generation = AllocatorState::load(&words.as_words()).generation;
            AllocatorState { generation, lifetime: Some(lifetime), deadline }.store(words);
            store(words, HEAD, &value);
            generation
        })?;
        Ok(Lease { resource, generation })
    }

    fn take_back(&self, txn: &mut Txn, resource: u32, touch: Touch) -> Outcome<()> {
        let lane = txn.lane().index();
        self.lists.give_back(txn, resource, lane, touch)?;
        txn.update(&self.leases, resource as usize, touch, |words| {
            let state = AllocatorState::load(&words.as_words());
            // Leases that were given out are invalid from here on.
            let generation = state.generation.wrapping_add(1);
            AllocatorState { generation, lifetime: None, deadline: Time::ZERO }.store(words);
        })
    }

    #[inline]
    fn held(&self, txn: &mut Txn, resource: u32, touch: Touch) -> Outcome<Option<(Lease, T)>> {
        let now = txn.now();
        txn.read(&self.leases, resource as usize, touch, |words| {
            let state = AllocatorState::load(words);
            let lease = Lease { resource, generation: state.generation };
            state.is_live(now).then(|| (lease, load(words, HEAD)))
        })
    }

    fn is_live(&self, txn: &mut Txn, lease: Lease, touch: Touch) -> Outcome<bool> {
        let state = self.state(txn, lease.resource, touch)?;
        Ok(state.generation == lease.generation && state.is_live(txn.now()))
    }

    #[inline]
    fn state(&self, txn: &mut Txn, resource: u32, touch: Touch) -> Outcome<AllocatorState> {
        txn.read(&self.leases, resource as usize, touch, AllocatorState::load)
    }

    #[inline(always)]
    fn touch(&self, operation: Operation, site: &'static Location<'static>) -> Touch {
        Touch::new(self.object, operation, Part::Lease, 0, site)
    }
}

impl<T> fmt::Debug for Allocator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocator({} resources)", self.leases.cells())
    }
}
