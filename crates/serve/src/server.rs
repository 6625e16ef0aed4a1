//! A service over TCP before it runs.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{ClockSource, LaneId, ShardId};
use rheostat_ip::Network;
use rheostat_run::{Metrics, Pool, PoolConfig, PoolError, Service, Stepped};
use rheostat_state::{
    Arena, ArenaError, FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard, StateLayout,
    TableConfig,
};
use rheostat_steer::Steering;
use rheostat_tcp::MemoryBudget;
use thiserror::Error;

use crate::application::Application;
use crate::config::{ListenerConfig, OutgoingConfig, ServeConfig};
use crate::connections::Connections;
use crate::conversation::{Conversations, RequestClient, handling};
use crate::driver::Driver;
use crate::handler::Handler;
use crate::ports::Ports;
use crate::readiness::Readiness;
use crate::scheduler::AvailableScheduler;
use crate::service::TcpService;
use crate::shared::{ReadMetrics, ServeControl, Shared};
use crate::times::{TimesConfig, TimesMeter};

/// Why there is no service.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServeError {
    /// Nothing is to be accepted.
    #[error("a service has no listener")]
    NoListener,
    /// Two listeners are at one place.
    #[error("two listeners have port {0} of the same address")]
    SamePort(u16),
    /// No peer can connect to port 0.
    #[error("a listener has port 0")]
    PortZero,
    /// The address is none of this machine's.
    #[error("a listener has the address {0}, which no device has")]
    Address(IpAddr),
    /// No connection could be opened.
    #[error("connections are to come from no port at all")]
    NoPorts,
    /// Connections of some shards could not be opened.
    #[error(
        "connections are to come from the ports {first}-{last}, and {without} of the {shards} shards have none of them under \
         this hash key: take more ports, two for each shard or more, or another key"
    )]
    ShardsWithoutPorts {
        /// The first port they are to come from.
        first: u16,
        /// The last.
        last: u16,
        /// The shards of the run.
        shards: usize,
        /// Those that have none of the ports.
        without: usize,
    },
    /// The address is none of this machine's.
    #[error("connections are to come from {0}, which no device has")]
    Source(IpAddr),
    /// Events are handled while their connection is at hand, and connections opened in the shard at hand.
    #[error(
        "{0} is for services that answer requests: one that handles events or opens connections runs with inline-dfcfs"
    )]
    Scheduler(AvailableScheduler),
}

/// Why members cannot handle the requests of a service.
#[derive(Debug, Error)]
pub enum MembersError {
    /// A handler of events sees connections, so it runs where they are.
    #[error(
        "a service that handles events of connections has no requests that other workers could handle"
    )]
    NoRequests,
    /// The pool is for another number of lanes than the run has.
    #[error("a pool for {pool} lanes, but the run has {run}")]
    Lanes {
        /// Those of the pool.
        pool: usize,
        /// Those of the run.
        run: usize,
    },
    /// The pool did not start.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// A service over TCP: what the lanes of a run are built from.
pub struct TcpServer {
    program: Program,
    network: Arc<Network>,
    shared: Arc<Shared>,
    lanes: usize,
    ports: Option<Arc<Ports>>,
    handles_apart: bool,
    times: Option<TimesConfig>,
}

impl TcpServer {
    /// The service of `app` on `network`, for a run of so many lanes. The secret, of which initial sequence numbers are made
    /// (RFC 6528), is to be drawn at random.
    ///
    /// # Errors
    /// [`ServeError`] when listeners contradict each other or the network, or there are none.
    pub fn new<A: Application>(
        app: A,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError> {
        if listeners.is_empty() {
            return Err(ServeError::NoListener);
        }
        let requests = Arc::new(Requests { app: Arc::new(app), clients: Mutex::default() });
        let (counting, handled) = (requests.app.clone(), requests.clone());
        let metrics = Arc::new(move |metrics: &mut Metrics| counting.metrics(metrics));
        let program = Program {
            service: Box::new(move |lane, server| handled.service(lane, server)),
            shard: shard_of::<Conversations<A>>,
            members: Some(requests),
        };
        TcpServer::of(program, metrics, listeners, limits, network, lanes, secret)
    }

    /// As [`TcpServer::new`], for a handler of events. It needs no listener if it connects.
    ///
    /// # Errors
    /// [`ServeError`] when listeners contradict each other or the network.
    pub fn with_handler<H: Handler>(
        handler: H,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError> {
        let handler = Arc::new(handler);
        let counting = handler.clone();
        let metrics = Arc::new(move |metrics: &mut Metrics| counting.metrics(metrics));
        let readiness = move |lane, server: &TcpServer| {
            service_of(lane, Readiness::new(lane, handler.clone(), server.shared.clone()), server)
        };
        let (service, shard) = (Box::new(readiness), shard_of::<Readiness<H>>);
        let program = Program { service, shard, members: None };
        TcpServer::of(program, metrics, listeners, limits, network, lanes, secret)
    }

    /// Has requests of an application timed, stage by stage; see [`ServeControl::request_times`]. Of no meaning to a handler of
    /// events.
    pub fn timing(mut self, config: TimesConfig) -> TcpServer {
        let records = (0..self.lanes).map(|_| Arc::default()).collect();
        let _ = self.shared.times.set((records, config.slowest));
        self.times = Some(config);
        self
    }

    fn times_meter(&self, lane: LaneId) -> Option<TimesMeter> {
        let (records, _) = self.shared.times.get()?;
        Some(TimesMeter::new(self.times.clone()?, records.get(lane.index())?.clone()))
    }

    fn of(
        program: Program,
        metrics: ReadMetrics,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError> {
        check(&listeners, &network)?;
        let shared = Arc::new(Shared::new(metrics, listeners, limits, lanes, secret));
        Ok(TcpServer {
            program,
            network,
            shared,
            lanes,
            ports: None,
            handles_apart: false,
            times: None,
        })
    }

    /// Has the requests of an application handled when their lane has given the shards of their connections back, and not as
    /// they are found: what schedulers need under which workers share connections, or do nothing but requests. Of no meaning to a
    /// handler of events.
    pub fn handling_apart(mut self) -> TcpServer {
        self.handles_apart = true;
        self
    }

    /// Starts a pool whose members handle the requests of an application in place of lanes, with one worker of the application
    /// each. Call it before [`TcpServer::service`], and stop the pool when the run is over. A request that a member does not end
    /// keeps its connection waiting, and no other one but those whose requests wait in the member's own queue.
    ///
    /// # Errors
    /// [`MembersError`] when there are no requests, or the pool does not start or is for another number of lanes.
    pub fn start_members(&self, config: &PoolConfig) -> Result<Pool, MembersError> {
        self.members_of(config)?.start(config, self.clock())
    }

    /// As [`TcpServer::start_members`], for tests: members do a request whenever the result is called, with any number that
    /// chooses which, and return whether there was one.
    ///
    /// # Errors
    /// As [`TcpServer::start_members`].
    pub fn step_members(&self, config: &PoolConfig) -> Result<StepMembers, MembersError> {
        self.members_of(config)?.step(config, self.clock())
    }

    /// What requests are timed by, if they are.
    fn clock(&self) -> MembersClock {
        self.times.as_ref().map(|times| times.clock.clone())
    }

    fn members_of(&self, config: &PoolConfig) -> Result<&dyn RequestMembers, MembersError> {
        if config.lanes != self.lanes {
            return Err(MembersError::Lanes { pool: config.lanes, run: self.lanes });
        }
        self.program.members.as_deref().ok_or(MembersError::NoRequests)
    }

    /// Prepares the service for a scheduler. The run has to have its [`AvailableScheduler::sharing`].
    ///
    /// # Errors
    /// [`ServeError::Scheduler`] when lanes are to share connections, and the service handles events or opens connections.
    pub fn under(self, scheduler: AvailableScheduler) -> Result<TcpServer, ServeError> {
        if scheduler.sharing().is_none() {
            return Ok(self);
        }
        if self.program.members.is_none() || self.ports.is_some() {
            return Err(ServeError::Scheduler(scheduler));
        }
        Ok(self.handling_apart())
    }

    /// Lets the service open connections, from ports whose answers come home to their shards: so the steering and the hasher must
    /// be those of the run. The tables of ports take 800 KB.
    ///
    /// # Errors
    /// [`ServeError`] when connections are to come from no port, from ports of which a shard has none
    /// ([`crate::steering_for_connecting`] draws another hash key), or from an address that no device has.
    pub fn connecting(
        mut self,
        steering: Arc<Steering>,
        hasher: FlowHasher,
        outgoing: OutgoingConfig,
    ) -> Result<TcpServer, ServeError> {
        if outgoing.ports.is_empty() {
            return Err(ServeError::NoPorts);
        }
        let own = own_addresses(&self.network);
        if let Some(stranger) = outgoing.addresses.iter().find(|address| !own.contains(address)) {
            return Err(ServeError::Source(*stranger));
        }
        let ((first, last), shards) = (outgoing.ports.clone().into_inner(), steering.shards());
        let ports = Ports::new(steering, hasher, outgoing, &self.shared.listeners);
        match ports.shards_without() {
            0 => self.ports = Some(Arc::new(ports)),
            without => {
                return Err(ServeError::ShardsWithoutPorts { first, last, shards, without });
            }
        }
        Ok(self)
    }

    /// What lane `lane` runs.
    pub fn service(&self, lane: LaneId) -> Box<dyn Service> {
        (self.program.service)(lane, self)
    }

    /// The shards of the run, without connections.
    ///
    /// # Errors
    /// [`ArenaError`] when the operating system does not give the memory.
    pub fn shards(
        &self,
        count: usize,
        hasher: FlowHasher,
        fragments: FragmentConfig,
    ) -> Result<Vec<Box<Shard>>, ArenaError> {
        // Connections have a table of their own.
        let table = TableConfig { capacity: 1, aliases: false };
        let tables = Arena::new(count, table, Arc::new(StateLayout::new()), hasher)?.into_tables();
        let mut budgets = Vec::with_capacity(count);
        let shard = |(number, table)| {
            let (fragments, memory) =
                (FragmentTracker::new(fragments), self.shared.budget.of_shard());
            budgets.push(memory.clone());
            (self.program.shard)(ShardId(number as u16), ShardParts { table, fragments, memory })
        };
        let shards = tables.into_iter().enumerate().map(shard).collect();
        *self.shared.shards.lock().unwrap_or_else(PoisonError::into_inner) = budgets;
        Ok(shards)
    }

    /// Looks at the service while it runs, and ends it.
    pub fn control(&self) -> ServeControl {
        ServeControl(self.shared.clone())
    }
}

/// Makes what a lane runs.
type MakeService = dyn Fn(LaneId, &TcpServer) -> Box<dyn Service> + Send + Sync;

/// The program that uses the connections: the types of its parts are known where it is made.
struct Program {
    service: Box<MakeService>,
    shard: fn(ShardId, ShardParts) -> Box<Shard>,
    /// There where the program sees requests, which can be handled without their connections.
    members: Option<Arc<dyn RequestMembers>>,
}

/// Makes members of a pool that handle requests.
trait RequestMembers: Send + Sync {
    fn start(&self, config: &PoolConfig, clock: MembersClock) -> Result<Pool, MembersError>;

    fn step(&self, config: &PoolConfig, clock: MembersClock) -> Result<StepMembers, MembersError>;
}

/// What members time requests by, if they do.
type MembersClock = Option<Arc<dyn ClockSource>>;

/// Members of a pool that a test drives.
pub type StepMembers = Box<dyn FnMut(u64) -> bool>;

/// An application, which sees requests.
struct Requests<A: Application> {
    app: Arc<A>,
    /// Of the lanes' clients at the pool that handles requests, those that no lane has yet.
    clients: Mutex<Vec<Option<RequestClient<A>>>>,
}

impl<A: Application> Requests<A> {
    fn service(&self, lane: LaneId, server: &TcpServer) -> Box<dyn Service> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let (app, shared) = (self.app.clone(), server.shared.clone());
        let client = clients.get_mut(lane.index()).and_then(Option::take);
        let (handling, times) = ((client, server.handles_apart), server.times_meter(lane));
        service_of(lane, Conversations::new(lane, app, shared, handling, times), server)
    }

    /// Keeps the clients until lanes take theirs.
    fn give(&self, clients: Vec<RequestClient<A>>) {
        let mut place = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        *place = clients.into_iter().map(Some).collect();
    }
}

impl<A: Application> RequestMembers for Requests<A> {
    fn start(&self, config: &PoolConfig, clock: MembersClock) -> Result<Pool, MembersError> {
        let app = self.app.clone();
        let (pool, clients) =
            Pool::start(config, move |member| handling(app.clone(), member, clock.clone()))?;
        self.give(clients);
        Ok(pool)
    }

    fn step(&self, config: &PoolConfig, clock: MembersClock) -> Result<StepMembers, MembersError> {
        let work = |member| handling(self.app.clone(), member, clock.clone());
        let (mut pool, clients) = Stepped::new(config, work)?;
        self.give(clients);
        Ok(Box::new(move |choice| pool.step(choice)))
    }
}

fn service_of<D: Driver>(lane: LaneId, driver: D, server: &TcpServer) -> Box<dyn Service> {
    let (network, shared) = (server.network.clone(), server.shared.clone());
    Box::new(TcpService::new(lane, driver, network, shared, server.ports.clone()))
}

/// What a shard is made of besides connections.
struct ShardParts {
    table: FlowTable,
    fragments: FragmentTracker,
    memory: Arc<MemoryBudget>,
}

fn shard_of<D: Driver>(id: ShardId, parts: ShardParts) -> Box<Shard> {
    let ShardParts { table, fragments, memory } = parts;
    let local = Connections::<D::Stream>::new(id, memory);
    Box::new(Shard { id, table, fragments, local })
}

fn check(listeners: &[ListenerConfig], network: &Network) -> Result<(), ServeError> {
    let own = own_addresses(network);
    for (place, listener) in listeners.iter().enumerate() {
        let (address, port) = (listener.address, listener.port);
        if port == 0 {
            return Err(ServeError::PortZero);
        }
        if let Some(stranger) = address.filter(|address| !own.contains(address)) {
            return Err(ServeError::Address(stranger));
        }
        let is_same = |other: &ListenerConfig| (other.address, other.port) == (address, port);
        if listeners[..place].iter().any(is_same) {
            return Err(ServeError::SamePort(port));
        }
    }
    Ok(())
}

fn own_addresses(network: &Network) -> Vec<IpAddr> {
    let own = network.interfaces().iter().flat_map(|interface| &interface.addresses);
    own.map(|own| own.address).collect()
}

impl std::fmt::Debug for TcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpServer").field("lanes", &self.lanes).finish_non_exhaustive()
    }
}
