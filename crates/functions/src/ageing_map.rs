//! A map whose entries are forgotten when they are not refreshed: a [`Map`] of keys to leases, and an [`Allocator`]
//! that holds what each key stands for.

use std::time::Duration;

use rheostat_state::object::{Allocator, Hashed, Lease, Map, Recipe};
use rheostat_state::txn::{Objects, Plain, Transactional};

use rheostat_nf::Ahead;
use rheostat_nf::Outcome;

/// What stands under a key, with the key in it: what has aged has to be found under its key.
pub trait Entry: Plain {
    /// What it is found by.
    type Key: Plain + Eq;

    /// The key.
    fn key(&self) -> Self::Key;
}

/// There is no room for another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A map of a bounded number of entries, each of which lives for so long after it was last refreshed.
#[derive(Debug)]
pub struct AgeingMap<E: Entry> {
    leases: Map<E::Key, Lease>,
    entries: Allocator<E>,
}

/// Entries that are reclaimed at a time, at most: a transaction is to be short.
const RECLAIM: usize = 16;
/// The one lifetime there is.
const LIFETIME: usize = 0;

/// Another handle of the same map.
impl<E: Entry> Clone for AgeingMap<E> {
    fn clone(&self) -> AgeingMap<E> {
        AgeingMap { leases: self.leases.clone(), entries: self.entries.clone() }
    }
}

impl<E: Entry> AgeingMap<E> {
    /// The same map, whose entries live for `lifetime` from when they are next refreshed, and are not refreshed more often than
    /// once in `refresh_interval`.
    #[must_use]
    pub fn ageing_by(self, lifetime: Duration, refresh_interval: Duration) -> AgeingMap<E> {
        AgeingMap { entries: self.entries.with_lifetimes(&[lifetime], refresh_interval), ..self }
    }

    /// A map of up to `capacity` entries that live for `lifetime`. An entry that was refreshed less than
    /// `refresh_interval` ago is not refreshed again.
    pub fn new(
        objects: &Objects,
        name: &str,
        capacity: usize,
        lifetime: Duration,
        refresh_interval: Duration,
    ) -> AgeingMap<E> {
        AgeingMap {
            leases: Map::new(objects, name, capacity),
            entries: Allocator::new(
                objects,
                &format!("{name} leases"),
                capacity,
                &[lifetime],
                refresh_interval,
            ),
        }
    }

    /// States by which settings of a function's users there is room for more, and entries are refreshed less often: the
    /// names of keys in `table`.
    pub fn set_by(&self, objects: &Objects, table: &str, capacity: &str, refresh_interval: &str) {
        let setting = |key| format!("[{table}] {key}");
        objects.set_by(self.leases.id(), Recipe::EnlargeMap, &setting(capacity));
        let entries = self.entries.id();
        objects.set_by(entries, Recipe::ProvisionMore, &setting(capacity));
        objects.set_by(entries, Recipe::RaiseRefreshInterval, &setting(refresh_interval));
    }

    /// Asks the processor to fetch what will be needed for `key`.
    #[inline]
    pub fn prefetch(&self, key: &E::Key, what: Ahead) {
        self.prefetch_hashed(&self.hashed(*key), what);
    }

    /// A key with its hash, for callers that look it up more than once.
    #[inline]
    pub fn hashed(&self, key: E::Key) -> Hashed<E::Key> {
        self.leases.hashed(key)
    }

    /// As [`AgeingMap::prefetch`].
    #[inline]
    pub fn prefetch_hashed(&self, key: &Hashed<E::Key>, what: Ahead) {
        match what {
            Ahead::Keys => self.leases.prefetch_hashed(key),
            Ahead::Values => {
                if let Some(lease) = self.leases.guess_hashed(key) {
                    self.entries.prefetch(lease.resource);
                }
            }
        }
    }

    /// What stands under a key, if its time is not up, with whether [`AgeingMap::refresh`] would leave it as it is.
    #[inline]
    #[track_caller]
    pub fn get_fresh(
        &self,
        cx: &mut impl Transactional,
        key: &Hashed<E::Key>,
    ) -> Outcome<Option<(E, bool)>> {
        let Some(lease) = self.leases.get_hashed(cx, key)? else { return Ok(None) };
        self.entries.get_fresh(cx, lease, LIFETIME)
    }

    /// What stands under `key`, if its time is not up.
    #[inline]
    #[track_caller]
    pub fn get(&self, cx: &mut impl Transactional, key: &E::Key) -> Outcome<Option<(Lease, E)>> {
        let Some(lease) = self.leases.get(cx, key)? else { return Ok(None) };
        Ok(self.entries.get(cx, lease)?.map(|entry| (lease, entry)))
    }

    /// Puts `entry` under its key, under which nothing stands.
    #[track_caller]
    pub fn enter(&self, cx: &mut impl Transactional, entry: E) -> Outcome<Result<(), NoRoom>> {
        self.reclaim(cx)?;
        let Some(lease) = self.entries.allocate(cx, entry, LIFETIME)? else {
            return Ok(Err(NoRoom));
        };
        if self.leases.set(cx, entry.key(), lease)?.is_err() {
            self.entries.free(cx, lease)?;
            return Ok(Err(NoRoom));
        }
        Ok(Ok(()))
    }

    /// Lets another entry stand in the place of one, under the same key.
    #[track_caller]
    pub fn replace(&self, cx: &mut impl Transactional, lease: Lease, entry: E) -> Outcome<()> {
        self.entries.set(cx, lease, entry)?;
        self.refresh(cx, lease)
    }

    /// Lets an entry live from now on for its whole lifetime.
    #[inline]
    #[track_caller]
    pub fn refresh(&self, cx: &mut impl Transactional, lease: Lease) -> Outcome<()> {
        self.entries.refresh(cx, lease, LIFETIME)?;
        Ok(())
    }

    /// Makes room of some entries whose time is up.
    #[track_caller]
    pub fn reclaim(&self, cx: &mut impl Transactional) -> Outcome<()> {
        for _ in 0..RECLAIM {
            let Some((lease, entry)) = self.entries.expired(cx)? else { break };
            let key = entry.key();
            // Since its time was up, another may have taken its place.
            if self.leases.get(cx, &key)? == Some(lease) {
                self.leases.remove(cx, &key)?;
            }
        }
        Ok(())
    }
}
