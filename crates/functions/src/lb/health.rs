//! Which backends take flows, and how that changes while packets go through.
#![expect(
    clippy::disallowed_types,
    reason = "changed from outside the lanes; shards look for news on their regular turns"
)]

mod edition;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::ShardId;
use rheostat_nf::registry::RuleCount;
use thiserror::Error;

use super::config::LbConfig;
use super::numbering::Numbering;
pub(super) use edition::{Assignment, Edition, ShardHealth};

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

/// The health of backends, for all lanes. The thread that changes it builds the new tables; each shard
/// applies them on its next regular turn, about half a second later at most, and reports that.
/// [`HealthBoard::pending`] lists the shards that have not. Packets never wait for it. It stays the same when a load balancer with
/// other settings takes the place of the one that runs.
#[derive(Debug)]
pub struct HealthBoard {
    /// By the settings of the load balancer in force. A lane tries the lock once, when another one comes into force.
    edition: Mutex<Arc<Edition>>,
}

impl HealthBoard {
    pub(super) fn new(numbering: Numbering) -> HealthBoard {
        HealthBoard { edition: Mutex::new(Arc::new(Edition::new(numbering))) }
    }

    /// The health by the settings in force.
    pub(super) fn edition(&self) -> Arc<Edition> {
        self.lock().clone()
    }

    /// The health by the settings of a load balancer that is to take the place of the one in force.
    pub(super) fn prepare(&self, numbering: Numbering) -> Arc<Edition> {
        Arc::new(self.lock().next(numbering))
    }

    /// The load balancer with this edition is in force. Never waits: when a thread changes something at this moment, a later call
    /// puts the edition in force.
    pub(super) fn put_in_force(&self, edition: &Arc<Edition>) {
        let Ok(mut current) = self.edition.try_lock() else { return };
        if edition.is_behind(&current) && edition.come_into_force(&current) {
            *current = edition.clone();
        }
    }

    /// All backends in the order of the configuration, with the configuration that their places are of.
    pub fn uses(&self) -> (Arc<LbConfig>, Vec<BackendUse>) {
        let edition = self.lock();
        (edition.stated(), edition.uses())
    }

    /// The shards that have not applied the change with this number yet, in order. No packet of any other
    /// shard is handled as before the change.
    pub fn pending(&self, generation: u64) -> Vec<ShardId> {
        self.lock().pending(generation)
    }

    /// The health as the configuration or an operator has it, by service and backend in the order of the
    /// configuration: what [`HealthBoard::apply`] changes.
    pub fn health(&self) -> Vec<Vec<Health>> {
        self.lock().health()
    }

    /// The health in force, likewise: a backend that is dead by a check is down, whatever was set.
    pub fn in_force(&self) -> Vec<Vec<Health>> {
        self.lock().in_force()
    }

    /// Notes what checks have found out about a backend; its place is that of the configuration. Nothing
    /// comes of a place that is not there.
    pub fn note(&self, service: usize, backend: usize, is_alive: bool) {
        self.lock().note(service, backend, is_alive);
    }

    /// Whether checks have found that a backend does not answer.
    pub fn is_dead(&self, service: usize, backend: usize) -> bool {
        self.lock().is_dead(service, backend)
    }

    /// Tells another health and returns the share of each service's slots that changed hands.
    ///
    /// # Errors
    /// [`HealthError`] when there is not one entry for each backend of each service; nothing changes then.
    pub fn apply(&self, health: Vec<Vec<Health>>) -> Result<Vec<f64>, HealthError> {
        self.lock().apply(health)
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
        self.lock().set(service, backend, to)
    }

    /// Every backend with its service and the health in force.
    pub fn backends(&self) -> Vec<(String, String, Health)> {
        self.lock().backends()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Edition>> {
        self.edition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::Time;

    use super::*;
    use crate::lb::check::{CheckConfig, CheckKind};
    use crate::lb::config::{BackendConfig, Mode, OnDown, ServiceConfig};
    use crate::lb::service_map::Seat;

    fn service(backends: &[u8]) -> ServiceConfig {
        let backend = |last: &u8| BackendConfig {
            address: [10, 0, 0, *last].into(),
            port: None,
            weight: 1,
            health: Health::Up,
            server_id: None,
        };
        ServiceConfig {
            name: "web".into(),
            vip: [203, 0, 113, 10].into(),
            protocol: 6,
            ports: Vec::new(),
            mode: Mode::DsrIpip,
            on_down: OnDown::Move,
            quic: None,
            check: None,
            backends: backends.iter().map(backend).collect(),
        }
    }

    fn config(services: Vec<ServiceConfig>) -> LbConfig {
        LbConfig { services, ..LbConfig::default() }
    }

    fn board() -> HealthBoard {
        HealthBoard::new(Numbering::first(config(vec![service(&[1, 2, 3, 4])])))
    }

    #[test]
    fn another_health_is_another_table_and_the_share_that_moved_is_told() {
        let board = board();
        let (generation, before) = board.edition().assignment();
        let health = vec![vec![Health::Up, Health::Down, Health::Up, Health::Drain]];
        let moved = board.apply(health.clone()).unwrap();
        // Half of the slots have to move, and hardly any others do.
        assert!((0.5..0.53).contains(&moved[0]), "{moved:?}");
        assert_eq!((board.health(), board.edition().generation()), (health, generation + 1));
        let (_, after) = board.edition().assignment();
        assert_eq!(after.tables[0].shares(4).iter().filter(|slots| **slots > 0).count(), 2);
        // The holder of the old one still has it.
        assert_eq!(before.tables[0].shares(4).iter().filter(|slots| **slots > 0).count(), 4);
        assert_eq!(board.apply(vec![vec![Health::Down; 4]]), Ok(vec![1.0]));
        assert_eq!(board.edition().assignment().1.tables[0].pick(7), None);
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
        assert_eq!((board.health(), board.edition().generation()), (up, 1));
        // An operator drains it meanwhile, and another one.
        let told = vec![vec![Health::Up, Health::Drain, Health::Drain, Health::Up]];
        board.apply(told.clone()).unwrap();
        assert_eq!(board.in_force()[0], [Health::Up, Health::Down, Health::Drain, Health::Up]);
        board.note(0, 1, true);
        assert_eq!(board.in_force(), told);
        board.set("web", "10.0.0.4", Health::Up).unwrap();
        board.note(0, 0, false);
        let seat = Seat { service: 0, backend: 3 };
        board.edition().count(seat, ShardId(2), 60, Time::from_nanos(5));
        let (_, uses) = board.uses();
        let shown: Vec<_> = uses.iter().map(|used| (used.origin, used.count.hits)).collect();
        let (set, found) = (HealthOrigin::Operator, HealthOrigin::Check);
        let expected = [(found, 0), (set, 0), (set, 0), (set, 1)];
        assert_eq!((shown, uses[0].health), (expected.to_vec(), Health::Down));
        board.note(0, 0, true);
        board.note(0, 7, false);
        board.note(3, 0, false);
        assert_eq!((board.in_force(), board.edition().generation()), (told, 6));
    }

    #[test]
    fn a_change_is_pending_until_every_shard_has_applied_it() {
        let board = board();
        let mut shards = [ShardId(0), ShardId(1)].map(|shard| board.edition().follow(shard));
        assert_eq!(board.pending(board.edition().generation()), []);
        assert_eq!(board.uses().1[0].origin, HealthOrigin::Configuration);
        let first = board.set("web", "10.0.0.2", Health::Drain).unwrap().generation;
        assert_eq!(board.pending(first), [ShardId(0), ShardId(1)]);
        shards[1].renew(&board.edition());
        assert_eq!(board.pending(first), [ShardId(0)]);
        assert_eq!(shards[1].assignment.health(0, 1), Health::Drain);
        // The next change is pending for both; a shard that applies it has applied the first, too.
        let second = board.set("web", "10.0.0.3", Health::Drain).unwrap().generation;
        shards[0].renew(&board.edition());
        assert_eq!((board.pending(first), board.pending(second)), (vec![], vec![ShardId(1)]));
        // The shard of another run takes the place of the one that will never apply it.
        let _again = board.edition().follow(ShardId(1));
        assert_eq!(board.pending(second), []);
    }

    #[test]
    fn a_health_vector_must_fit() {
        let board = board();
        let error = board.apply(vec![]).unwrap_err().to_string();
        assert_eq!(error, "health of 0 services was given for 1");
        let error = board.apply(vec![vec![Health::Up; 3]]).unwrap_err().to_string();
        assert_eq!(error, "health of 3 backends was given for the 4 of service `web`");
        assert_eq!((board.edition().generation(), board.health()), (0, vec![vec![Health::Up; 4]]));
    }

    #[test]
    fn another_configuration_leaves_what_an_operator_and_checks_have_found_out() {
        let mut web = service(&[1, 2, 3, 4]);
        web.check = Some(CheckConfig::new(CheckKind::Tcp));
        let first = Numbering::first(config(vec![web.clone()]));
        let board = HealthBoard::new(first.clone());
        board.set("web", "10.0.0.2", Health::Drain).unwrap();
        board.set("web", "10.0.0.3", Health::Drain).unwrap();
        board.note(0, 3, false);
        // Without the first backend; the third is to be down, and there is a fifth.
        web.backends.remove(0);
        web.backends[1].health = Health::Down;
        web.backends.extend(service(&[5]).backends);
        let numbering = first.next(config(vec![web])).unwrap();
        let next = board.prepare(numbering);
        let mut shard = next.follow(ShardId(0));
        let before = board.edition().generation();
        // Until it is in force, the board is that of the configuration before.
        board.set("web", "10.0.0.1", Health::Drain).unwrap();
        board.set("web", "10.0.0.2", Health::Up).unwrap();
        let second = Seat { service: 0, backend: 1 };
        board.edition().count(second, ShardId(0), 60, Time::from_nanos(5));
        board.put_in_force(&next);
        assert_eq!(board.uses().1[0].count.hits, 1, "counts go on");
        let origins = board.uses().1.into_iter().map(|used| used.origin);
        assert_eq!(origins.collect::<Vec<_>>(), {
            use HealthOrigin::{Check, Configuration, Operator};
            [Operator, Configuration, Check, Configuration]
        });
        assert_eq!(board.health(), [[Health::Up, Health::Down, Health::Up, Health::Up]]);
        assert_eq!(board.in_force(), [[Health::Up, Health::Down, Health::Down, Health::Up]]);
        let names = board.backends().into_iter().map(|(_, backend, _)| backend);
        assert_eq!(names.collect::<Vec<_>>(), ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"]);
        // The places of checks are those of the configuration in force.
        board.note(0, 2, true);
        assert!(board.edition().generation() > before + 3);
        shard.renew(&next);
        let health = |backend| shard.assignment.health(0, backend);
        assert_eq!([0, 1, 2, 3, 4].map(health), {
            [Health::Drain, Health::Up, Health::Down, Health::Up, Health::Up]
        });
        // An earlier edition does not come back.
        let old = Arc::new(Edition::new(first));
        board.put_in_force(&old);
        assert_eq!(board.backends().len(), 4);
    }
}
