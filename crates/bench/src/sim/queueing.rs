//! The queueing core held against what is known exactly about queues.
//!
//! Means are taken over independent runs with fixed seeds; how far they may be off follows from how much the runs
//! differ: Student's t for a confidence of 99.9 %. So a test that passes once passes always, and the tolerance is
//! that of the simulation and not a guess.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rheostat_steer::dispatch::SharedQueue;

use super::ledger::Ledger;
use super::machine::{Machine, Placement, Size};
use super::packet::Packet;
use super::pauses::Pauses;
use super::work::{Overhead, Work};

/// The mean time for a packet, in nanoseconds: large, so that whole nanoseconds are fine enough.
const MEAN: f64 = 1e6;
const RUNS: u64 = 20;
const WARM_UP: u64 = 10_000;
const PACKETS: u64 = 50_000;
/// The 99.95th percentile of Student's t with 19 degrees of freedom, by tables.
const T: f64 = 3.883;

/// How long packets take: the inverse of a distribution function.
#[derive(Clone, Copy, Debug)]
enum Time {
    Exponential,
    Deterministic,
    /// Nine in ten take 0.5 means, the others 5.5.
    Bimodal,
}

impl Time {
    /// E[S²] ÷ E[S]².
    fn second_moment(self) -> f64 {
        match self {
            Time::Exponential => 2.0,
            Time::Deterministic => 1.0,
            Time::Bimodal => 0.9 * 0.25 + 0.1 * 5.5 * 5.5,
        }
    }
}

impl Work for Time {
    fn packet(&self, luck: u32, _: usize) -> u64 {
        let rank = (f64::from(luck) + 0.5) / 2_f64.powi(32);
        let means = match self {
            Time::Exponential => -(1.0 - rank).ln(),
            Time::Deterministic => 1.0,
            Time::Bimodal => {
                if rank < 0.9 {
                    0.5
                } else {
                    5.5
                }
            }
        };
        (means * MEAN) as u64
    }

    fn working_set(&self, _: f64) -> usize {
        0
    }

    fn overhead(&self) -> Overhead {
        Overhead::default()
    }
}

/// A queue without a dispatching core.
struct OneQueue(SharedQueue);

impl rheostat_steer::dispatch::Dispatch for OneQueue {
    fn name(&self) -> &'static str {
        "one-queue"
    }

    fn dispatch(
        &mut self,
        packet: &rheostat_steer::dispatch::Arrival,
        backlogs: &[u32],
    ) -> rheostat_steer::dispatch::Choice {
        self.0.dispatch(packet, backlogs)
    }

    fn keeps_flows(&self) -> bool {
        false
    }

    fn in_hardware(&self) -> bool {
        true
    }
}

/// The mean wait in the queue, in mean service times, of Poisson arrivals that keep `lanes` lanes busy for a share
/// `load`: of one run.
fn wait(time: Time, lanes: u16, load: f64, burst: usize, seed: u64) -> f64 {
    let mut random = SmallRng::seed_from_u64(seed);
    let size = Size { burst, ..Size::of(lanes, 1, 1 << 20) };
    let placement = match lanes {
        1 => Placement::Table,
        _ => Placement::Dispatch(Box::new(OneQueue(SharedQueue))),
    };
    let between = MEAN / (load * f64::from(lanes));
    let (mut now, mut arrivals) = (0.0, Vec::new());
    for _ in 0..WARM_UP + PACKETS {
        let gap: f64 = Exp1.sample(&mut random);
        now += gap * between;
        let luck = random.random();
        let at = now as u64;
        arrivals.push(Packet { at, flow: 0, hash: 0, luck, checksum: 0, connection: false });
    }
    let measured = arrivals[WARM_UP as usize].at..u64::MAX;
    let mut machine =
        Machine::new(size, time, placement, |_| Pauses::none(), Ledger::new(measured.clone()));
    let mut service = 0;
    for packet in &arrivals {
        machine.advance(packet.at);
        machine.arrive(packet, packet.at);
        if measured.contains(&packet.at) {
            service += time.packet(packet.luck, 0);
        }
    }
    machine.run_dry(now as u64, 1_000_000_000, u64::MAX / 2);
    let ledger = &machine.ledger;
    assert_eq!((ledger.lost(), ledger.dropped), (0, 0));
    (ledger.waited_ns - service) as f64 / ledger.delivered as f64 / MEAN
}

/// The mean of independent runs, and by how much it may be off.
fn mean_wait(time: Time, lanes: u16, load: f64, burst: usize) -> (f64, f64) {
    let waits: Vec<f64> = (0..RUNS).map(|seed| wait(time, lanes, load, burst, seed)).collect();
    let runs = RUNS as f64;
    let mean = waits.iter().sum::<f64>() / runs;
    let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / (runs - 1.0);
    (mean, T * (variance / runs).sqrt())
}

#[track_caller]
fn agrees(what: &str, (mean, margin): (f64, f64), exact: f64) {
    println!("{what}: {mean:.4} ± {margin:.4}, exactly {exact:.4}");
    assert!((mean - exact).abs() <= margin, "{what}: {mean} ± {margin} is not {exact}");
    // An interval that holds everything proves nothing.
    assert!(margin < 0.1 * exact, "{what}: ± {margin} of {exact}");
}

/// Pollaczek-Khinchine: the mean wait of M/G/1, in mean service times.
fn pollaczek_khinchine(load: f64, second_moment: f64) -> f64 {
    load * second_moment / (2.0 * (1.0 - load))
}

/// Erlang C: the mean wait of M/M/k, in mean service times.
fn erlang_c(lanes: u16, load: f64) -> f64 {
    let offered = load * f64::from(lanes);
    // Erlang B by its recursion, and C from B.
    let blocked = (1..=lanes).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    let waits = blocked / (1.0 - load * (1.0 - blocked));
    waits / (f64::from(lanes) * (1.0 - load))
}

#[test]
fn one_lane_waits_as_pollaczek_and_khinchine_say() {
    for time in [Time::Exponential, Time::Deterministic, Time::Bimodal] {
        for load in [0.5, 0.8] {
            let exact = pollaczek_khinchine(load, time.second_moment());
            agrees(&format!("M/G/1 {time:?} {load}"), mean_wait(time, 1, load, 1), exact);
        }
    }
}

#[test]
fn lanes_with_one_queue_wait_as_erlang_says() {
    for (lanes, load) in [(2, 0.8), (4, 0.7), (16, 0.85)] {
        let exact = erlang_c(lanes, load);
        agrees(&format!("M/M/{lanes} {load}"), mean_wait(Time::Exponential, lanes, load, 1), exact);
    }
}

/// The mean wait of M/D/k, in mean service times, after C. D. Crommelin, "Delay probability formulas when the holding
/// times are constant", P.O. Electrical Engineers' Journal 25 (1932), pages 41-50: with A = k·load arrivals in a
/// service time on average,
/// W = Σ_{i≥1} e^(−iA) [ Σ_{j≥ik} (iA)^j/j! − (k/A) Σ_{j≥ik+1} (iA)^j/j! ].
fn crommelin(lanes: u16, load: f64) -> f64 {
    let k = f64::from(lanes);
    let offered = k * load;
    let mut sum = 0.0;
    for i in 1..2_000_u32 {
        let mean = f64::from(i) * offered;
        let first = u64::from(i) * u64::from(lanes);
        // Poisson probabilities from j = i·k on, by logarithms so that they do not overflow.
        let log_factorial: f64 = (1..=first).map(|j| (j as f64).ln()).sum();
        let mut term = (first as f64 * mean.ln() - mean - log_factorial).exp();
        let (mut from_first, mut behind, mut j) = (0.0, 0.0, first);
        while term > 1e-18 || (j as f64) < mean {
            from_first += term;
            if j > first {
                behind += term;
            }
            j += 1;
            term *= mean / j as f64;
        }
        let part = from_first - behind / load;
        sum += part;
        if part < 1e-12 {
            break;
        }
    }
    sum
}

#[test]
fn lanes_with_one_queue_and_equal_packets_wait_as_crommelin_says() {
    // For one lane the sum is known in closed form.
    for load in [0.5, 0.8] {
        let exact = pollaczek_khinchine(load, 1.0);
        assert!((crommelin(1, load) - exact).abs() < 1e-6, "{}", crommelin(1, load));
    }
    for (lanes, load) in [(2, 0.8), (4, 0.9), (8, 0.9)] {
        let exact = crommelin(lanes, load);
        let simulated = mean_wait(Time::Deterministic, lanes, load, 1);
        agrees(&format!("M/D/{lanes} {load}"), simulated, exact);
    }
}

#[test]
fn a_broken_model_is_told_from_the_right_one() {
    // Packets that leave when their whole burst is done; lanes of another number; work that varies where it
    // should not.
    let off = |(mean, margin): (f64, f64), exact: f64| (mean - exact).abs() > margin;
    let exact = pollaczek_khinchine(0.8, 2.0);
    assert!(off(mean_wait(Time::Exponential, 1, 0.8, 32), exact));
    assert!(off(mean_wait(Time::Deterministic, 1, 0.8, 1), exact));
    assert!(off(mean_wait(Time::Exponential, 4, 0.72, 1), erlang_c(4, 0.7)));
    assert!(off(mean_wait(Time::Deterministic, 4, 0.9, 1), crommelin(5, 0.9)));
}
