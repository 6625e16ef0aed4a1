//! Which backends take flows, and how that changes while packets go through.
#![expect(
    clippy::disallowed_types,
    reason = "changed from outside the lanes; shards look for news on their regular turns"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::{ShardId, Time};
use rheostat_nf::registry::{Rule, RuleCount, RuleCounters, RuleList, Tally};
use thiserror::Error;

use super::config::{BackendConfig, LbConfig};
use super::maglev::Maglev;
use super::service_map::Seat;

/// Whether a backend takes flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Health {
    /// It does.
    #[default]
    Up,
    /// It keeps the flows it has and gets no new ones.
    Drain,
    /// It gets nothing any more.
    Down,
}

/// The health of every backend of every service, and the tables that follow from it. Never changed:
/// another health is another value.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) health: Vec<Vec<Health>>,
    pub(super) tables: Vec<Maglev>,
}

impl Assignment {
    fn new(config: &LbConfig, health: Vec<Vec<Health>>) -> Assignment {
        let table = |(service, health): (&super::config::ServiceConfig, &Vec<Health>)| {
            Maglev::new(config.table_size, config.seed, &service.candidates(health))
        };
        let tables = config.services.iter().zip(&health).map(table).collect();
        Assignment { health, tables }
    }

    #[inline]
    pub(super) fn health(&self, service: u16, backend: u16) -> Health {
        self.health[usize::from(service)][usize::from(backend)]
    }
}

/// Why a health vector cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HealthError {
    /// It is about another number of services.
    #[error("health of {got} services was given for {services}")]
    Services {
        /// Services of the configuration.
        services: usize,
        /// Services in the vector.
        got: usize,
    },
    /// It is about another number of backends.
    #[error("health of {got} backends was given for the {backends} of service `{service}`")]
    Backends {
        /// The service.
        service: String,
        /// Its backends.
        backends: usize,
        /// Backends in the vector.
        got: usize,
    },
}

/// Why the health of a backend cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownBackend {
    /// There is no such service.
    #[error("there is no service `{service}`; the services are {services}")]
    Service {
        /// What was asked for.
        service: String,
        /// What there is.
        services: String,
    },
    /// The service has no such backend.
    #[error("service `{service}` has no backend `{backend}`; its backends are {backends}")]
    Backend {
        /// The service.
        service: String,
        /// What was asked for.
        backend: String,
        /// What there is.
        backends: String,
    },
}

/// What is known of the backends' health.
#[derive(Debug)]
struct Known {
    /// As the configuration or an operator has it, by service and backend.
    told: Vec<Vec<Health>>,
    /// Whether an operator has set it last, likewise.
    by_operator: Vec<Vec<bool>>,
    /// Whether checks find them dead, likewise.
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
}

/// The origin of a backend's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthOrigin {
    /// The configuration.
    Configuration,
    /// An operator, by a command.
    Operator,
    /// Its checks, which find it dead.
    Check,
}

/// A backend during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendUse {
    /// The service, by its place in the configuration.
    pub service: usize,
    /// The backend, by its place in the service.
    pub backend: usize,
    /// The health in force.
    pub health: Health,
    /// Its origin.
    pub origin: HealthOrigin,
    /// The flows it got, with their first packets.
    pub count: RuleCount,
}

/// A change of health that the board holds, and that shards have yet to apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthChange {
    /// The share of the service's slots that changed hands, from 0 to 1.
    pub moved: f64,
    /// The change's number, for [`HealthBoard::pending`].
    pub generation: u64,
}

/// The health that one shard goes by.
#[derive(Debug)]
pub(super) struct ShardHealth {
    pub(super) assignment: Arc<Assignment>,
    generation: u64,
    /// The same generation, for the board.
    applied: Arc<AtomicU64>,
}

impl ShardHealth {
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Applies the board's present health, if it is another.
    pub(super) fn renew(&mut self, board: &HealthBoard) {
        if board.generation() != self.generation {
            (self.generation, self.assignment) = board.assignment();
            // Release: the board's readers order what they do next behind this. The shard's packets need
            // no ordering: the lane that owns it processes them behind this store.
            self.applied.store(self.generation, Ordering::Release);
        }
    }
}

/// The health of backends, for all lanes. The thread that changes it builds the new tables; each shard
/// applies them on its next regular turn, about half a second later at most, and reports that.
/// [`HealthBoard::pending`] lists the shards that have not. Packets never wait for it.
#[derive(Debug)]
pub struct HealthBoard {
    config: Arc<LbConfig>,
    /// Counts the assignments, so that a shard sees without the lock that its own is still in force.
    generation: AtomicU64,
    /// Held by threads that change something, while tables are built; no lane ever takes it.
    known: Mutex<Known>,
    current: Mutex<Arc<Assignment>>,
    /// The flows that each backend got.
    flows: RuleCounters,
    /// The number of each service's first backend among these.
    first: Vec<usize>,
    /// The generation that each shard goes by. Locked when a shard is made and when pending ones are listed.
    applied: Mutex<BTreeMap<ShardId, Arc<AtomicU64>>>,
}

impl HealthBoard {
    pub(super) fn new(config: Arc<LbConfig>) -> HealthBoard {
        let told: Vec<_> = config.services.iter().map(|service| service.health()).collect();
        let none: Vec<_> = told.iter().map(|backends| vec![false; backends.len()]).collect();
        let current = Mutex::new(Arc::new(Assignment::new(&config, told.clone())));
        let mut first = Vec::new();
        let mut backends = Vec::new();
        for service in &config.services {
            first.push(backends.len());
            let rule = |text| Rule { name: service.name.clone(), text };
            backends.extend(service.backends.iter().map(ToString::to_string).map(rule));
        }
        let flows = RuleCounters::new(backends);
        let known = Mutex::new(Known { told, by_operator: none.clone(), dead: none });
        let (generation, applied) = (AtomicU64::new(0), Mutex::default());
        HealthBoard { config, generation, known, current, flows, first, applied }
    }

    /// Counts a flow that a backend gets, and its first packet. Only the lane that has the shard may call it.
    #[inline]
    pub(super) fn count(&self, seat: Seat, shard: ShardId, bytes: usize, now: Time) {
        if let Some(first) = self.first.get(usize::from(seat.service)) {
            self.flows.count(first + usize::from(seat.backend), shard, bytes, now);
        }
    }

    /// The settings of the services.
    pub fn config(&self) -> &LbConfig {
        &self.config
    }

    /// All backends in the order of the configuration.
    pub fn uses(&self) -> Vec<BackendUse> {
        let (in_force, known) = (self.in_force(), self.lock());
        let mut counts = self.flows.rules().into_iter();
        let mut uses = Vec::new();
        for (service, health) in in_force.iter().enumerate() {
            for (backend, health) in health.iter().enumerate() {
                let origin =
                    match (known.dead[service][backend], known.by_operator[service][backend]) {
                        (true, _) => HealthOrigin::Check,
                        (false, true) => HealthOrigin::Operator,
                        (false, false) => HealthOrigin::Configuration,
                    };
                let count = match counts.next().map(|used| used.tally) {
                    Some(Tally::Counted(count)) => count,
                    _ => RuleCount::default(),
                };
                uses.push(BackendUse { service, backend, health: *health, origin, count });
            }
        }
        uses
    }

    /// The present health, for a shard that reports what it applies. A shard of the same number, of an
    /// earlier run of the chain, is forgotten.
    pub(super) fn follow(&self, shard: ShardId) -> ShardHealth {
        let (generation, assignment) = self.assignment();
        let applied = Arc::new(AtomicU64::new(generation));
        self.lock_applied().insert(shard, applied.clone());
        ShardHealth { assignment, generation, applied }
    }

    /// The shards that have not applied the change with this number yet, in order. No packet of any other
    /// shard is handled as before the change.
    pub fn pending(&self, generation: u64) -> Vec<ShardId> {
        let applied = self.lock_applied();
        // Acquire: pairs with the shard's store.
        let lags = |applied: &AtomicU64| applied.load(Ordering::Acquire) < generation;
        applied.iter().filter(|(_, applied)| lags(applied)).map(|(shard, _)| *shard).collect()
    }

    /// The health as the configuration or an operator has it, by service and backend in the order of the
    /// configuration: what [`HealthBoard::apply`] changes.
    pub fn health(&self) -> Vec<Vec<Health>> {
        self.lock().told.clone()
    }

    /// The health in force, likewise: a backend that is dead by a check is down, whatever was set.
    pub fn in_force(&self) -> Vec<Vec<Health>> {
        self.assignment().1.health.clone()
    }

    /// Notes what checks have found out about a backend; its place is that of the configuration. Nothing
    /// comes of a place that is not there.
    pub fn note(&self, service: usize, backend: usize, is_alive: bool) {
        let mut known = self.lock();
        let place = known.dead.get_mut(service).and_then(|backends| backends.get_mut(backend));
        if let Some(dead) = place {
            *dead = !is_alive;
            self.put_in_force(&known);
        }
    }

    /// Whether checks have found that a backend does not answer.
    pub fn is_dead(&self, service: usize, backend: usize) -> bool {
        let known = self.lock();
        known.dead.get(service).and_then(|backends| backends.get(backend)).is_some_and(|dead| *dead)
    }

    /// Tells another health and returns the share of each service's slots that changed hands.
    ///
    /// # Errors
    /// [`HealthError`] when there is not one entry for each backend of each service; nothing changes then.
    pub fn apply(&self, health: Vec<Vec<Health>>) -> Result<Vec<f64>, HealthError> {
        let services = &self.config.services;
        if health.len() != services.len() {
            return Err(HealthError::Services { services: services.len(), got: health.len() });
        }
        for (service, health) in services.iter().zip(&health) {
            if health.len() != service.backends.len() {
                return Err(HealthError::Backends {
                    service: service.name.clone(),
                    backends: service.backends.len(),
                    got: health.len(),
                });
            }
        }
        let mut known = self.lock();
        let Known { told, by_operator, .. } = &mut *known;
        let before = told.iter().flatten().zip(health.iter().flatten());
        for ((before, after), by_operator) in before.zip(by_operator.iter_mut().flatten()) {
            *by_operator |= before != after;
        }
        *told = health;
        Ok(self.put_in_force(&known))
    }

    /// Sets the health of one backend, by the service's name and the backend's address, with its port
    /// where it has its own; without one, of all that have this address. Shards apply it on their next
    /// regular turns: see [`HealthBoard::pending`].
    ///
    /// # Errors
    /// [`UnknownBackend`] with the names there are.
    pub fn set(
        &self,
        service: &str,
        backend: &str,
        to: Health,
    ) -> Result<HealthChange, UnknownBackend> {
        let services = &self.config.services;
        let Some(number) = services.iter().position(|known| known.name == service) else {
            let names: Vec<_> = services.iter().map(|known| known.name.as_str()).collect();
            let (service, services) = (service.to_owned(), names.join(", "));
            return Err(UnknownBackend::Service { service, services });
        };
        let backends = &services[number].backends;
        let meant = |known: &BackendConfig| {
            known.to_string() == backend || known.address.to_string() == backend
        };
        if !backends.iter().any(meant) {
            let names: Vec<_> = backends.iter().map(ToString::to_string).collect();
            let (service, backend) = (service.to_owned(), backend.to_owned());
            return Err(UnknownBackend::Backend { service, backend, backends: names.join(", ") });
        }
        // Under the lock from reading to writing, so that no other change is lost in between.
        let mut known = self.lock();
        for (place, _) in backends.iter().enumerate().filter(|(_, backend)| meant(backend)) {
            known.told[number][place] = to;
            known.by_operator[number][place] = true;
        }
        let moved = self.put_in_force(&known)[number];
        Ok(HealthChange { moved, generation: self.generation() })
    }

    /// Every backend with its service and the health in force.
    pub fn backends(&self) -> Vec<(String, String, Health)> {
        let services = self.config.services.iter().zip(self.in_force());
        let all = services.flat_map(|(service, health)| {
            let backends = service.backends.iter().zip(health);
            backends.map(|(known, health)| (service.name.clone(), known.to_string(), health))
        });
        all.collect()
    }

    /// Builds the tables of what is known, and returns the share of each service's slots that moved.
    fn put_in_force(&self, known: &Known) -> Vec<f64> {
        let next = Arc::new(Assignment::new(&self.config, known.combined()));
        let size = self.config.table_size as f64;
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
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The assignment in force, with a generation that is not newer.
    pub(super) fn assignment(&self) -> (u64, Arc<Assignment>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lb::config::{BackendConfig, Mode, OnDown, ServiceConfig};

    fn board() -> HealthBoard {
        let backend = |last: u8| BackendConfig {
            address: [10, 0, 0, last].into(),
            port: None,
            weight: 1,
            health: Health::Up,
            server_id: None,
        };
        let service = ServiceConfig {
            name: "web".into(),
            vip: [203, 0, 113, 10].into(),
            protocol: 6,
            ports: Vec::new(),
            mode: Mode::DsrIpip,
            on_down: OnDown::Move,
            quic: None,
            check: None,
            backends: (1..=4).map(backend).collect(),
        };
        HealthBoard::new(Arc::new(LbConfig { services: vec![service], ..LbConfig::default() }))
    }

    #[test]
    fn another_health_is_another_table_and_the_share_that_moved_is_told() {
        let board = board();
        let (generation, before) = board.assignment();
        let health = vec![vec![Health::Up, Health::Down, Health::Up, Health::Drain]];
        let moved = board.apply(health.clone()).unwrap();
        // Half of the slots have to move, and hardly any others do.
        assert!((0.5..0.53).contains(&moved[0]), "{moved:?}");
        assert_eq!((board.health(), board.generation()), (health, generation + 1));
        let (_, after) = board.assignment();
        assert_eq!(after.tables[0].shares(4).iter().filter(|slots| **slots > 0).count(), 2);
        // The holder of the old one still has it.
        assert_eq!(before.tables[0].shares(4).iter().filter(|slots| **slots > 0).count(), 4);
        assert_eq!(board.apply(vec![vec![Health::Down; 4]]), Ok(vec![1.0]));
        assert_eq!(board.assignment().1.tables[0].pick(7), None);
    }

    #[test]
    fn one_backend_changes_and_the_others_stay() {
        let board = board();
        let HealthChange { moved, .. } = board.set("web", "10.0.0.2", Health::Down).unwrap();
        assert!((0.2..0.3).contains(&moved), "a quarter of the slots moves: {moved}");
        board.set("web", "10.0.0.4", Health::Drain).unwrap();
        assert_eq!(board.health(), [[Health::Up, Health::Down, Health::Up, Health::Drain]]);
        assert_eq!(board.backends()[1], ("web".into(), "10.0.0.2".into(), Health::Down));
        let error = board.set("mail", "10.0.0.2", Health::Up).unwrap_err().to_string();
        assert_eq!(error, "there is no service `mail`; the services are web");
        let error = board.set("web", "10.0.0.9", Health::Up).unwrap_err().to_string();
        let names = "10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4";
        assert_eq!(
            error,
            format!("service `web` has no backend `10.0.0.9`; its backends are {names}")
        );
    }

    #[test]
    fn a_dead_backend_is_down_until_alive_again_and_then_as_configured() {
        let board = board();
        let up = vec![vec![Health::Up; 4]];
        board.note(0, 1, false);
        assert_eq!(board.in_force()[0], [Health::Up, Health::Down, Health::Up, Health::Up]);
        assert_eq!((board.health(), board.generation()), (up, 1));
        // An operator drains it meanwhile, and another one.
        let told = vec![vec![Health::Up, Health::Drain, Health::Drain, Health::Up]];
        board.apply(told.clone()).unwrap();
        assert_eq!(board.in_force()[0], [Health::Up, Health::Down, Health::Drain, Health::Up]);
        board.note(0, 1, true);
        assert_eq!(board.in_force(), told);
        board.set("web", "10.0.0.4", Health::Up).unwrap();
        board.note(0, 0, false);
        board.count(Seat { service: 0, backend: 3 }, ShardId(2), 60, Time::from_nanos(5));
        let uses = board.uses();
        let shown: Vec<_> = uses.iter().map(|used| (used.origin, used.count.hits)).collect();
        let (set, found) = (HealthOrigin::Operator, HealthOrigin::Check);
        let expected = [(found, 0), (set, 0), (set, 0), (set, 1)];
        assert_eq!((shown, uses[0].health), (expected.to_vec(), Health::Down));
        board.note(0, 0, true);
        board.note(0, 7, false);
        board.note(3, 0, false);
        assert_eq!((board.in_force(), board.generation()), (told, 6));
    }

    #[test]
    fn a_change_is_pending_until_every_shard_has_applied_it() {
        let board = board();
        let mut shards = [ShardId(0), ShardId(1)].map(|shard| board.follow(shard));
        assert_eq!(board.pending(board.generation()), []);
        assert_eq!(board.uses()[0].origin, HealthOrigin::Configuration);
        let first = board.set("web", "10.0.0.2", Health::Drain).unwrap().generation;
        assert_eq!(board.pending(first), [ShardId(0), ShardId(1)]);
        shards[1].renew(&board);
        assert_eq!(board.pending(first), [ShardId(0)]);
        assert_eq!(shards[1].assignment.health(0, 1), Health::Drain);
        // The next change is pending for both; a shard that applies it has applied the first, too.
        let second = board.set("web", "10.0.0.3", Health::Drain).unwrap().generation;
        shards[0].renew(&board);
        assert_eq!((board.pending(first), board.pending(second)), (vec![], vec![ShardId(1)]));
        // The shard of another run takes the place of the one that will never apply it.
        let _again = board.follow(ShardId(1));
        assert_eq!(board.pending(second), []);
    }

    #[test]
    fn a_health_vector_must_fit() {
        let board = board();
        let error = board.apply(vec![]).unwrap_err().to_string();
        assert_eq!(error, "health of 0 services was given for 1");
        let error = board.apply(vec![vec![Health::Up; 3]]).unwrap_err().to_string();
        assert_eq!(error, "health of 3 backends was given for the 4 of service `web`");
        assert_eq!((board.generation(), board.health()), (0, vec![vec![Health::Up; 4]]));
    }
}
