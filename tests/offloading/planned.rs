//! A policy decides which lanes offload, what leaves, and which shards move, by what lanes have measured: what comes of the run is
//! what one lane makes of it, and no packet of the priority class leaves its lane.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::clock::VirtualClock;
use rheostat_base::{DropReason, LaneId, ShardId, Time};
use rheostat_control::{Balancer, Observation, Progress, Role};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{FlowKey, LinkType};
use rheostat_run::{
    ClassLooks, Classes, Lane, LaneCounters, Migrator, Move, OffloadingService, Service,
};
use rheostat_steer::policy::{Class, LaneCounts, Objectives, Settings, with_settings};
use rheostat_steer::{ClassRule, ClassRules};
use rheostat_testkit::flows::{Flows, difference};
use rheostat_testkit::intercepted::Intercepted;
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{FirewallService, Outcome, Setup, World};
use rheostat_traffic::{Arrival, Mix, MixConfig, Source};

const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
/// What the packets of a lane cost it.
const PACKET: Duration = Duration::from_micros(10);
const HANDOFF: Duration = Duration::from_micros(2);
/// Lanes' worth of work that arrives: two lanes with a shard each have too much of it, and a third could have flows of both.
const DEMAND: f64 = 2.2;
/// Port that makes a packet one of the priority class.
const PORT: u16 = 53;

/// A mix, and thirty exchanges of datagrams that have half of the packets together, the first most of them.
struct Heavy {
    mice: Spliced<Mix>,
    rng: StdRng,
    last: Time,
    /// By exchange, packets so far.
    packets: [u64; 30],
    is_over: bool,
}

impl Heavy {
    fn of(seed: u64, packets: u64) -> Box<dyn Source> {
        let config = MixConfig {
            seed,
            flows: 40,
            packets: Some(packets / 2),
            packets_per_second: 20_000,
            ..MixConfig::default()
        };
        let mice = Spliced::new(Mix::new(config).expect("a mix"));
        let rng = StdRng::seed_from_u64(seed);
        Box::new(Heavy { mice, rng, last: Time::ZERO, packets: [0; 30], is_over: false })
    }
}

impl Source for Heavy {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.is_over {
            return None;
        }
        if self.rng.random_ratio(1, 2) {
            let arrival = self.mice.next(frame);
            self.is_over = arrival.is_none();
            self.last = arrival.as_ref().map_or(self.last, |arrival| arrival.time);
            return arrival;
        }
        // The smaller of two numbers: the first exchange has sixty times the packets of the last.
        let [one, other] = [(); 2].map(|()| self.rng.random_range(0..30_u16));
        let number = one.min(other);
        let packets = &mut self.packets[usize::from(number)];
        *packets += 1;
        let inside = Ipv4Addr::new(10, 200, 0, 1);
        let outside = Ipv4Addr::new(198, 51, 100, 1);
        let (from, to, ports) = match *packets % 2 {
            1 => (inside, outside, (4_000 + number, 9)),
            _ => (outside, inside, (9, 4_000 + number)),
        };
        let built = FrameBuilder::new(
            from.into(),
            to.into(),
            Transport::Udp { ports },
            Payload::Pattern(64),
        );
        *frame = built.with_ethernet(LINK).to_vec();
        let len = frame.len();
        Some(Arrival { time: self.last, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

/// A firewall that counts the priority packets among those of flows of other lanes.
fn watched(inner: FirewallService, strayed: Arc<AtomicU64>) -> impl Service {
    Intercepted::new(inner, move |inner, batch, flows, out| {
        let is_priority = |key: &FlowKey| [key.first_port(), key.second_port()].contains(&PORT);
        let count = batch.iter().filter(|info| is_priority(&info.key())).count();
        strayed.fetch_add(count as u64, Ordering::Relaxed);
        inner.process_offloaded(batch, flows, out);
    })
}

/// A run whose lanes a policy plans for.
struct Planned {
    world: World,
    migrator: Migrator,
    balancer: Balancer,
    looks: ClassLooks,
    clock: VirtualClock,
    strayed: Arc<AtomicU64>,
    /// Lanes' worth of work that arrives.
    demand: f64,
    /// The most flows away and offloading lanes at a time, and how often a lane changed its role.
    away: usize,
    changes: u64,
    roles: Vec<Role>,
}

/// What came of it.
struct Came {
    outcome: Outcome,
    progress: Progress,
    moved: u64,
    strayed: u64,
    away: usize,
    changes: u64,
}

fn rules() -> ClassRules {
    let ports = vec![PORT..=PORT];
    ClassRules::new(vec![ClassRule { ports, ..ClassRule::any("names", Class::Priority) }])
}

impl Planned {
    fn open(setup: Setup, source: Box<dyn Source>, objectives: Objectives, demand: f64) -> Planned {
        let (clock, strayed) = (VirtualClock::new(), Arc::new(AtomicU64::new(0)));
        let classes = Classes { rules: rules(), objectives, clock: Arc::new(clock.clone()) };
        let setup = Setup { plans_offloading: true, classes: Some(Arc::new(classes)), ..setup };
        let watch = |_, inner| watched(inner, strayed.clone());
        let mut world = World::with(&setup, source, watch, |shard| shard);
        let table = world.table();
        let migrator = Migrator::new(&mut world.lanes, vec![table]);
        let settings = Settings {
            objectives,
            offloading: 1,
            min_working_per_offloading: 1,
            ..Settings::default()
        };
        let policy = with_settings("dyssect", &settings).expect("a known name");
        let sizes = (setup.lanes, setup.shards);
        let balancer = Balancer::new(policy, Some(Duration::from_millis(100)), sizes, Time::ZERO);
        let looks = ClassLooks::new(objectives.percentile);
        Planned {
            world,
            migrator,
            balancer,
            looks,
            clock,
            strayed,
            demand,
            away: 0,
            changes: 0,
            roles: vec![Role::Working; setup.lanes],
        }
    }

    /// Steps the controller, which sees lanes that were busy for as long as their packets cost.
    fn control(&mut self) {
        let Planned { world, migrator, balancer, looks, .. } = self;
        let (owners, rewrite) = (migrator.owners().to_vec(), migrator.rewrite());
        let lanes = &world.lanes;
        balancer.step(world.now, migrator, || {
            let figures: Vec<_> = lanes.iter().filter_map(Lane::class_figures).collect();
            let heavy = (0..).map(LaneId).zip(&figures).flat_map(|(lane, figures)| {
                let is_here =
                    |share: &rheostat_run::HeavyShare| owners[share.shard.index()] == lane;
                figures.heavy().into_iter().filter(is_here).collect::<Vec<_>>()
            });
            Observation {
                counts: lanes.iter().map(counts).collect(),
                heavy: heavy.collect(),
                classes: looks.take(&figures),
                rewrite,
            }
        });
        let roles = self.balancer.progress().roles;
        self.changes +=
            roles.iter().zip(&self.roles).filter(|(new, old)| new != old).count() as u64;
        self.roles = roles;
    }

    /// Moves a shard to another working lane, behind the controller's back: it has to see to it.
    fn meddle(&mut self, rng: &mut StdRng) {
        let shard = ShardId(rng.random_range(0..self.migrator.owners().len() as u16));
        let to = rng.random_range(0..self.roles.len());
        let (from, to) = (self.migrator.owners()[shard.index()], LaneId(to as u16));
        if self.migrator.is_idle() && from != to && self.roles[to.index()] == Role::Working {
            let moves = [Move { shard, from, to }];
            self.migrator.start(&moves, self.world.now).expect("a plan with the owners");
        }
    }

    /// Runs to the end of the source: each lane is polled now and then, and time passes as packets come.
    fn run(mut self, seed: u64) -> Came {
        let mut rng = StdRng::seed_from_u64(seed);
        loop {
            let delivered = self.world.deliver();
            let mut polled = 0;
            for lane in 0..self.world.lanes.len() {
                if rng.random_ratio(2, 3) {
                    polled += self.world.poll(lane);
                }
            }
            self.control();
            if rng.random_ratio(1, 10_000) {
                self.meddle(&mut rng);
            }
            let away = self.world.lanes.iter().map(Lane::flows_away).sum();
            self.away = self.away.max(away);
            let took = PACKET.mul_f64(delivered.max(1) as f64 / self.demand);
            self.world.now += took;
            self.clock.advance_to(self.world.now);
            let is_over = delivered + polled == 0 && self.world.next_arrival().is_none();
            if is_over && self.world.lanes.iter().all(|lane| lane.handoff_waiting() == 0) {
                break;
            }
        }
        while !self.migrator.is_idle() {
            self.world.deliver();
            self.migrator.step(self.world.now);
            (0..self.world.lanes.len()).for_each(|lane| {
                self.world.poll(lane);
            });
        }
        Came {
            progress: self.balancer.progress(),
            moved: self.migrator.moved(),
            strayed: self.strayed.load(Ordering::Relaxed),
            away: self.away,
            changes: self.changes,
            outcome: self.world.finish(),
        }
    }
}

fn counts(lane: &Lane) -> LaneCounts {
    let kept = |own: Vec<u64>, away: Vec<u64>| {
        own.iter().zip(away).map(|(own, away)| own - away).collect()
    };
    let (own, away, guests) = (lane.loads(), lane.away_loads(), lane.guest_loads());
    let counters: Arc<LaneCounters> = lane.counters();
    let shards: Vec<u64> = kept(own.packets(), away.packets());
    let (offloaded, other) = (guests.packets(), counters.handoff_out.get());
    let processed: u64 = shards.iter().chain(&offloaded).sum();
    let busy = PACKET * processed as u32 + HANDOFF * other as u32;
    LaneCounts {
        busy_ns: busy.as_nanos() as u64,
        bytes: kept(own.bytes(), away.bytes()),
        shards,
        offloaded,
        other,
    }
}

/// Two shards, each of which is nearly too heavy for a lane.
fn setup() -> Setup {
    Setup { shards: 2, flows: 65_536, half_open: 65_536, ..Setup::lossless(3) }
}

#[test]
fn shards_move_and_flows_leave_as_a_policy_plans_and_nothing_else_changes() {
    for seed in [1, 2] {
        let one = World::open(&Setup { lanes: 1, ..setup() }, Heavy::of(seed, 250_000));
        let one = one.run();
        let came =
            Planned::open(setup(), Heavy::of(seed, 250_000), Objectives::NONE, DEMAND).run(seed);
        let many = &came.outcome;
        assert_eq!(many.violations, [], "seed {seed}");
        if let Some(difference) = difference(&one, many, LinkType::Ethernet) {
            panic!("seed {seed}: {difference}: {:?} {:?}", one.sum.dropped, many.sum.dropped);
        }
        let link = LinkType::Ethernet;
        assert_eq!(Flows::overtaken(&many.packets, link), Flows::overtaken(&one.packets, link));
        let sum = &many.sum;
        assert!(
            came.moved > 0 && sum.flows_offloaded > 10 && sum.offloaded > 500,
            "seed {seed}: {} moved, {} flows left, {} packets; {:?}",
            came.moved,
            sum.flows_offloaded,
            sum.offloaded,
            came.progress
        );
        assert_eq!(came.strayed, 0, "priority packets that left their lane");
        assert!(came.progress.roles.contains(&Role::Offloading), "{:?}", came.progress);
    }
}

#[test]
fn objectives_that_nobody_can_meet_are_named_and_do_not_make_lanes_restless() {
    let objectives = Objectives::waiting(Duration::from_nanos(1), Duration::from_nanos(2));
    let came = Planned::open(setup(), Heavy::of(4, 100_000), objectives, DEMAND).run(4);
    assert_eq!(came.outcome.violations, []);
    let why = came.progress.why.join("; ");
    assert!(why.contains("objective"), "{why}");
    // 100 ms are 21,000 packets, so there were no more than five plans or so, and each shard moves once per plan at most.
    assert!(came.moved <= 2 * came.progress.plans && came.changes <= 2 * came.progress.plans);
    assert_eq!(came.strayed, 0);
}

#[test]
fn rings_of_one_and_little_room_to_hold_packets_lose_only_what_is_counted() {
    let setup = Setup { handoff: 1, ..setup() };
    let came = Planned::open(setup, Heavy::of(5, 250_000), Objectives::NONE, DEMAND).run(5);
    assert_eq!(came.outcome.violations, []);
    let sum = &came.outcome.sum;
    let lost =
        [DropReason::HandoffFull, DropReason::HoldFull].map(|reason| sum.dropped[reason as usize]);
    assert!(
        lost[0] > 0 && sum.flows_offloaded > 0 && came.away > 0,
        "{lost:?} {}",
        sum.flows_offloaded
    );
    assert_eq!((sum.reordered, sum.flows_away, sum.on_hold), (0, 0, 0));
    assert_eq!(came.strayed, 0);
}
