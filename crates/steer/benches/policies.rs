//! What a plan costs: the time from a snapshot to a plan, for loads that plain RSS left unbalanced.
//!
//! `cargo bench -p rheostat-steer --bench policies [-- POLICY...]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use rheostat_base::Time;
use rheostat_steer::policy::{self, LoadSnapshot};

#[path = "../tests/load.rs"]
mod load;

const INSTANCES: usize = 100;
/// Each load is planned for so often, and its fastest counts.
const ROUNDS: usize = 20;

fn main() {
    // Cargo passes `--bench` of its own.
    let mut names: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if names.is_empty() {
        names = policy::NAMES.map(str::to_owned).into_iter().filter(|name| name != "rss").collect();
    }
    println!("{INSTANCES} loads per row; microseconds per plan");
    println!("policy          lanes shards   median      p99      max  moves");
    for name in names {
        for (lanes, shards) in [4, 16, 64].into_iter().flat_map(|l| [(l, 128), (l, 512)]) {
            row(&name, lanes, shards);
        }
    }
}

fn row(name: &str, lanes: usize, shards: usize) {
    let loads = (0..INSTANCES).map(|seed| load::zipf_like(seed as u64, lanes, shards));
    let (mut times, counts): (Vec<Duration>, Vec<usize>) =
        loads.map(|load| fastest(name, &load)).unzip();
    times.sort_unstable();
    let micros = |rank: usize| times[rank].as_nanos() as f64 / 1_000.0;
    println!(
        "{name:<15} {lanes:>5} {shards:>6} {:>8.1} {:>8.1} {:>8.1} {:>6.1}",
        micros(INSTANCES / 2),
        micros(INSTANCES * 99 / 100 - 1),
        micros(INSTANCES - 1),
        counts.iter().sum::<usize>() as f64 / INSTANCES as f64,
    );
}

/// The fastest of some plans, and how many moves they make.
fn fastest(name: &str, load: &LoadSnapshot) -> (Duration, usize) {
    let mut policy = policy::by_name(name).expect("a policy; see its error for the names");
    let mut moves = 0;
    let mut plan = || {
        let start = Instant::now();
        let plan = black_box(policy.plan(Time::from_secs(1), black_box(load)));
        let took = start.elapsed();
        moves = plan.moves.len();
        took
    };
    let best = (0..ROUNDS).map(|_| plan()).min().expect("some rounds");
    (best, moves)
}
