//! What the longest prefix match costs: tables of different sizes, asked for addresses that their routes
//! contain, uniformly, so that a table that does not fit into a cache shows it. Each answer decides nothing
//! about the next question, as with packets of a burst. The first row is the loop without a table.
//!
//! `cargo bench -p rheostat-ip --bench routes [-- ROUTES...]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use rheostat_ip::route::{Address, DirectTable, Lpm};

const ROUNDS: usize = 20;
const QUESTIONS: usize = 1 << 18;

/// The lengths of the prefixes of the global table of IPv4, in per mille, roughly as route collectors have
/// seen it since 2020.
const LENGTHS_V4: [(u8, u16); 12] = [
    (24, 600),
    (22, 120),
    (23, 100),
    (20, 45),
    (21, 50),
    (19, 28),
    (18, 15),
    (16, 14),
    (17, 9),
    (14, 8),
    (12, 6),
    (32, 5),
];
/// Likewise for IPv6.
const LENGTHS_V6: [(u8, u16); 6] = [(48, 480), (32, 150), (44, 120), (40, 110), (36, 80), (64, 60)];

fn main() {
    let mut sizes: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1, 1_000, 100_000, 1_000_000];
    }
    let questions: Vec<u32> = (0..QUESTIONS as u64).map(|n| mix(n) as u32).collect();
    let alone = measure(|| questions.iter().fold(0, |sum, q| sum ^ black_box(*q) as u16));
    println!("{:<12} {:>9} {:>8.2} ns", "loop alone", "", alone);
    for count in sizes {
        let v4 = entries::<u32>(count, &LENGTHS_V4, |n| mix(n) as u32 & 0xdfff_ffff);
        row::<u32, Lpm<u32>>("IPv4 trie", count, v4.clone(), |n| mix(n) as u32);
        row::<u32, DirectTable>("IPv4", count, v4, |n| mix(n) as u32);
        if count <= 200_000 {
            let address = |n| 0x2 << 124 | u128::from(mix(n) >> 3) << 61;
            let entries = entries::<u128>(count, &LENGTHS_V6, address);
            row::<u128, Lpm<u128>>("IPv6", count, entries, address);
        }
    }
}

/// A table of either kind.
trait Table<A> {
    fn of(entries: Vec<(A, u8, u16)>) -> Self;
    fn find(&self, address: A) -> u16;
    fn bytes(&self) -> usize;
}

impl<A: Address> Table<A> for Lpm<A> {
    fn of(entries: Vec<(A, u8, u16)>) -> Lpm<A> {
        Lpm::new(entries)
    }

    #[inline(always)]
    fn find(&self, address: A) -> u16 {
        self.lookup(address)
    }

    fn bytes(&self) -> usize {
        self.memory()
    }
}

impl Table<u32> for DirectTable {
    fn of(entries: Vec<(u32, u8, u16)>) -> DirectTable {
        DirectTable::new(entries, None)
    }

    #[inline(always)]
    fn find(&self, address: u32) -> u16 {
        self.lookup(address)
    }

    fn bytes(&self) -> usize {
        self.memory()
    }
}

fn row<A: Address, T: Table<A>>(
    name: &str,
    count: u64,
    entries: Vec<(A, u8, u16)>,
    other: impl Fn(u64) -> A,
) {
    // Half of the questions are for what the routes contain, half for anything.
    let questions: Vec<A> = (0..QUESTIONS as u64)
        .map(|n| match n % 2 {
            0 => entries[(mix(n) % count) as usize].0,
            _ => other(mix(n) % count.max(4_096)),
        })
        .collect();
    let start = Instant::now();
    let table = T::of(entries);
    let built = start.elapsed();
    let ns = measure(|| questions.iter().fold(0, |sum, q| sum ^ table.find(*q)));
    println!(
        "{name:<12} {count:>9} {ns:>8.2} ns {:>9} KiB, built in {:.1} ms",
        table.bytes() / 1_024,
        built.as_secs_f64() * 1e3
    );
}

/// So many routes of lengths as they are.
fn entries<A: Address>(
    count: u64,
    lengths: &[(u8, u16)],
    address: impl Fn(u64) -> A,
) -> Vec<(A, u8, u16)> {
    let length = |n: u64| {
        let mut drawn = (mix(n ^ 0x5555) % 1_000) as u16;
        let fits = |(_, share): &&(u8, u16)| {
            let fits = drawn < *share;
            drawn = drawn.saturating_sub(*share);
            fits
        };
        lengths.iter().find(fits).map_or(lengths[0].0, |(length, _)| *length)
    };
    (0..count).map(|n| (address(n), length(n), (mix(n) >> 40) as u16 % 64 + 1)).collect()
}

/// The best of some rounds, in nanoseconds per question.
fn measure(mut run: impl FnMut() -> u16) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(run());
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / QUESTIONS as f64
}

/// A number for each number (SplitMix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
