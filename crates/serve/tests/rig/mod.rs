//! Lanes with a service, and clients at the other end of a cable that loses nothing. Nothing happens but when it is called for.

mod around;
mod client;
mod lines;
mod members;
mod router;
mod seeds;

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{ClockSource, DeviceId, LaneId, ShardId, Time, VirtualClock};
use rheostat_capture::{Epoch, Mirrors};
use rheostat_io::{Device, HeldEnd, ImpairConfig, cable, impair};
use rheostat_ip::{Interface, Network, Policy};
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{Lane, LaneSample, Migrator, Move, PoolQueueing, RuntimeConfig, Sharing};
use rheostat_serve::{
    Application, Handler, ListenerConfig, OutgoingConfig, ServeConfig, ServeControl, ServeError,
    TcpServer, TimesConfig,
};
use rheostat_state::{FlowHasher, FragmentConfig};
use rheostat_steer::{HashKey, Orientation, Steering};

pub(crate) use around::Around;
pub(crate) use client::Client;
pub(crate) use lines::parse_line;
pub(crate) use members::{Members, QUEUEING, RunningMembers};
pub(crate) use router::{Router, report};
pub(crate) use seeds::seeds;

pub(crate) const SHARDS: usize = 16;
pub(crate) const PORT: u16 = 80;
pub(crate) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const LOCAL_V4: &str = "10.0.0.1";
/// A second address.
pub(crate) const OTHER_V4: &str = "10.0.0.77";
pub(crate) const LOCAL_V6: &str = "fd00::1";
const BUFFERS: u32 = 16_384;
/// How long a step takes, and a segment in each direction.
const STEP: Duration = Duration::from_micros(500);

/// Lanes, a service and a cable.
pub(crate) struct Rig {
    pub(crate) now: Time,
    lanes: Vec<Lane>,
    devices: Vec<Box<dyn Device>>,
    /// The clients' end of the cable.
    end: HeldEnd,
    migrator: Migrator,
    pool: Mempool,
    pub(crate) control: ServeControl,
    /// Frames that the service has sent and no client has taken.
    pub(crate) stray: Vec<Vec<u8>>,
    pub(crate) vlan: Option<u16>,
    /// The port of peers at which connections of the service are accepted.
    pub(crate) accepting: Option<u16>,
    /// Bytes that these peers take and do not read, at most.
    pub(crate) window: usize,
    /// The peers' ends of those connections.
    pub(crate) peers: Vec<Client>,
    /// What stands between the service and the clients.
    pub(crate) router: Router,
    pub(crate) mirrors: Arc<Mirrors>,
    clock: Arc<VirtualClock>,
    members: Option<RunningMembers>,
    /// Which lane is polled next, where lanes share queues.
    turns: Option<Turns>,
}

/// A sequence of lanes, by a seed.
struct Turns(u64);

impl Turns {
    fn next(&mut self, lanes: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % lanes
    }
}

/// What a rig is made of besides.
pub(crate) struct Plan {
    pub(crate) lanes: usize,
    pub(crate) limits: ServeConfig,
    pub(crate) listener: ListenerConfig,
    pub(crate) vlan: Option<u16>,
    pub(crate) mtu: u16,
    pub(crate) policy: Policy,
    /// What stands around each lane's service and transmit queue.
    pub(crate) around: Around,
    /// Whether requests are handled apart from their connections.
    pub(crate) apart: bool,
    /// What requests are timed by.
    pub(crate) times: Option<TimesConfig>,
    /// Who handles requests in place of the lanes.
    pub(crate) members: Option<Members>,
    /// How lanes share receive queues, if they do. Then a seed decides which of them is polled next.
    pub(crate) sharing: Option<Sharing>,
    pub(crate) seed: u64,
    /// What the network before the device does to packets.
    pub(crate) faults: Option<ImpairConfig>,
}

impl Default for Plan {
    fn default() -> Plan {
        let (limits, listener) = (ServeConfig::default(), ListenerConfig::new(PORT));
        let policy = Policy { announce: false, ..Policy::default() };
        Plan {
            lanes: 2,
            limits,
            listener,
            vlan: None,
            mtu: 1_500,
            policy,
            around: Around::default(),
            apart: false,
            times: None,
            members: None,
            sharing: None,
            seed: 1,
            faults: None,
        }
    }
}

/// Lanes of a central queue, as under `inline-cfcfs`.
pub(crate) fn central() -> Plan {
    Plan { apart: true, sharing: Some(Sharing::CENTRAL), ..Plan::default() }
}

/// Lanes that steal, as under `inline-ws`.
pub(crate) fn stealing() -> Plan {
    Plan { apart: true, sharing: Some(Sharing::STEALING), ..Plan::default() }
}

/// Lanes that share connections, and members that handle the requests, as under `dispatcher-D:A+receive-cfcfs`.
pub(crate) fn shared_dispatchers(sharing: Sharing, members: Members) -> Plan {
    Plan { sharing: Some(sharing), members: Some(members), ..Plan::default() }
}

/// Tests with requests that are handled in the turn of their connection, with requests that are handled apart, with those that
/// members of a pool handle, however they wait, with lanes that share connections, and with both.
pub(crate) fn each_way(test: impl Fn(&dyn Fn() -> Plan)) {
    test(&Plan::default);
    test(&|| Plan { apart: true, ..Plan::default() });
    for queueing in members::QUEUEING {
        let members = Members { queueing, ..Members::default() };
        test(&|| Plan { members: Some(members), ..Plan::default() });
    }
    test(&central);
    test(&stealing);
    for (sharing, queueing) in [
        (Sharing::CENTRAL, PoolQueueing::default()),
        (Sharing::STEALING, PoolQueueing::Stealing { burst: 4 }),
    ] {
        let members = Members { queueing, ..Members::default() };
        test(&|| shared_dispatchers(sharing, members));
    }
}

impl Rig {
    pub(crate) fn new(app: impl Application, plan: Plan) -> Rig {
        let (apart, times) = (plan.apart, plan.times.clone());
        Rig::with(plan, |listener, limits, network, lanes, _, _| {
            let server = TcpServer::new(app, vec![listener], limits, network, lanes, &[7; 16])?;
            let server = if apart { server.handling_apart() } else { server };
            Ok(match times {
                Some(times) => server.timing(times),
                None => server,
            })
        })
    }

    /// With a handler of events, which may connect.
    pub(crate) fn with_handler(handler: impl Handler, outgoing: OutgoingConfig, plan: Plan) -> Rig {
        Rig::with(plan, |listener, limits, network, lanes, steering, hasher| {
            let listeners = vec![listener];
            TcpServer::with_handler(handler, listeners, limits, network, lanes, &[7; 16])?
                .connecting(steering, hasher, outgoing)
        })
    }

    fn with(
        plan: Plan,
        make: impl FnOnce(
            ListenerConfig,
            ServeConfig,
            Arc<Network>,
            usize,
            Arc<Steering>,
            FlowHasher,
        ) -> Result<TcpServer, ServeError>,
    ) -> Rig {
        let Plan { lanes, limits, listener, vlan, mtu, policy, around, members, faults, .. } = plan;
        let (sharing, seed) = (plan.sharing, plan.seed);
        let pool = Mempool::new(&MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() });
        let pool = pool.expect("memory");
        let orientations = vec![Orientation::Inside];
        let steering = Steering::new(&HashKey::MICROSOFT, SHARDS, SHARDS, orientations);
        let steering = Arc::new(steering.expect("sizes fit"));
        let addresses =
            [format!("{LOCAL_V4}/24"), format!("{LOCAL_V6}/64"), format!("{OTHER_V4}/24")];
        let addresses = addresses.iter().map(|address| address.parse().expect("an address"));
        let interface = Interface {
            addresses: addresses.collect(),
            is_played: true,
            vlan,
            mtu,
            ..Interface::new(DeviceId(0), "cable", MAC)
        };
        let network = Arc::new(Network::new(vec![interface], &[], policy).expect("a network"));
        let hasher = FlowHasher::fixed();
        let server = make(listener, limits, network, lanes, steering.clone(), hasher);
        let server = server.expect("a service");
        let shards = server.shards(SHARDS, hasher, FragmentConfig::default()).expect("memory");
        let config =
            RuntimeConfig { sharing, ..RuntimeConfig::new(lanes, pool.clone(), steering, hasher) };
        let [near, far] = cable();
        let clock = Arc::new(VirtualClock::new());
        let device = around.device(far.open("cable", lanes as u16));
        let device: Box<dyn Device> = match &faults {
            Some(faults) => {
                let clock: Arc<dyn ClockSource> = clock.clone();
                Box::new(impair(device, faults, &pool, &clock).0)
            }
            None => device,
        };
        let members = members.map(|members| members.start(&server, lanes));
        let mut devices: Vec<Box<dyn Device>> = vec![device];
        let mut lanes = build_lanes(
            &config,
            &mut devices,
            |lane| (around.service)(server.service(lane)),
            shards,
        )
        .expect("lanes");
        let migrator = Migrator::new(&mut lanes, Vec::new());
        let mirrors = Mirrors::new(lanes.len(), clock.clone(), Epoch::Clock(0));
        for lane in &mut lanes {
            lane.mirror_to(Mirrors::of_lane(&mirrors, lane.id()));
        }
        Rig {
            now: Time::from_secs(1),
            lanes,
            devices,
            end: near.hold(),
            migrator,
            pool,
            control: server.control(),
            stray: Vec::new(),
            vlan,
            accepting: None,
            window: 256 << 10,
            peers: Vec::new(),
            router: Router::default(),
            mirrors,
            clock,
            members,
            turns: sharing.map(|_| Turns(seed)),
        }
    }

    /// The members of the pool.
    pub(crate) fn members(&mut self) -> &mut RunningMembers {
        self.members.as_mut().expect("the plan has members")
    }

    /// The lane that has a shard.
    pub(crate) fn owner(&self, shard: u16) -> u16 {
        self.migrator.owners()[usize::from(shard)].0
    }

    /// A client with this port, which begins to connect.
    pub(crate) fn connect(&mut self, port: u16) -> Client {
        Client::connect(LOCAL_V4, "10.0.0.2", port, self.vlan, self.now)
    }

    /// Delivers a frame to the queue that it is hashed to.
    pub(crate) fn inject(&mut self, frame: Vec<u8>, queue: usize) {
        self.end.send(queue, frame).expect("the cable has room");
    }

    /// Lets half a millisecond pass: what clients have to send arrives, lanes work, what they send arrives.
    pub(crate) fn step(&mut self, clients: &mut [Client]) {
        self.now += STEP;
        let now = self.now;
        self.clock.advance_to(now);
        for client in &mut *clients {
            client.tick(now);
            while let Some(frame) = client.poll_frame(now) {
                self.inject(frame, client.port().into());
            }
        }
        let mut peers = std::mem::take(&mut self.peers);
        for peer in &mut peers {
            peer.tick(now);
            while let Some(frame) = peer.poll_frame(now) {
                self.inject(frame, peer.port().into());
            }
        }
        self.poll();
        for frame in self.end.receive() {
            if let Some(report) = self.router.refuse(&frame) {
                self.inject(report, 0);
                continue;
            }
            let mut ends = clients.iter_mut().chain(&mut peers);
            if ends.any(|end| end.take(&frame, now)) {
                continue;
            }
            let accepted = self
                .accepting
                .and_then(|port| Client::accept(&frame, port, self.vlan, self.window, now));
            match accepted {
                Some(peer) => peers.push(peer),
                None => self.stray.push(frame),
            }
        }
        self.peers = peers;
    }

    /// Polls lanes that share queues in an order by the seed, until each has found nothing twice. Members work between polls.
    fn poll_in_turns(&mut self) {
        let (now, Some(turns)) = (self.now, &mut self.turns) else { return };
        let mut idle = vec![0; self.lanes.len()];
        while idle.iter().any(|polls| *polls < 2) {
            if let Some(members) = &mut self.members {
                members.work_between_polls();
            }
            let lane = turns.next(idle.len());
            match self.lanes[lane].poll(now).packets {
                0 => idle[lane] += 1,
                _ => idle.fill(0),
            }
        }
    }

    fn poll(&mut self) {
        if self.turns.is_some() {
            return self.poll_in_turns();
        }
        let now = self.now;
        for _ in 0..3 {
            self.migrator.step(now);
            self.lanes.iter_mut().for_each(|lane| {
                lane.poll(now);
            });
            if let Some(members) = &mut self.members {
                members.work();
            }
        }
    }

    /// Steps until `is_done`, for `limit` of virtual time at most.
    pub(crate) fn run_until(
        &mut self,
        clients: &mut [Client],
        limit: Duration,
        mut is_done: impl FnMut(&mut [Client]) -> bool,
    ) {
        let end = self.now + limit;
        while !is_done(clients) {
            assert!(self.now < end, "not done after {limit:?}");
            self.step(clients);
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, clients: &mut [Client], time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step(clients);
        }
    }

    /// Moves a shard to another lane, if it is not moving.
    pub(crate) fn move_shard(&mut self, shard: u16, to: u16) -> bool {
        let (shard, to) = (ShardId(shard), LaneId(to));
        let from = self.migrator.owners()[shard.index()];
        let may = from != to && !self.migrator.is_moving(shard);
        may && self.migrator.start(&[Move { shard, from, to }], self.now).is_ok()
    }

    /// Takes a lane out, to be polled on a thread of its own.
    pub(crate) fn take_lane(&mut self, place: usize) -> Lane {
        self.lanes.remove(place)
    }

    /// Puts a lane back.
    pub(crate) fn put_lane(&mut self, place: usize, lane: Lane) {
        self.lanes.insert(place, lane);
    }

    /// The lanes' counters together.
    pub(crate) fn sample(&self) -> LaneSample {
        let samples: Vec<_> = self.lanes.iter().map(|lane| lane.counters().sample()).collect();
        LaneSample::sum(&samples)
    }

    /// Takes the members out, to be stopped when the run has ended.
    pub(crate) fn take_members(&mut self) -> RunningMembers {
        self.members.take().expect("the plan has members")
    }

    /// Ends the run, and returns the frames sent last. Every packet is accounted for, and nothing is left of connections.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        for _ in 0..100 {
            self.poll();
        }
        assert!(self.migrator.is_idle(), "shards have arrived");
        run_dry(&mut self.lanes, self.now);
        let counters: Vec<_> =
            self.devices.iter().map(|device| device.monitor().counters()).collect();
        let found = remains(&self.lanes, &counters, SHARDS);
        drop((self.lanes, self.devices));
        let (buffers, buffers_home) = (self.pool.capacity(), self.pool.available());
        let violations = Remains { buffers, buffers_home, ..found }.check();
        assert_eq!(violations, [], "every packet is accounted for");
        let left = (self.control.connections(), self.control.memory());
        assert_eq!(left, (0, 0), "places and memory are given back");
        let mut sent: Vec<_> = self.stray;
        sent.extend(self.end.receive());
        sent
    }
}
