//! The health of backends by one load balancer's settings, and its tables.
#![expect(
    clippy::disallowed_types,
    reason = "changed from outside the lanes; shards look for news on their regular turns"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::{ShardId, Time};
use rheostat_nf::registry::{Rule, RuleCount, RuleCounters, RuleList, Tally};

use super::{BackendUse, Health, HealthChange, HealthError, HealthOrigin, UnknownBackend};
use crate::lb::config::{BackendConfig, LbConfig, ServiceConfig};
use crate::lb::maglev::Maglev;
use crate::lb::numbering::Numbering;
use crate::lb::service_map::Seat;

/// So many changes of health an edition may be ahead of the one that takes its place: the numbers of theirs differ.
const CHANGES: u64 = 65_536;

/// The health of every backend of every service, and the tables that follow from it. Never changed:
/// another health is another value.
#[derive(Debug)]
pub(in crate::lb) struct Assignment {
    pub(in crate::lb) health: Vec<Vec<Health>>,
    pub(in crate::lb) tables: Vec<Maglev>,
}

impl Assignment {
    fn new(config: &LbConfig, health: Vec<Vec<Health>>) -> Assignment {
        let table = |(service, health): (&ServiceConfig, &Vec<Health>)| {
            Maglev::new(config.table_size, config.seed, &service.candidates(health))
        };
        let tables = config.services.iter().zip(&health).map(table).collect();
        Assignment { health, tables }
    }

    #[inline]
    pub(in crate::lb) fn health(&self, service: u16, backend: u16) -> Health {
        self.health[usize::from(service)][usize::from(backend)]
    }
}

/// What is known of the backends' health, by their numbers.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    /// As the configuration or an operator has it.
    told: Vec<Vec<Health>>,
    /// Whether an operator has set it last.
    by_operator: Vec<Vec<bool>>,
    /// Whether checks find them dead.
    dead: Vec<Vec<bool>>,
}

impl Known {
    /// The health that follows: a dead backend is down, whatever was set.
    fn combined(&self) -> Vec<Vec<Health>> {
        let both = |(told, dead): (&Vec<Health>, &Vec<bool>)| {
            let one = |(told, dead): (&Health, &bool)| if *dead { Health::Down } else { *told };
            told.iter().zip(dead).map(one).collect()
        };
        self.told.iter().zip(&self.dead).map(both).collect()
    }

    /// As the settings state it.
    fn of(config: &LbConfig) -> Known {
        let told: Vec<_> = config.services.iter().map(|service| service.health()).collect();
        let none: Vec<_> = told.iter().map(|backends| vec![false; backends.len()]).collect();
        Known { told, by_operator: none.clone(), dead: none }
    }

    /// The same by other settings: an operator's word holds unless they state another health than before, and that of checks as
    /// long as there are checks. Backends that they do not name keep their flows.
    fn carried_over(&self, from: &Numbering, to: &Numbering) -> Known {
        let mut known = Known::of(&to.config);
        for (service, config) in to.config.services.iter().enumerate() {
            for (backend, stated) in config.backends.iter().enumerate() {
                let told = &mut known.told[service][backend];
                let of = |all: &[Vec<Health>]| all.get(service)?.get(backend).copied();
                let before = from.config.services.get(service);
                let before = before.and_then(|before| before.backends.get(backend));
                let is_named = to.names(service, backend);
                *told = match (before, of(&self.told)) {
                    (_, Some(Health::Down)) if !is_named => Health::Down,
                    _ if !is_named => Health::Drain,
                    // One that comes back begins anew.
                    (Some(before), Some(told))
                        if before.health == stated.health && from.names(service, backend) =>
                    {
                        known.by_operator[service][backend] = self.by_operator[service][backend];
                        told
                    }
                    _ => stated.health,
                };
                let was_dead = self.dead.get(service).and_then(|dead| dead.get(backend));
                known.dead[service][backend] =
                    config.check.is_some() && was_dead.copied().unwrap_or(false);
            }
        }
        known
    }
}

/// The health that one shard goes by.
#[derive(Debug)]
pub(in crate::lb) struct ShardHealth {
    pub(in crate::lb) assignment: Arc<Assignment>,
    generation: u64,
    /// The same generation, for the board.
    applied: Arc<AtomicU64>,
}

impl ShardHealth {
    #[inline]
    pub(in crate::lb) fn generation(&self) -> u64 {
        self.generation
    }

    /// Applies the edition's present health, if it is another.
    pub(in crate::lb) fn renew(&mut self, edition: &Edition) {
        if edition.generation() != self.generation {
            (self.generation, self.assignment) = edition.assignment();
            // Release: the board's readers order what they do next behind this. The shard's packets need
            // no ordering: the lane that owns it processes them behind this store.
            self.applied.store(self.generation, Ordering::Release);
        }
    }
}

/// The health of backends by one load balancer's settings, for all lanes.
#[derive(Debug)]
pub(in crate::lb) struct Edition {
    numbering: Numbering,
    /// Counts the editions before.
    number: u64,
    /// Counts the assignments, so that a shard sees without the lock that its own is still in force.
    generation: AtomicU64,
    /// Held by threads that change something, while tables are built. A lane tries it once, when the edition comes into force.
    known: Mutex<Known>,
    current: Mutex<Arc<Assignment>>,
    /// The flows that each backend got.
    flows: RuleCounters,
    /// The number of each service's first backend among these.
    first: Vec<usize>,
    /// The generation that each shard goes by. Locked when a shard is made, or gets this edition, and when pending ones are listed.
    applied: Mutex<BTreeMap<ShardId, Arc<AtomicU64>>>,
    /// Whether the board has it.
    is_in_force: AtomicBool,
}

impl Edition {
    pub(super) fn new(numbering: Numbering) -> Edition {
        let known = Known::of(&numbering.config);
        let flows = RuleCounters::new(backends_of(&numbering.config));
        Edition { is_in_force: true.into(), ..Edition::of(numbering, known, flows, (0, 0)) }
    }

    /// The edition of a load balancer with this numbering that takes the place of this one's.
    pub(super) fn next(&self, numbering: Numbering) -> Edition {
        let known = self.lock().carried_over(&self.numbering, &numbering);
        let flows = RuleCounters::after(Some(&self.flows), backends_of(&numbering.config));
        let numbers = (self.number + 1, self.generation() + CHANGES);
        Edition::of(numbering, known, flows, numbers)
    }

    fn of(
        numbering: Numbering,
        known: Known,
        flows: RuleCounters,
        (number, generation): (u64, u64),
    ) -> Edition {
        let mut backends = 0;
        let services = numbering.config.services.iter();
        let first = services.map(|service| {
            backends += service.backends.len();
            backends - service.backends.len()
        });
        let first = first.collect();
        let current = Arc::new(Assignment::new(&numbering.config, known.combined()));
        Edition {
            numbering,
            number,
            generation: AtomicU64::new(generation),
            known: Mutex::new(known),
            current: Mutex::new(current),
            flows,
            first,
            applied: Mutex::default(),
            is_in_force: false.into(),
        }
    }

    /// Counts a flow that a backend gets, and its first packet. Only the lane that has the shard may call it.
    #[inline]
    pub(in crate::lb) fn count(&self, seat: Seat, shard: ShardId, bytes: usize, now: Time) {
        if let Some(first) = self.first.get(usize::from(seat.service)) {
            self.flows.count(first + usize::from(seat.backend), shard, bytes, now);
        }
    }

    /// The settings as they were given.
    pub(super) fn stated(&self) -> Arc<LbConfig> {
        self.numbering.stated.clone()
    }

    /// As [`HealthBoard::uses`](super::HealthBoard::uses).
    pub(super) fn uses(&self) -> Vec<BackendUse> {
        let (health, known) = (self.assignment().1.health.clone(), self.lock());
        let counts = self.flows.rules();
        let mut uses = Vec::new();
        for (service, named) in self.numbering.named.iter().enumerate() {
            let of = usize::from(named.service);
            for (backend, number) in named.backends.iter().enumerate() {
                let number = usize::from(*number);
                let origin = match (known.dead[of][number], known.by_operator[of][number]) {
                    (true, _) => HealthOrigin::Check,
                    (false, true) => HealthOrigin::Operator,
                    (false, false) => HealthOrigin::Configuration,
                };
                let count = match counts.get(self.first[of] + number).map(|used| used.tally) {
                    Some(Tally::Counted(count)) => count,
                    _ => RuleCount::default(),
                };
                let health = health[of][number];
                uses.push(BackendUse { service, backend, health, origin, count });
            }
        }
        uses
    }

    /// Whether it comes behind this one.
    pub(super) fn is_behind(&self, other: &Edition) -> bool {
        self.number > other.number
    }

    /// Whether the board has it.
    pub(in crate::lb) fn is_in_force(&self) -> bool {
        // Relaxed: it spares a try of the board's lock, and no more.
        self.is_in_force.load(Ordering::Relaxed)
    }

    /// The board has it now, in place of the one `before`: whatever was set there meanwhile holds here. `false` when a thread changes
    /// something at this moment.
    pub(super) fn come_into_force(&self, before: &Edition) -> bool {
        let (Ok(old), Ok(mut known)) = (before.known.try_lock(), self.known.try_lock()) else {
            return false;
        };
        let latest = old.carried_over(&before.numbering, &self.numbering);
        if latest != *known {
            *known = latest;
            self.put_in_force(&known);
        }
        self.is_in_force.store(true, Ordering::Relaxed);
        true
    }

    /// The present health, for a shard that reports what it applies. A shard of the same number, of an
    /// earlier run of the chain, is forgotten.
    pub(in crate::lb) fn follow(&self, shard: ShardId) -> ShardHealth {
        let (generation, assignment) = self.assignment();
        let applied = Arc::new(AtomicU64::new(generation));
        self.lock_applied().insert(shard, applied.clone());
        ShardHealth { assignment, generation, applied }
    }

    /// As [`HealthBoard::pending`](super::HealthBoard::pending).
    pub(super) fn pending(&self, generation: u64) -> Vec<ShardId> {
        let applied = self.lock_applied();
        // Acquire: pairs with the shard's store.
        let lags = |applied: &AtomicU64| applied.load(Ordering::Acquire) < generation;
        applied.iter().filter(|(_, applied)| lags(applied)).map(|(shard, _)| *shard).collect()
    }

    /// The health as the configuration or an operator has it, in the order of the configuration.
    pub(super) fn health(&self) -> Vec<Vec<Health>> {
        self.in_order(&self.lock().told)
    }

    /// The health in force, likewise.
    pub(super) fn in_force(&self) -> Vec<Vec<Health>> {
        self.in_order(&self.assignment().1.health)
    }

    fn in_order(&self, health: &[Vec<Health>]) -> Vec<Vec<Health>> {
        let services = self.numbering.named.iter().map(|named| {
            let of = &health[usize::from(named.service)];
            named.backends.iter().map(|number| of[usize::from(*number)]).collect()
        });
        services.collect()
    }

    /// As [`HealthBoard::note`](super::HealthBoard::note).
    pub(super) fn note(&self, service: usize, backend: usize, is_alive: bool) {
        let Some(named) = self.numbering.named.get(service) else { return };
        let Some(number) = named.backends.get(backend) else { return };
        let mut known = self.lock();
        known.dead[usize::from(named.service)][usize::from(*number)] = !is_alive;
        self.put_in_force(&known);
    }

    /// As [`HealthBoard::is_dead`](super::HealthBoard::is_dead).
    pub(super) fn is_dead(&self, service: usize, backend: usize) -> bool {
        let named = self.numbering.named.get(service);
        let number = named.and_then(|named| Some((named.service, *named.backends.get(backend)?)));
        number.is_some_and(|(service, backend)| {
            self.lock().dead[usize::from(service)][usize::from(backend)]
        })
    }

    /// As [`HealthBoard::apply`](super::HealthBoard::apply).
    pub(super) fn apply(&self, health: Vec<Vec<Health>>) -> Result<Vec<f64>, HealthError> {
        let services = &self.numbering.named;
        if health.len() != services.len() {
            return Err(HealthError::Services { services: services.len(), got: health.len() });
        }
        for ((named, config), health) in self.numbering.services().zip(&health) {
            if health.len() != named.backends.len() {
                return Err(HealthError::Backends {
                    service: config.name.clone(),
                    backends: named.backends.len(),
                    got: health.len(),
                });
            }
        }
        let mut known = self.lock();
        let Known { told, by_operator, .. } = &mut *known;
        for (named, health) in services.iter().zip(health) {
            let service = usize::from(named.service);
            for (number, health) in named.backends.iter().zip(health) {
                let told = &mut told[service][usize::from(*number)];
                by_operator[service][usize::from(*number)] |= *told != health;
                *told = health;
            }
        }
        let moved = self.put_in_force(&known);
        Ok(services.iter().map(|named| moved[usize::from(named.service)]).collect())
    }

    /// As [`HealthBoard::set`](super::HealthBoard::set).
    pub(super) fn set(
        &self,
        service: &str,
        backend: &str,
        to: Health,
    ) -> Result<HealthChange, UnknownBackend> {
        let services = || self.numbering.services();
        let Some((named, config)) = services().find(|(_, known)| known.name == service) else {
            let names: Vec<_> = services().map(|(_, known)| known.name.as_str()).collect();
            let (service, services) = (service.to_owned(), names.join(", "));
            return Err(UnknownBackend::Service { service, services });
        };
        let number = usize::from(named.service);
        let backends = || {
            let numbers = named.backends.iter().map(|number| usize::from(*number));
            numbers.map(|number| (number, &config.backends[number]))
        };
        let meant = |known: &BackendConfig| {
            known.to_string() == backend || known.address.to_string() == backend
        };
        if !backends().any(|(_, known)| meant(known)) {
            let names: Vec<_> = backends().map(|(_, known)| known.to_string()).collect();
            let (service, backend) = (service.to_owned(), backend.to_owned());
            return Err(UnknownBackend::Backend { service, backend, backends: names.join(", ") });
        }
        // Under the lock from reading to writing, so that no other change is lost in between.
        let mut known = self.lock();
        for (place, _) in backends().filter(|(_, known)| meant(known)) {
            known.told[number][place] = to;
            known.by_operator[number][place] = true;
        }
        let moved = self.put_in_force(&known)[number];
        Ok(HealthChange { moved, generation: self.generation() })
    }

    /// As [`HealthBoard::backends`](super::HealthBoard::backends).
    pub(super) fn backends(&self) -> Vec<(String, String, Health)> {
        let health = self.assignment().1.health.clone();
        let all = self.numbering.services().flat_map(|(named, config)| {
            let numbers = named.backends.iter().map(|number| usize::from(*number));
            let of = &health[usize::from(named.service)];
            numbers.map(move |number| {
                (config.name.clone(), config.backends[number].to_string(), of[number])
            })
        });
        all.collect()
    }

    /// Builds the tables of what is known, and returns the share of each service's slots that moved.
    fn put_in_force(&self, known: &Known) -> Vec<f64> {
        let next = Arc::new(Assignment::new(&self.numbering.config, known.combined()));
        let size = self.numbering.config.table_size as f64;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, next.clone());
        drop(current);
        // Release: a thread that sees the number finds the lock's contents at least as new.
        self.generation.fetch_add(1, Ordering::Release);
        let moved = before.tables.iter().zip(&next.tables).map(|(old, new)| {
            match old.is_empty() || new.is_empty() {
                true => 1.0,
                false => old.moved(new, |_| true) as f64 / size,
            }
        });
        moved.collect()
    }

    /// How many times the health was changed. Read without the lock.
    pub(in crate::lb) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The assignment in force, with a generation that is not newer.
    pub(in crate::lb) fn assignment(&self) -> (u64, Arc<Assignment>) {
        let generation = self.generation();
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        (generation, current.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_applied(&self) -> MutexGuard<'_, BTreeMap<ShardId, Arc<AtomicU64>>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The backends of all services, as what counts their flows names them.
fn backends_of(config: &LbConfig) -> impl Iterator<Item = Rule> {
    config.services.iter().flat_map(|service| {
        let rule = |text| Rule { name: service.name.clone(), text };
        service.backends.iter().map(ToString::to_string).map(rule)
    })
}
