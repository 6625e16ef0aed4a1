//! Senders choose addresses and ports, but not where packets go: without the random keys, no sender can aim at one shard, or at
//! one line of a flow table.

use std::net::Ipv4Addr;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_packet::FlowKey;
use rheostat_state::FlowHasher;
use rheostat_steer::{HashKey, Orientation, PacketSet, Steering, Whose};

const SHARDS: usize = 128;
const FLOWS: u32 = 4_096;
const KEYS: u64 = 200;

/// Flows that were chosen.
struct Choice {
    what: &'static str,
    /// Whether each has a source of its own.
    sources: bool,
    flows: Vec<FlowKey>,
}

/// Flows as an attacker might choose them to meet in one place: numbers that count up in one field, in steps, or in several
/// fields at once.
fn chosen() -> Vec<Choice> {
    let key = |client: u32, port: u16, server: u32, to: u16| {
        let client = (Ipv4Addr::from_bits(0x0a00_0000 | client), port);
        FlowKey::v4(client, (Ipv4Addr::from_bits(0xc612_0000 ^ server), to), 6, 0)
    };
    let choice = |what, sources, make: &dyn Fn(u32) -> FlowKey| Choice {
        what,
        sources,
        flows: (0..FLOWS).map(make).collect(),
    };
    let unspecified = (Ipv4Addr::UNSPECIFIED, 0);
    vec![
        // The keys of buckets of a policer.
        choice("nothing but an address", true, &|n| {
            FlowKey::v4((Ipv4Addr::from_bits(n << 10), 0), unspecified, 0, 0)
        }),
        choice("ports that count up", false, &|n| key(1, 1_024 + n as u16, 0, 443)),
        choice("ports in steps of 16", false, &|n| key(1, (n * 16) as u16, 0, 443)),
        choice("addresses that count up", true, &|n| key(n, 40_000, 0, 443)),
        choice("networks that count up", true, &|n| key(n << 12, 40_000, 0, 443)),
        choice("address and port at once", true, &|n| key(n, 40_000 ^ n as u16, 0, 443)),
        choice("servers and ports at once", false, &|n| key(1, n as u16, n, 443)),
    ]
}

/// The most that fall into one of `places`, as a multiple of the mean: the median and the highest over
/// many random keys.
fn concentration(places: usize, mut place: impl FnMut(u64, &mut dyn FnMut(usize))) -> (f64, f64) {
    let mut highest: Vec<f64> = (0..KEYS)
        .map(|seed| {
            let mut counts = vec![0_u32; places];
            place(seed, &mut |at| counts[at] += 1);
            let most = counts.iter().max().copied().unwrap_or(0);
            f64::from(most) * places as f64 / f64::from(FLOWS)
        })
        .collect();
    highest.sort_by(f64::total_cmp);
    (highest[highest.len() / 2], highest[highest.len() - 1])
}

#[test]
fn chosen_flows_fall_into_all_shards() {
    let tuple = PacketSet::five_tuple();
    for (set, name) in
        [(tuple, "connections"), (PacketSet::address(Whose::Source, 32, 128), "sources")]
    {
        // All packets of one source have one bucket, and so one shard.
        let spread = |choice: &Choice| set == tuple || choice.sources;
        for Choice { what, flows, .. } in chosen().into_iter().filter(spread) {
            let (median, highest) = concentration(SHARDS, |seed, count| {
                let key = HashKey::new(StdRng::seed_from_u64(seed).random());
                let orientations = vec![Orientation::Inside];
                let steering = Steering::new(&key, SHARDS, SHARDS, orientations).expect("sizes");
                let steering = steering.with_sets(&set, &set).expect("fields");
                for flow in &flows {
                    let key = steering.orient(rheostat_base::DeviceId(0), *flow).key;
                    count(steering.shard_of_key(&key).index());
                }
            });
            println!(
                "{name}, {what}: fullest of {SHARDS} shards {median:.1} x mean, at worst {highest:.1}"
            );
            assert!(median <= 2.0 && highest <= 16.0, "{name}, {what}: {median} and {highest}");
        }
    }
}

#[test]
fn chosen_flows_fall_into_all_lines_of_a_table() {
    let lines = FLOWS as usize / 8;
    for Choice { what, flows, .. } in chosen() {
        let (median, highest) = concentration(lines, |seed, count| {
            let hasher = FlowHasher::new(StdRng::seed_from_u64(seed).random());
            for flow in &flows {
                // As the table does: the high bits say which line.
                let hash = hasher.hash(flow).0 >> 32;
                count(((hash * lines as u64) >> 32) as usize);
            }
        });
        println!("{what}: fullest of {lines} lines {median:.1} x mean, at worst {highest:.1}");
        assert!(median <= 3.0 && highest <= 8.0, "{what}: {median} and {highest}");
    }
}
