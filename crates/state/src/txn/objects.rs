//! The shared objects of a run, and what their transactions have in common.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::gate::Gate;
use super::profile::{LaneConflicts, Profile};
use super::quiescence::Epochs;
use super::site::Sites;
use super::slab::Slab;
use super::version_clock::VersionClock;
use super::word::MAX_LANES;
use crate::object::Recipe;

/// Of so many aborts one is noted, unless told otherwise.
const SAMPLE: u32 = 256;

/// The number of an object of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u16);

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// [`Vector`](crate::object::Vector).
    Vector,
    /// [`Map`](crate::object::Map).
    Map,
    /// [`Allocator`](crate::object::Allocator).
    Allocator,
    /// [`Distributed`](crate::object::Distributed).
    Distributed,
}

impl ObjectKind {
    /// The name of the type that authors use.
    pub const fn name(self) -> &'static str {
        match self {
            ObjectKind::Vector => "Vector",
            ObjectKind::Map => "Map",
            ObjectKind::Allocator => "Allocator",
            ObjectKind::Distributed => "Distributed",
        }
    }
}

/// What people want to know of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// What its author calls it.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Elements, keys, resources or lanes that it has room for.
    pub capacity: usize,
    /// Settings by which recipes are followed, as its author has told.
    settings: Vec<(Recipe, String)>,
}

impl ObjectInfo {
    /// The setting by which a recipe is followed, if there is one.
    pub fn setting(&self, recipe: Recipe) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| *known == recipe);
        found.map(|(_, setting)| setting.as_str())
    }
}

/// The shared objects of a run. A copy refers to the same ones.
#[derive(Clone, Debug)]
pub struct Objects(Arc<Registry>);

/// Whether they are the same run's.
impl PartialEq for Objects {
    fn eq(&self, other: &Objects) -> bool {
        self.number() == other.number()
    }
}

/// What [`Objects`] refer to.
#[derive(Debug)]
pub(super) struct Registry {
    number: u64,
    /// What the secrets of objects are made of.
    seed: u64,
    pub(super) clock: VersionClock,
    pub(super) gate: Gate,
    pub(super) epochs: Epochs,
    pub(super) sites: Sites,
    pub(super) metrics: Vec<Arc<LaneConflicts>>,
    infos: Mutex<Vec<ObjectInfo>>,
    sample: AtomicU32,
    /// All memory of objects: a transaction that has read an object may come back to it after its handle is gone.
    slabs: Mutex<Vec<Arc<Slab>>>,
    /// What lanes that are gone could not free yet.
    limbo: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Objects {
    /// No objects yet, for a run with that many lanes.
    ///
    /// # Panics
    /// When there are none, or more than 256.
    pub fn new(lanes: usize) -> Objects {
        Objects::seeded(lanes, RandomState::new().hash_one(()))
    }

    /// As [`Objects::new`], with secrets drawn from `seed`, so that another run lays out its objects in the same way.
    /// With knowledge of the seed, keys that collide can be chosen.
    ///
    /// # Panics
    /// As [`Objects::new`].
    pub fn seeded(lanes: usize, seed: u64) -> Objects {
        assert!((1..=MAX_LANES).contains(&lanes), "{lanes} lanes");
        /// Runs there have been. A number is never used again, unlike an address.
        static RUNS: AtomicU64 = AtomicU64::new(0);
        Objects(Arc::new(Registry {
            number: RUNS.fetch_add(1, Ordering::Relaxed),
            seed,
            clock: VersionClock::new(),
            gate: Gate::new(),
            epochs: Epochs::new(lanes),
            sites: Sites::default(),
            metrics: (0..lanes).map(|_| Arc::default()).collect(),
            infos: Mutex::default(),
            sample: AtomicU32::new(SAMPLE),
            slabs: Mutex::default(),
            limbo: Mutex::default(),
        }))
    }

    /// The lanes there are.
    pub fn lanes(&self) -> usize {
        self.0.metrics.len()
    }

    /// A number of the object's own that cannot be known without the seed.
    pub(crate) fn secret(&self, object: ObjectId) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        let mut word =
            self.0.seed.wrapping_add((u64::from(object.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// What there is, in the order of [`ObjectId`]s.
    pub fn infos(&self) -> Vec<ObjectInfo> {
        lock(&self.0.infos).clone()
    }

    /// What transactions have done up to now.
    pub fn profile(&self) -> Profile {
        Profile::of(&self.0.metrics, &self.0.sites)
    }

    /// Sets by which `setting` users of an object follow a recipe: its place in the configuration, such as
    /// `[function.antiddos] staleness`, which profiles then name.
    ///
    /// # Panics
    /// When the object is of another run.
    pub fn set_by(&self, object: ObjectId, recipe: Recipe, setting: &str) {
        let mut infos = lock(&self.0.infos);
        let info = infos.get_mut(usize::from(object.0)).expect("an object of this run");
        info.settings.push((recipe, setting.to_owned()));
    }

    /// Lanes whose transactions are made from now on note the reason of one in `n` aborts; of each with 1.
    pub fn sample_every(&self, n: u32) {
        self.0.sample.store(n.max(1), Ordering::Relaxed);
    }

    pub(super) fn sample(&self) -> u32 {
        self.0.sample.load(Ordering::Relaxed)
    }

    pub(crate) fn register(&self, name: &str, kind: ObjectKind, capacity: usize) -> ObjectId {
        let mut infos = lock(&self.0.infos);
        let id = u16::try_from(infos.len()).expect("fewer than 65,536 objects");
        infos.push(ObjectInfo { name: name.to_owned(), kind, capacity, settings: Vec::new() });
        ObjectId(id)
    }

    /// Keeps a slab as long as these objects.
    pub(super) fn keep(&self, slab: Arc<Slab>) -> Arc<Slab> {
        lock(&self.0.slabs).push(slab.clone());
        slab
    }

    /// Keeps what may not be freed before all transactions are gone.
    pub(super) fn bequeath<T: Send + 'static>(&self, garbage: Vec<T>) {
        if !garbage.is_empty() {
            lock(&self.0.limbo).push(Box::new(garbage));
        }
    }

    #[inline]
    pub(super) fn registry(&self) -> &Registry {
        &self.0
    }

    /// Distinguishes these objects from those of all other runs.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.0.number
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
