//! What a new flow costs while a share of a NAT shard's ports is in use: the search for an external endpoint, by the
//! allocator that the function's `first` calls (`Nat::bind`), and the flow's entry in the table by both its keys. Parsing,
//! rewriting and sending of the packet are not in it. All flows go to one remote endpoint, so with either mapping they
//! compete for the same ports; all are answered, so no port is taken from a host.
//!
//! Before each window, flows end at random, untimed, until as many ports are free as the window takes; then the window's
//! flows are opened. So occupancy reaches the row's share with the last of them. Metrics are nanoseconds per new flow,
//! over windows; the rows at 0 % are to be read beside the others. With 128 shards a shard has about 504 ports.
//!
//! `cargo bench -p rheostat-nf --bench ports [-- WINDOWS]`

#![allow(clippy::disallowed_methods, reason = "functions read no clock; what measures them does")]

use std::time::Instant;

use rheostat_functions::nat::{Mapping, Occupancy};

/// Windows of each row.
const WINDOWS: usize = 20_000;
/// The most flows of one.
const WINDOW: usize = 32;

fn main() {
    // Cargo passes `--bench` of its own.
    let windows = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(WINDOWS);
    println!("{windows} windows per row; nanoseconds per new flow");
    println!("mapping                     shards  ports  in use  window   median      p99");
    for (name, mapping) in [
        ("endpoint-independent", Mapping::EndpointIndependent),
        ("address-and-port-dependent", Mapping::AddressAndPortDependent),
    ] {
        for shards in [1, 128] {
            let mut shard = Occupancy::new(mapping, shards);
            for per_cent in [0, 50, 95, 99] {
                row(&mut shard, (name, shards), per_cent, windows);
            }
        }
    }
}

fn row(shard: &mut Occupancy, (name, shards): (&str, usize), per_cent: usize, windows: usize) {
    let ports = shard.ports();
    // Less than 1 % of the ports, so that a row stays at its share.
    let window = (ports / 128).clamp(1, WINDOW);
    let most = (ports * per_cent / 100).max(window);
    let mut flows = Vec::with_capacity(window);
    while shard.flows() < most {
        let flow = shard.new_flow();
        assert!(shard.open(&flow), "a port is free");
        shard.answer(0);
    }
    let mut times: Vec<f64> = (0..windows)
        .map(|_| {
            flows.clear();
            for _ in 0..window {
                flows.push(shard.new_flow());
                shard.end_one();
            }
            let start = Instant::now();
            let found = flows.iter().filter(|flow| shard.open(flow)).count();
            let took = start.elapsed();
            assert_eq!(found, window, "a port is free for each");
            (0..window).for_each(|back| shard.answer(back));
            took.as_nanos() as f64 / window as f64
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    println!(
        "{name:<27} {shards:>6} {ports:>6} {per_cent:>6} % {window:>7} {:>8.0} {:>8.0}",
        at(50),
        at(99)
    );
}
