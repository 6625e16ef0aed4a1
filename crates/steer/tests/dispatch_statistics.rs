//! How dispatchers spread packets, and what becomes of flows.
//! `cargo test -p rheostat-steer --test steer dispatch_statistics -- --nocapture` prints the table.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rheostat_base::{LaneId, Time};
use rheostat_steer::Dispatch;
use rheostat_steer::dispatch::{self, Arrival, Choice, StatefulQueue};

const LANES: usize = 8;
const PACKETS: usize = 400_000;
const FLOWS: usize = 20_000;

/// Queues of lanes that together process five packets for every four that arrive.
struct Queues {
    backlogs: [u32; LANES],
    next: usize,
}

struct Row {
    /// The lane that processed most packets over the one that processed least.
    max_over_min: f64,
    /// Packets whose predecessor in their flow was processed by another lane.
    missed: f64,
}

impl Queues {
    /// The lane that takes the next packet from a shared queue: one that has least to do, in turn.
    fn free(&mut self) -> usize {
        let turn = |lane: &usize| (self.backlogs[*lane], (lane + LANES - self.next) % LANES);
        let lane = (0..LANES).min_by_key(turn).expect("there are lanes");
        self.next = (lane + 1) % LANES;
        lane
    }

    /// What lanes do, in turn, until the next packet arrives.
    fn work(&mut self, arrival: usize) {
        let done = |arrivals: usize| arrivals * 5 / 4;
        for turn in done(arrival)..done(arrival + 1) {
            let backlog = &mut self.backlogs[turn % LANES];
            *backlog = backlog.saturating_sub(1);
        }
    }
}

/// Places packets by a dispatcher, or by hash as plain RSS does.
fn run(mut dispatch: Option<Box<dyn Dispatch>>) -> Row {
    let mut random = StdRng::seed_from_u64(3);
    let zipf = Zipf::new(FLOWS as f64, 1.0).expect("parameters in range");
    let hashes: Vec<u32> = (0..FLOWS).map(|_| random.random()).collect();
    let mut queues = Queues { backlogs: [0; LANES], next: 0 };
    let mut processed = [0_usize; LANES];
    let mut last: HashMap<usize, usize> = HashMap::new();
    let (mut followed, mut missed) = (0_usize, 0_usize);
    for arrival in 0..PACKETS {
        let flow = zipf.sample(&mut random) as usize - 1;
        let packet = Arrival {
            now: Time::from_nanos(arrival as u64 * 1_000),
            hash: hashes[flow],
            checksum: random.random(),
            connection: !last.contains_key(&flow),
        };
        let choice = match &mut dispatch {
            None => Choice::Lane(LaneId((packet.hash % 128) as u16 % LANES as u16)),
            Some(dispatch) => dispatch.dispatch(&packet, &queues.backlogs),
        };
        let lane = match choice {
            Choice::Lane(lane) | Choice::Via { lane, .. } => lane.index(),
            Choice::Shared => queues.free(),
        };
        processed[lane] += 1;
        queues.backlogs[lane] += 1;
        queues.work(arrival);
        if let Some(before) = last.insert(flow, lane) {
            followed += 1;
            missed += usize::from(before != lane);
        }
    }
    let [most, least] =
        [processed.iter().max(), processed.iter().min()].map(|of| of.expect("lanes"));
    Row {
        max_over_min: *most as f64 / (*least).max(1) as f64,
        missed: missed as f64 / followed as f64,
    }
}

/// Table 1 and Figure 12 of the RSS++ paper in outline: what is fair does not keep flows, and what
/// keeps flows is not fair.
#[test]
fn fairness_and_affinity_exclude_each_other() {
    println!("{PACKETS} packets of {FLOWS} flows (Zipf, exponent 1) on {LANES} lanes");
    println!("                most/least loaded   packets on another lane than the one before");
    let mut rows = HashMap::new();
    for name in ["rss"].into_iter().chain(dispatch::NAMES) {
        let row = run(dispatch::by_name(name).ok());
        println!("{name:<15} {:>18.2} {:>29.1} %", row.max_over_min, 100.0 * row.missed);
        rows.insert(name, row);
    }
    for name in ["spray", "round-robin", "shared-queue"] {
        assert!(rows[name].max_over_min < 1.1, "{name}");
        // 1 − 1/lanes, Table 1.
        assert!((rows[name].missed - (1.0 - 1.0 / LANES as f64)).abs() < 0.05, "{name}");
    }
    for name in ["rss", "stateful-queue"] {
        assert!(rows[name].max_over_min > 1.1, "{name}");
        // A full set of the table of flows now and then lets one go.
        assert!(rows[name].missed < 0.001, "{name}");
    }
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0..200_u32, any::<u16>(), any::<bool>());
    proptest::collection::vec(arrival, 1..300).prop_map(|arrivals| {
        let at = (0..).map(Time::from_millis);
        let arrival =
            |(now, (hash, checksum, connection))| Arrival { now, hash, checksum, connection };
        at.zip(arrivals).map(arrival).collect()
    })
}

proptest! {
    #[test]
    fn every_choice_is_a_lane(
        arrivals in arrivals(),
        backlogs in proptest::collection::vec(0..9_u32, 1..9),
    ) {
        for name in dispatch::NAMES {
            let mut dispatch = dispatch::by_name(name).expect("a dispatcher");
            for packet in &arrivals {
                let lanes = match dispatch.dispatch(packet, &backlogs) {
                    Choice::Lane(lane) => vec![lane],
                    Choice::Via { queue, lane } => vec![queue, lane],
                    Choice::Shared => vec![],
                };
                prop_assert!(lanes.iter().all(|lane| lane.index() < backlogs.len()), "{}", name);
            }
        }
    }

    /// The table against one without bounds, as long as nothing is forgotten.
    #[test]
    fn a_flow_stays_where_its_first_packet_went(
        arrivals in arrivals(),
        backlogs in proptest::collection::vec(proptest::collection::vec(0..9_u32, 5), 300),
    ) {
        let mut dispatch = StatefulQueue::new(1024, Duration::from_secs(1)).expect("a size");
        let mut oracle = HashMap::new();
        for (packet, backlogs) in arrivals.iter().zip(&backlogs) {
            let Choice::Lane(lane) = dispatch.dispatch(packet, backlogs) else {
                return Err(TestCaseError::fail("not a lane"));
            };
            let expected = oracle.entry(packet.hash).or_insert(lane);
            prop_assert_eq!(*expected, lane);
            prop_assert!(lane.index() < 5);
        }
        prop_assert_eq!(dispatch.forgotten(), 0);
    }
}
