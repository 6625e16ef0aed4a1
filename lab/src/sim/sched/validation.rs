//! The simulation held against what is known about queues, and against small oracles.
//!
//! Figures are means over 20 batches with fixed seeds. How far they may be off follows from how much batches differ: Student's t for a
//! confidence of 99.9 %. So a test that passes once passes always.

use std::time::Duration;

use rheostat_tcp::sched::{Outstanding, Queueing, Scheduler};

use super::costs::{Cost, RequestCosts};
use super::estimate::{BATCHES, Precision, SchedEstimate, run};
use super::inline::Inline;
use super::source::RequestSource;
use super::system::System;
use super::trial::Setting;
use super::workload::Workload;
use crate::noise::Noise;
use crate::sim::queues::deterministic::deterministic_wait;
use crate::sim::queues::model::{markov_wait, pollaczek_khinchine};

/// The 99.95th percentile of Student's t with 19 degrees of freedom, by tables.
const T: f64 = 3.883;
const BATCH: u64 = 50_000;

fn setting<'a>(name: &str, cores: u16, costs: &'a RequestCosts, workload: &str) -> Setting<'a> {
    let scheduler = Scheduler::on_cores(name.parse().unwrap(), cores).unwrap();
    Setting {
        scheduler,
        shares: false,
        costs,
        workload: workload.parse().unwrap(),
        rate: 0.0,
        // So many that two requests of one connection hardly ever meet: theory knows no order of replies.
        connections_each: 1 << 14,
        burst: 1,
        outstanding: Outstanding::ONE,
        spin: None,
        noise: None,
        seed: 7,
    }
}

/// At a load of the bound that workers have.
fn at_load<'a>(setting: Setting<'a>, load: f64) -> Setting<'a> {
    Setting { rate: load * setting.bound(), ..setting }
}

fn simulate(setting: &Setting<'_>) -> SchedEstimate {
    setting.run(&Precision::fixed(BATCH))
}

/// A mean over batches, and by how much it may be off.
fn mean(values: &[f64]) -> (f64, f64) {
    assert_eq!(values.len(), BATCHES);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, T * (squares / (count - 1.0) / count).sqrt())
}

#[track_caller]
fn agrees(what: &str, values: &[f64], exact: f64) {
    let (mean, margin) = mean(values);
    println!("{what}: {mean:.3} ± {margin:.3}, exactly {exact:.3}");
    assert!((mean - exact).abs() <= margin, "{what}: {mean} ± {margin} is not {exact}");
    // An interval that holds everything proves nothing.
    assert!(margin < 0.15 * exact, "{what}: ± {margin} of {exact}");
}

/// The mean wait by batch, in mean service times.
fn waits(setting: &Setting<'_>) -> Vec<f64> {
    let mean = setting.workload.mean_ns();
    simulate(setting).waits.iter().map(|wait| wait / mean).collect()
}

fn pk(workload: &str, load: f64) -> f64 {
    let workload: Workload = workload.parse().unwrap();
    pollaczek_khinchine(load, workload.second_moment() / workload.mean_ns().powi(2))
}

#[test]
fn one_queue_of_exponential_requests_waits_as_erlang_says() {
    let free = RequestCosts::free();
    for (workers, load) in [(2, 0.8), (4, 0.7), (8, 0.9), (32, 0.9)] {
        let setting = at_load(setting("inline-cfcfs", workers, &free, "exponential-10us"), load);
        agrees(&format!("M/M/{workers} {load}"), &waits(&setting), markov_wait(workers, load));
    }
}

#[test]
fn one_queue_of_equal_requests_waits_as_crommelin_says() {
    let free = RequestCosts::free();
    for (workers, load) in [(2, 0.8), (4, 0.9), (8, 0.9)] {
        let setting = at_load(setting("inline-cfcfs", workers, &free, "constant-10us"), load);
        let exact = deterministic_wait(workers, load).unwrap();
        agrees(&format!("M/D/{workers} {load}"), &waits(&setting), exact);
    }
}

#[test]
fn a_queue_for_each_worker_waits_as_pollaczek_and_khinchine_say() {
    let free = RequestCosts::free();
    for (name, workers) in [("inline-dfcfs", 4), ("inline-cfcfs", 1)] {
        for workload in ["exponential-1us", "constant-1us", "bimodal-2"] {
            for load in [0.5, 0.8] {
                let setting = at_load(setting(name, workers, &free, workload), load);
                let what = format!("{name} on {workers}, {workload} {load}");
                agrees(&what, &waits(&setting), pk(workload, load));
            }
        }
    }
}

#[test]
fn members_wait_as_servers_of_the_queueing_model_between_the_stages() {
    let free = RequestCosts::free();
    let erlang = at_load(setting("dispatcher-1:7", 8, &free, "exponential-10us"), 0.8);
    agrees("1:7, M/M/7", &waits(&erlang), markov_wait(7, 0.8));
    let erlang = at_load(setting("dispatcher-2:6", 8, &free, "exponential-10us"), 0.8);
    agrees("2:6, 2 x M/M/3", &waits(&erlang), markov_wait(3, 0.8));
    let separate = at_load(setting("dispatcher-2:6-dfcfs", 8, &free, "bimodal-2"), 0.5);
    agrees("2:6-dfcfs, 6 x M/G/1", &waits(&separate), pk("bimodal-2", 0.5));
}

#[test]
fn thieves_at_no_cost_are_one_queue() {
    let free = RequestCosts::free();
    for name in ["inline-ws", "dispatcher-1:8-ws"] {
        let cores = if name == "inline-ws" { 8 } else { 9 };
        let setting = at_load(setting(name, cores, &free, "exponential-10us"), 0.8);
        // No worker idles while something waits, so as many are in the service as in M/M/8.
        agrees(name, &waits(&setting), markov_wait(8, 0.8));
    }
}

#[test]
fn network_workers_wait_as_servers_of_the_queueing_model_before_them() {
    // 2 us of TCP for each request, and members that are never all busy.
    let thesis = RequestCosts::thesis();
    let costs = RequestCosts {
        tcp_in_ns: Cost::Constant(2_000.0),
        tcp_out_ns: Cost::Constant(0.0),
        handoff_give_k1_ns: Cost::Constant(0.0),
        handoff_take_k1_ns: Cost::Constant(0.0),
        ..thesis.with_lock(0.0)
    };
    let one = pollaczek_khinchine(0.8, 1.0);
    let two = deterministic_wait(2, 0.8).unwrap();
    for (name, exact) in [
        ("dispatcher-1:31", one),
        ("dispatcher-2:30", one),
        ("dispatcher-2:30+receive-cfcfs", two),
        ("dispatcher-2:30-dfcfs+receive-cfcfs", two),
        ("dispatcher-2:30+receive-ws", two),
    ] {
        let setting = at_load(setting(name, 32, &costs, "constant-1us"), 0.8);
        // Taking a reply takes no time, but it waits for the end of the packet before.
        let least = 2_000.0 * (1.0 + exact);
        let (wait, margin) = mean(&simulate(&setting).waits);
        let most = least + 2_000.0;
        println!("{name}: {wait:.0} ± {margin:.0} ns, from {least:.0} to {most:.0}");
        assert!(wait - margin > least && wait + margin < most, "{name}: {wait} ± {margin}");
    }
}

#[test]
fn shared_processors_are_insensitive_to_the_distribution() {
    // M/G/1-PS: a request of length s stays s ÷ (1 - load) on average, whatever the others are.
    let free = RequestCosts::free();
    for workload in ["bimodal-2", "exponential-1us", "constant-1us"] {
        let setting =
            Setting { shares: true, ..at_load(setting("inline-cfcfs", 1, &free, workload), 0.7) };
        let means = simulate(&setting).means;
        let short: Vec<f64> = means.iter().map(|(short, _)| *short).collect();
        agrees(&format!("M/G/1-PS {workload} short"), &short, 1.0 / 0.3);
        if setting.workload.has_classes() {
            let long: Vec<f64> = means.iter().map(|(_, long)| *long).collect();
            agrees(&format!("M/G/1-PS {workload} long"), &long, 100.0 / 0.3);
        }
    }
    // M/M/k-PS has as many in the service as M/M/k.
    let setting = Setting {
        shares: true,
        ..at_load(setting("inline-cfcfs", 4, &free, "exponential-1us"), 0.8)
    };
    agrees("M/M/4-PS", &waits(&setting), markov_wait(4, 0.8));
}

#[test]
fn a_broken_model_is_told_from_the_right_one() {
    let free = RequestCosts::free();
    let off = |setting: &Setting<'_>, exact: f64| {
        let (mean, margin) = mean(&waits(setting));
        (mean - exact).abs() > margin
    };
    let erlang = at_load(setting("inline-cfcfs", 4, &free, "exponential-10us"), 0.72);
    assert!(off(&erlang, markov_wait(4, 0.7)), "another load");
    let separate = at_load(setting("inline-dfcfs", 4, &free, "exponential-10us"), 0.7);
    assert!(off(&separate, markov_wait(4, 0.7)), "queues of their own");
    let burst =
        Setting { burst: 4, ..at_load(setting("inline-cfcfs", 4, &free, "exponential-10us"), 0.9) };
    assert!(off(&burst, markov_wait(4, 0.9)), "bursts");
    let order = Setting {
        connections_each: 1,
        ..at_load(setting("inline-cfcfs", 4, &free, "exponential-10us"), 0.7)
    };
    assert!(off(&order, markov_wait(4, 0.7)), "replies in order");
}

/// The mean time in the service of the first requests by a direct recursion, in nanoseconds: workers that are free at known times, a
/// lock around the queue, and replies in the order of their connection.
fn oracle(setting: &Setting<'_>, requests: u64, lock: u64) -> f64 {
    let mut source =
        RequestSource::new(setting.workload, setting.rate, setting.connections(), setting.seed);
    let mut free = vec![0_u64; usize::from(setting.scheduler.workers())];
    let mut last = vec![0_u64; setting.connections() as usize];
    let (mut lock_free, mut sojourn) = (0, 0.0);
    for _ in 0..requests {
        let arrival = source.take();
        let worker = (0..free.len()).min_by_key(|worker| free[*worker]).unwrap();
        let start = arrival.at.max(free[worker]).max(lock_free);
        lock_free = start + lock;
        free[worker] = lock_free + arrival.service;
        let last = &mut last[arrival.connection as usize];
        *last = free[worker].max(*last);
        sojourn += (*last - arrival.at) as f64 / 1e3;
    }
    sojourn / requests as f64
}

#[test]
fn a_locked_queue_and_replies_in_order_are_those_of_a_direct_recursion() {
    let mut costs = RequestCosts::free();
    for field in [
        &mut costs.queue_lock_free_ns,
        &mut costs.queue_lock_taken_ns,
        &mut costs.queue_lock_contended_ns,
    ] {
        *field = Cost::Constant(700.0);
    }
    for (each, name) in [(1 << 14, "exponential-10us"), (1, "exponential-10us"), (2, "bimodal-2")] {
        let base = setting("inline-cfcfs", 4, &costs, name);
        let setting = Setting { connections_each: each, rate: 0.75 * base.bound(), ..base };
        let requests = 100_000;
        let (mut system, mut source) = (
            Inline::new(&setting),
            RequestSource::new(setting.workload, setting.rate, setting.connections(), setting.seed),
        );
        run(&mut system, &mut source, requests);
        let mean = system.state().meter.sojourn / 1e3 / requests as f64;
        let exact = oracle(&setting, requests, 700_000);
        println!("{name}, {each} connections each: {mean:.3}, by recursion {exact:.3}");
        // The last few requests are others: those that left, and those that came.
        assert!((mean / exact - 1.0).abs() < 1e-3, "{mean} {exact}");
    }
}

/// The mean time in the service of the first requests of one worker by a direct recursion, in nanoseconds: a poll takes what has come
/// when it begins, up to `burst`, replies leave at the end of its last request, and it takes `rest` longer.
fn polls_oracle(
    setting: &Setting<'_>,
    requests: usize,
    (burst, work, rest): (usize, u64, u64),
) -> f64 {
    let mut source =
        RequestSource::new(setting.workload, setting.rate, setting.connections(), setting.seed);
    let arrivals: Vec<_> = (0..requests).map(|_| source.take()).collect();
    let (mut next, mut free, mut sojourn) = (0, 0, 0.0);
    while next < requests {
        let start = arrivals[next].at.max(free);
        let came = arrivals[next..].iter().take(burst).take_while(|arrival| arrival.at <= start);
        let found = &arrivals[next..next + came.count()];
        let end = start + found.iter().map(|arrival| arrival.service + work).sum::<u64>();
        sojourn += found.iter().map(|arrival| (end - arrival.at) as f64 / 1e3).sum::<f64>();
        next += found.len();
        free = end + rest;
    }
    sojourn / requests as f64
}

#[test]
fn polls_that_several_requests_share_are_those_of_a_direct_recursion() {
    let costs = RequestCosts {
        tcp_in_ns: Cost::Constant(500.0),
        flush_ns: Cost::Constant(700.0),
        poll_burst: 4,
        ..RequestCosts::free()
    };
    // Requests are short ones: long ones have their replies leave at once.
    for load in [0.3, 0.8, 0.97] {
        let setting = at_load(setting("inline-dfcfs", 1, &costs, "constant-1us"), load);
        let requests = 100_000;
        let mut system = Inline::new(&setting);
        let mut source =
            RequestSource::new(setting.workload, setting.rate, setting.connections(), setting.seed);
        run(&mut system, &mut source, requests);
        let mean = system.state().meter.sojourn / 1e3 / requests as f64;
        let exact = polls_oracle(&setting, requests as usize, (4, 500_000, 700_000));
        let alone = polls_oracle(&setting, requests as usize, (1, 500_000, 700_000));
        println!("load {load}: {mean:.3}, by recursion {exact:.3}, without sharing {alone:.3}");
        assert!((mean / exact - 1.0).abs() < 1e-3, "{mean} {exact}");
        // Where requests wait, a poll finds several.
        assert!(load < 0.5 || mean < 0.99 * alone, "{mean} {alone}");
    }
}

#[test]
fn polls_are_shared_by_as_many_requests_as_wait() {
    let costs = RequestCosts { flush_ns: Cost::Constant(800.0), ..RequestCosts::free() };
    for (name, cores) in [("inline-dfcfs", 1), ("inline-cfcfs", 1), ("inline-ws", 1)] {
        for (burst, ns) in [(1, 1_800.0), (8, 1_100.0), (32, 1_025.0)] {
            let costs = RequestCosts { poll_burst: burst, ..costs.clone() };
            let capacity = setting(name, cores, &costs, "constant-1us").capacity();
            assert!((capacity * ns / 1e9 - 1.0).abs() < 0.005, "{name}, {burst}: {capacity}");
        }
    }
    // A long request ends the poll of a worker that shares queues.
    let costs = RequestCosts { poll_burst: 32, ..costs };
    let capacity = setting("inline-cfcfs", 1, &costs, "constant-10us").capacity();
    assert!((capacity * 10_800.0 / 1e9 - 1.0).abs() < 0.005, "{capacity}");
}

#[test]
fn a_member_gets_its_next_request_before_the_reply_of_the_last_is_sent() {
    let costs = RequestCosts {
        tcp_out_ns: Cost::Constant(400.0),
        handoff_give_k1_ns: Cost::Constant(100.0),
        handoff_take_k1_ns: Cost::Constant(200.0),
        handoff_latency_ns: Cost::Constant(50.0),
        ..RequestCosts::free()
    };
    let capacity = setting("dispatcher-1:1", 2, &costs, "constant-1us").capacity();
    assert!((capacity * 1_400.0 / 1e9 - 1.0).abs() < 0.005, "{capacity}");
}

#[test]
fn one_network_worker_for_seven_ends_at_400_krps_as_in_the_thesis() {
    let thesis = RequestCosts::thesis();
    for queueing in ["", "-dfcfs", "-ws"] {
        let name = format!("dispatcher-1:7{queueing}");
        let capacity = setting(&name, 8, &thesis, "constant-1us").capacity();
        assert!((capacity / 400e3 - 1.0).abs() < 0.001, "{name}: {capacity}");
    }
    let capacity = setting("dispatcher-2:6", 8, &thesis, "constant-1us").capacity();
    assert!((capacity / 800e3 - 1.0).abs() < 0.001, "2:6: {capacity}");
    // A queue for each worker costs nothing beside TCP and the application.
    let capacity = setting("inline-dfcfs", 8, &thesis, "constant-1us").capacity();
    assert!((capacity / (8.0 / 3e-6) - 1.0).abs() < 0.001, "dfcfs: {capacity}");
}

#[test]
fn a_central_queue_ends_where_its_lock_is_always_held() {
    let costs = RequestCosts::thesis().with_lock(1_000.0);
    let cfcfs = setting("inline-cfcfs", 16, &costs, "constant-1us");
    let capacity = Setting { connections_each: 64, ..cfcfs }.capacity();
    assert!((capacity / 1e6 - 1.0).abs() < 0.01, "{capacity}");
    // So do network workers of a central queue, which could do 2,280 krps.
    let dispatchers = setting("dispatcher-8:8+receive-cfcfs", 16, &costs, "constant-1us");
    let capacity = Setting { connections_each: 64, ..dispatchers }.capacity();
    assert!((capacity / 1e6 - 1.0).abs() < 0.01, "{capacity}");
}

#[test]
fn each_pair_of_models_answers_all_requests_of_few_connections_though_workers_pause() {
    let costs = RequestCosts::thesis().with_lock(100.0);
    let noise = Noise::of_gaps(&vec![100_000; 100], 1_000_000_000, 0);
    for split in ["2:6", "4:4"] {
        for queueing in Queueing::ALL {
            for receiving in Queueing::ALL {
                let (queueing, receiving) = (queueing.name(), receiving.name());
                let name = format!("dispatcher-{split}-{queueing}+receive-{receiving}");
                // Four connections and bursts of four: workers wait for each other most of the time.
                let base = at_load(setting(&name, 8, &costs, "bimodal-1"), 0.2);
                let setting =
                    Setting { connections_each: 1, noise: Some(&noise), burst: 4, ..base };
                let throughput = simulate(&setting).throughput;
                assert!((throughput / setting.rate - 1.0).abs() < 0.02, "{name}: {throughput}");
            }
        }
    }
}

#[test]
fn pauses_and_sleeps_make_requests_slower_and_bursts_save_locks() {
    let thesis = RequestCosts::thesis();
    let of = |setting: Setting<'_>| {
        let waits = simulate(&setting).waits;
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    let base = at_load(setting("dispatcher-2:6", 8, &thesis, "constant-10us"), 0.3);
    let awake = of(base);
    let asleep = of(Setting { spin: Some(Duration::ZERO), ..base });
    // 5 us each before the packet, the application and the reply of most requests.
    assert!(asleep > awake + 10_000.0 && asleep < awake + 17_000.0, "{asleep} {awake}");
    let noise = Noise::of_gaps(&vec![100_000; 1_000], 1_000_000_000, 0);
    let paused = of(Setting { noise: Some(&noise), ..base });
    assert!(paused > awake + 5_000.0, "{paused} {awake}");
    let locked = thesis.with_lock(1_000.0);
    let cfcfs =
        Setting { connections_each: 64, ..setting("inline-cfcfs", 8, &locked, "constant-1us") };
    let in_bursts = Setting { burst: 8, ..cfcfs }.capacity();
    assert!(in_bursts > 1.5 * cfcfs.capacity(), "{in_bursts}");
}
