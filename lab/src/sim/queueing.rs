//! The queueing core held against what is known exactly about queues.
//!
//! Means are taken over independent runs with fixed seeds; how far they may be off follows from how much the runs
//! differ: Student's t for a confidence of 99.9 %. So a test that passes once passes always, and the tolerance is
//! that of the simulation and not a guess.

use super::queues::deterministic::{deterministic_p99, deterministic_wait};
use super::queues::model::{markov_p99, markov_wait, pollaczek_khinchine};
use super::queues::{QueueSystem, Service, Sojourn, Trial};

const RUNS: u64 = 20;
const WARM_UP: u64 = 10_000;
const PACKETS: u64 = 50_000;
/// The 99.95th percentile of Student's t with 19 degrees of freedom, by tables.
const T: f64 = 3.883;

/// Servers with one queue that take `burst` packets at once.
fn one_queue(service: Service, servers: u16, load: f64, burst: usize) -> Trial {
    let (warm_up, packets) = (WARM_UP, PACKETS);
    Trial { system: QueueSystem::Shared, service, servers, load, burst, warm_up, packets }
}

/// The same with a queue for each server.
fn separate(service: Service, servers: u16, load: f64) -> Trial {
    let all = u64::from(servers);
    Trial {
        system: QueueSystem::Separate,
        warm_up: all * WARM_UP,
        packets: all * PACKETS,
        ..one_queue(service, servers, load, 1)
    }
}

/// The mean over independent runs, and by how much it may be off.
fn mean(trial: &Trial, figure: impl Fn(Sojourn) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (0..RUNS).map(|seed| figure(trial.run(seed))).collect();
    let runs = RUNS as f64;
    let mean = values.iter().sum::<f64>() / runs;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (runs - 1.0);
    (mean, T * (variance / runs).sqrt())
}

fn mean_wait(trial: &Trial) -> (f64, f64) {
    mean(trial, |sojourn| sojourn.wait)
}

#[track_caller]
fn agrees(what: &str, (mean, margin): (f64, f64), exact: f64) {
    println!("{what}: {mean:.4} ± {margin:.4}, exactly {exact:.4}");
    assert!((mean - exact).abs() <= margin, "{what}: {mean} ± {margin} is not {exact}");
    // An interval that holds everything proves nothing.
    assert!(margin < 0.1 * exact, "{what}: ± {margin} of {exact}");
}

#[test]
fn one_lane_waits_as_pollaczek_and_khinchine_say() {
    for service in Service::ALL {
        for load in [0.5, 0.8] {
            let exact = pollaczek_khinchine(load, service.second_moment());
            let simulated = mean_wait(&one_queue(service, 1, load, 1));
            agrees(&format!("M/G/1 {service} {load}"), simulated, exact);
        }
    }
}

#[test]
fn lanes_with_one_queue_wait_as_erlang_says() {
    for (lanes, load) in [(2, 0.8), (4, 0.7), (8, 0.9), (16, 0.85)] {
        let simulated = mean_wait(&one_queue(Service::Markov, lanes, load, 1));
        agrees(&format!("M/M/{lanes} {load}"), simulated, markov_wait(lanes, load));
    }
}

#[test]
fn lanes_with_one_queue_and_equal_packets_wait_as_crommelin_says() {
    for (lanes, load) in [(2, 0.8), (4, 0.9), (8, 0.9)] {
        let simulated = mean_wait(&one_queue(Service::Deterministic, lanes, load, 1));
        agrees(&format!("M/D/{lanes} {load}"), simulated, deterministic_wait(lanes, load).unwrap());
    }
}

#[test]
fn lanes_with_a_queue_each_wait_as_one_lane_alone() {
    for service in Service::ALL {
        for (lanes, load) in [(4, 0.8), (6, 0.5)] {
            let exact = pollaczek_khinchine(load, service.second_moment());
            let simulated = mean_wait(&separate(service, lanes, load));
            agrees(&format!("{lanes} x M/G/1 {service} {load}"), simulated, exact);
        }
    }
}

fn p99(trial: &Trial) -> (f64, f64) {
    mean(trial, |sojourn| sojourn.p99)
}

#[test]
fn one_packet_in_a_hundred_stays_as_long_as_franx_says() {
    for (lanes, load) in [(1, 0.5), (4, 0.8), (8, 0.9)] {
        let simulated = p99(&one_queue(Service::Deterministic, lanes, load, 1));
        let exact = deterministic_p99(lanes, load).unwrap();
        agrees(&format!("M/D/{lanes} {load} p99"), simulated, exact);
    }
    let simulated = p99(&separate(Service::Deterministic, 4, 0.8));
    agrees("4 x M/D/1 0.8 p99", simulated, deterministic_p99(1, 0.8).unwrap());
}

#[test]
fn one_packet_in_a_hundred_stays_as_long_as_erlang_says() {
    for (lanes, load) in [(1, 0.5), (4, 0.5), (4, 0.8), (8, 0.9)] {
        let simulated = p99(&one_queue(Service::Markov, lanes, load, 1));
        agrees(&format!("M/M/{lanes} {load} p99"), simulated, markov_p99(lanes, load));
    }
    let simulated = p99(&separate(Service::Markov, 4, 0.8));
    agrees("4 x M/M/1 0.8 p99", simulated, markov_p99(1, 0.8));
}

#[test]
fn a_broken_model_is_told_from_the_right_one() {
    // Packets that leave when their whole burst is done; lanes of another number; work that varies where it
    // should not; a queue for each lane where there is one for all.
    let off = |(mean, margin): (f64, f64), exact: f64| (mean - exact).abs() > margin;
    let exact = pollaczek_khinchine(0.8, 2.0);
    assert!(off(mean_wait(&one_queue(Service::Markov, 1, 0.8, 32)), exact));
    assert!(off(mean_wait(&one_queue(Service::Deterministic, 1, 0.8, 1)), exact));
    assert!(off(mean_wait(&one_queue(Service::Markov, 4, 0.72, 1)), markov_wait(4, 0.7)));
    let simulated = mean_wait(&one_queue(Service::Deterministic, 4, 0.9, 1));
    assert!(off(simulated, deterministic_wait(5, 0.9).unwrap()));
    assert!(off(mean_wait(&separate(Service::Markov, 4, 0.7)), markov_wait(4, 0.7)));
}
