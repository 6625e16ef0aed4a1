//! Services over TCP: what the author of one imports, and [`Server`], which runs it. See `docs/guide-tcp.md`.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat_base::DeviceId;
use rheostat_io::{
    CableEnd, Device, OpenError, PacketConfig, PacketDevice, TapConfig, TapDevice, XdpConfig,
    XdpDevice,
};
use rheostat_ip::{Interface, Network, NetworkError, Policy, Route};
use rheostat_kernel::InterfaceLink;
use rheostat_packet::mbuf::PoolError;
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::poll::Interrupt;
use rheostat_run::{RunReport, Runtime, RuntimeConfig, StartError};
use rheostat_serve::{TcpServer, steering_for_connecting};
use rheostat_state::{ArenaError, FlowHasher, FragmentConfig};
use rheostat_steer::{HashKey, Orientation, Steering, SteeringError};
use thiserror::Error;

pub use rheostat_base::{Clock, LaneId, WallClock};
pub use rheostat_io::cable;
pub use rheostat_ip::InterfaceAddress;
pub use rheostat_serve::blocking::{
    Blocking, BlockingConfig, BlockingListener, BlockingStream, StreamError,
};
pub use rheostat_serve::registry::Events;
pub use rheostat_serve::scheduler::{SchedulerPlan, SchedulerRegistration};
pub use rheostat_serve::{
    Application, ConnectError, ConnectionId, Encoded, Ended, Handled, Handler, ListenerConfig,
    OutgoingConfig, Parsed, Rehearsal, ReplyBuffer, ServeConfig, ServeControl, ServeError,
    SocketEvent, Sockets, SynCookieMode, Totals, rehearse,
};
pub use rheostat_serve::{echo, http, relay, resp};
pub use rheostat_tcp::congestion::Algorithm;
pub use rheostat_tcp::sched::{Queueing, SchedulerError, Split};
pub use rheostat_tcp::{CloseReason, Config, KeepAlive, ReadError, WriteError};

/// Shards of a service.
const SHARDS: usize = 128;
/// Packet buffers of a service.
const BUFFERS: u32 = 16_384;
/// How long an idle worker polls before it blocks.
const SPIN: Duration = Duration::from_micros(50);
/// The longest packet of a cable between two services.
const CABLE_MTU: u16 = 1_500;
/// How long workers may take for the poll at hand when a service ends.
const WORKERS_TIME: Duration = Duration::from_secs(10);
/// How often the end of connections is looked for.
const TICK: Duration = Duration::from_millis(5);

/// A service over TCP before it runs: an application, an interface with its addresses, listeners and lanes.
pub struct Server {
    program: Program,
    device: Option<Attachment>,
    addresses: Vec<InterfaceAddress>,
    routes: Vec<Route>,
    listeners: Vec<ListenerConfig>,
    limits: ServeConfig,
    outgoing: OutgoingConfig,
    lanes: u16,
}

/// Makes a service of what uses its connections.
type Program = Box<dyn FnOnce(Place) -> Result<TcpServer, ServeError> + Send>;

/// What a service is made of besides.
struct Place {
    listeners: Vec<ListenerConfig>,
    limits: ServeConfig,
    network: Arc<Network>,
    lanes: usize,
    secret: [u8; 16],
}

/// What a service is connected to.
#[derive(Debug)]
enum Attachment {
    Interface(Kind, String),
    Cable(CableEnd),
}

/// The way to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tap,
    Packet,
    Xdp,
}

/// Why a service does not run.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "most variants are the error they wrap")]
pub enum ServerError {
    /// No interface was given.
    #[error("a server needs an interface: call `tap`, `af_packet` or `af_xdp`")]
    NoDevice,
    /// No address was given.
    #[error(
        "a server needs an address of its own: call `address`, such as with \"10.0.0.1/24\".parse()"
    )]
    NoAddress,
    /// The interface has no link address.
    #[error("`{0}` is no Ethernet interface")]
    NotEthernet(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Steering(#[from] SteeringError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Memory(#[from] ArenaError),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Server {
    /// A service of `app` on one lane, which is not connected to anything yet.
    pub fn new(app: impl Application) -> Server {
        Server::of(Box::new(|place| {
            let Place { listeners, limits, network, lanes, secret } = place;
            TcpServer::new(app, listeners, limits, network, lanes, &secret)
        }))
    }

    /// As [`Server::new`], of a handler of events.
    pub fn with_handler(handler: impl Handler) -> Server {
        Server::of(Box::new(|place| {
            let Place { listeners, limits, network, lanes, secret } = place;
            TcpServer::with_handler(handler, listeners, limits, network, lanes, &secret)
        }))
    }

    /// As [`Server::new`], of connections that threads use: what [`Blocking`] accepts and opens.
    pub fn blocking(sockets: &Blocking) -> Server {
        let sockets = sockets.clone();
        Server::of(Box::new(move |place| {
            let Place { listeners, limits, network, lanes, secret } = place;
            let handler = sockets.handler();
            let server =
                TcpServer::with_handler(handler, listeners, limits, network, lanes, &secret)?;
            sockets.run_by(server.control());
            Ok(server)
        }))
    }

    fn of(program: Program) -> Server {
        Server {
            program,
            device: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            listeners: Vec::new(),
            limits: ServeConfig::default(),
            outgoing: OutgoingConfig::default(),
            lanes: 1,
        }
    }

    /// On a tap interface of this machine, which is made if it does not exist.
    #[must_use]
    pub fn tap(mut self, interface: &str) -> Server {
        self.device = Some(Attachment::Interface(Kind::Tap, interface.to_owned()));
        self
    }

    /// On an interface, by packet sockets: works with every driver.
    #[must_use]
    pub fn af_packet(mut self, interface: &str) -> Server {
        self.device = Some(Attachment::Interface(Kind::Packet, interface.to_owned()));
        self
    }

    /// On an interface, by AF_XDP.
    #[must_use]
    pub fn af_xdp(mut self, interface: &str) -> Server {
        self.device = Some(Attachment::Interface(Kind::Xdp, interface.to_owned()));
        self
    }

    /// At an end of a [`cable`] to another service of this process: needs no privileges.
    #[must_use]
    pub fn cable(mut self, end: CableEnd) -> Server {
        self.device = Some(Attachment::Cable(end));
        self
    }

    /// With this address, which the kernel must not have.
    #[must_use]
    pub fn address(mut self, address: InterfaceAddress) -> Server {
        self.addresses.push(address);
        self
    }

    /// With this router for peers beyond the link.
    #[must_use]
    pub fn gateway(mut self, router: IpAddr) -> Server {
        let everywhere = if router.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        self.routes.extend(everywhere.parse().map(|prefix| Route::via(prefix, router)));
        self
    }

    /// Accepts connections at this port of all addresses.
    #[must_use]
    pub fn listen(self, port: u16) -> Server {
        self.listener(ListenerConfig::new(port))
    }

    /// Accepts connections as `listener` states.
    #[must_use]
    pub fn listener(mut self, listener: ListenerConfig) -> Server {
        self.listeners.push(listener);
        self
    }

    /// With these bounds.
    #[must_use]
    pub fn limits(mut self, limits: ServeConfig) -> Server {
        self.limits = limits;
        self
    }

    /// Opens connections so; a handler may do that without, from all addresses and unprivileged ports.
    #[must_use]
    pub fn outgoing(mut self, outgoing: OutgoingConfig) -> Server {
        self.outgoing = outgoing;
        self
    }

    /// On so many lanes, each with a thread of its own.
    #[must_use]
    pub fn lanes(mut self, lanes: u16) -> Server {
        self.lanes = lanes.max(1);
        self
    }

    /// Starts to serve.
    ///
    /// # Errors
    /// [`ServerError`] when something is missing or cannot be opened; interfaces need privileges.
    pub fn start(self) -> Result<RunningServer, ServerError> {
        let attachment = self.device.ok_or(ServerError::NoDevice)?;
        if self.addresses.is_empty() {
            return Err(ServerError::NoAddress);
        }
        let mut rng = StdRng::from_os_rng();
        let draw = || {
            // Only packets from peers arrive, so that keys have them first.
            Steering::new(&HashKey::new(rng.random()), SHARDS, SHARDS, vec![Orientation::Inside])
        };
        let steering = steering_for_connecting(&self.outgoing, &self.listeners, draw)?;
        let steering = Arc::new(steering);
        let pool = match attachment {
            Attachment::Interface(Kind::Xdp, _) => MempoolConfig::umem(BUFFERS),
            _ => MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() },
        };
        let pool = Mempool::new(&pool)?;
        // Administered locally (IEEE 802).
        let [a, b, c, d, e] = rng.random();
        let own_mac = [2, a, b, c, d, e];
        let (device, name, mtu, mac): (Box<dyn Device>, _, _, _) = match attachment {
            Attachment::Cable(end) => {
                (Box::new(end.open("cable", self.lanes)), "cable".to_owned(), CABLE_MTU, own_mac)
            }
            Attachment::Interface(kind, name) => {
                let device = open(kind, &name, self.lanes, &steering, &pool)?;
                let link = InterfaceLink::of(&name)?;
                let mac = match (kind, link.mac) {
                    // The other end of the cable, whose address is that of the interface, is the kernel's.
                    (Kind::Tap, _) => own_mac,
                    (_, Some(mac)) => mac,
                    (_, None) => return Err(ServerError::NotEthernet(name)),
                };
                (device, name, u16::try_from(link.mtu).unwrap_or(u16::MAX), mac)
            }
        };
        let interface =
            Interface { mtu, addresses: self.addresses, ..Interface::new(DeviceId(0), &name, mac) };
        let network = Arc::new(Network::new(vec![interface], &self.routes, Policy::default())?);
        let lanes = usize::from(self.lanes);
        let place = Place {
            listeners: self.listeners,
            limits: self.limits,
            network,
            lanes,
            secret: rng.random(),
        };
        let hasher = FlowHasher::new(rng.random());
        let server = (self.program)(place)?.connecting(steering.clone(), hasher, self.outgoing)?;
        let shards = server.shards(SHARDS, hasher, FragmentConfig::default())?;
        let config = RuntimeConfig {
            polling: Interrupt::polling(SPIN),
            ..RuntimeConfig::new(lanes, pool, steering, hasher)
        };
        let service = |lane| server.service(lane);
        let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards)?;
        let control = server.control();
        control.wake_by(runtime.lane_notifiers());
        Ok(RunningServer { runtime, control })
    }
}

fn open(
    kind: Kind,
    name: &str,
    lanes: u16,
    steering: &Arc<Steering>,
    pool: &Mempool,
) -> Result<Box<dyn Device>, OpenError> {
    let (steering, device) = (steering.clone(), name.to_owned());
    Ok(match kind {
        Kind::Tap => {
            let config = TapConfig::new(name, name, lanes, steering);
            let opened = TapDevice::open(config, pool);
            Box::new(opened.map_err(|source| OpenError::Interface { device, source })?)
        }
        Kind::Packet => {
            let config = PacketConfig::new(name, name, lanes, steering);
            let opened = PacketDevice::open(config, pool);
            Box::new(opened.map_err(|source| OpenError::Interface { device, source })?)
        }
        Kind::Xdp => {
            let config = XdpConfig::new(name, name, lanes, steering);
            let opened = XdpDevice::open(config, pool);
            Box::new(opened.map_err(|source| OpenError::Interface { device, source })?)
        }
    })
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("device", &self.device)
            .field("addresses", &self.addresses)
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

/// Connections to `server`, for threads of this process: both run, at the two ends of a [`cable`]. The server has the address
/// 10.0.0.1, the threads have 10.0.0.2, where they accept connections to `ports`. For tests of services, and for examples.
///
/// # Errors
/// [`ServerError`] when one of them does not start.
pub fn with_client(server: Server, ports: &[u16]) -> Result<(RunningServer, Client), ServerError> {
    let [near, far] = cable();
    let length = 24;
    let own = |last| InterfaceAddress { address: IpAddr::from([10, 0, 0, last]), length };
    let server = server.cable(near).address(own(1)).start()?;
    let sockets = Blocking::new(BlockingConfig::default());
    let client = Server::blocking(&sockets).cable(far).address(own(2));
    let running = ports.iter().fold(client, |client, port| client.listen(*port)).start()?;
    Ok((server, Client { running, sockets }))
}

/// Threads' end of a cable to a service.
#[derive(Debug)]
pub struct Client {
    running: RunningServer,
    sockets: Blocking,
}

impl Client {
    /// Connects to a port of the service.
    ///
    /// # Errors
    /// [`StreamError`] when the service does not accept it.
    pub fn connect(&self, port: u16) -> Result<BlockingStream, StreamError> {
        self.sockets.connect((IpAddr::from([10, 0, 0, 1]), port).into())
    }

    /// Accepts connections that the service opens to one of the client's ports.
    pub fn listen(&self, port: u16) -> BlockingListener {
        self.sockets.listen(port)
    }

    /// Its connections, for other threads.
    pub fn sockets(&self) -> Blocking {
        self.sockets.clone()
    }

    /// Ends it, as [`RunningServer::finish`].
    ///
    /// # Errors
    /// [`StartError`] when a worker never ran.
    pub fn finish(self, drain: Duration) -> Result<RunReport, StartError> {
        self.running.finish(drain)
    }
}

/// A service that runs.
pub struct RunningServer {
    runtime: Runtime,
    control: ServeControl,
}

impl RunningServer {
    /// Looks at the service while it runs, and ends it.
    pub fn control(&self) -> ServeControl {
        self.control.clone()
    }

    /// Ends the service: accepts nothing more, closes what is idle, and resets what is left after `drain`. The report has what did
    /// not hold. A worker whose call of the application has not returned 10 s later is named there, and not waited for.
    ///
    /// # Errors
    /// [`StartError`] when a worker never ran.
    pub fn finish(self, drain: Duration) -> Result<RunReport, StartError> {
        self.control.drain();
        let end = Instant::now() + drain;
        while self.control.connections() > 0 && Instant::now() < end {
            thread::sleep(TICK);
        }
        self.runtime.join_within(WORKERS_TIME)
    }
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningServer").field("control", &self.control).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_an_address_or_an_interface_is_refused_with_the_fix() {
        let [end, _other] = cable();
        let server = Server::new(echo::Echo).cable(end).listen(7);
        let error = server.start().unwrap_err();
        assert!(matches!(error, ServerError::NoAddress), "{error:?}");
        assert!(error.to_string().contains("call `address`"), "{error}");
        let error = Server::new(echo::Echo).listen(7).start().unwrap_err();
        assert!(matches!(error, ServerError::NoDevice), "{error:?}");
    }
}
