//! How steering and filter are told to the programs: constants set before they are loaded, and the
//! contents of maps. The names are those of `crates/io/bpf/settings.h` and `filter.h`.

use std::net::IpAddr;

use aya::EbpfLoader;
use aya::maps::lpm_trie::Key;
use rheostat_capture::filter::{Endpoints, Filter, FilterError, Match};
use rheostat_packet::{Family, HashKind};
use rheostat_steer::{HashOptions, INPUT_BYTES, Orientation, Prefix, PrefixList, Steering, Whose};

use super::program_config::ProgramConfig;

/// Words of the longest input of the hash.
const INPUT_WORDS: usize = INPUT_BYTES / 4;

/// `struct match`: what counts, ethertype, protocol, port, version, four words of address, of mask.
type RawMatch = [u32; 13];

/// `struct endpoint_address`: version, four words of address.
type RawAddress = [u32; 5];

/// Constants of the programs, by name, as the words that they load them in.
pub(super) struct Settings(Vec<(&'static str, Vec<u32>)>);

impl Settings {
    pub(super) fn new(config: &ProgramConfig) -> Result<Settings, FilterError> {
        config.filter.check()?;
        let ProgramConfig { steering, filter, .. } = config;
        let endpoints = &filter.endpoints;
        let masks = [Family::V4, Family::V6].into_iter().flat_map(|family| {
            [HashKind::Addresses, HashKind::Ports]
                .map(|kind| words(steering.input_mask(config.device, family, kind)))
        });
        let orientation = match steering.orientation(config.device) {
            Orientation::Inside => 0,
            Orientation::Outside => 1,
            Orientation::ByPrefix(_) => 2,
        };
        let single = match steering.single_address() {
            None => 0,
            Some(Whose::Inner) => 1,
            Some(Whose::Outer) => 2,
            Some(Whose::Source) => 3,
            Some(Whose::Destination) => 4,
        };
        let endpoint_count = if endpoints.is_empty() { 0 } else { endpoints.addresses.len() };
        Ok(Settings(vec![
            ("bucket_mask", vec![steering.buckets() as u32 - 1]),
            ("queues", vec![config.queues.into()]),
            ("orientation", vec![orientation]),
            ("single", vec![single]),
            ("icmp_identifiers", vec![u32::from(config.hashing == HashOptions::Full)]),
            ("translating", vec![u32::from(steering.translation().is_some())]),
            ("masks", masks.flatten().collect()),
            ("take_count", vec![filter.take.len() as u32]),
            ("take", raw_matches(&filter.take)),
            ("leave_count", vec![filter.leave.len() as u32]),
            ("leave", raw_matches(&filter.leave)),
            ("endpoint_count", vec![endpoint_count as u32]),
            ("endpoint_addresses", raw_addresses(endpoints)),
            ("endpoint_ports", port_bits(endpoints)),
        ]))
    }

    /// Gives the constants to a loader.
    pub(super) fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (name, words) in &self.0 {
            loader.override_global(name, &words[..], true);
        }
    }
}

/// Bytes as the words that programs load them in.
fn words(bytes: [u8; INPUT_BYTES]) -> [u32; INPUT_WORDS] {
    std::array::from_fn(|i| u32::from_ne_bytes(std::array::from_fn(|j| bytes[i * 4 + j])))
}

fn raw_matches(list: &[Match]) -> Vec<u32> {
    let raw: [RawMatch; Filter::MOST] =
        std::array::from_fn(|i| list.get(i).map_or([0; 13], raw_match));
    raw.concat()
}

fn raw_match(entry: &Match) -> RawMatch {
    let parts = [
        entry.ethertype.is_some(),
        entry.protocol.is_some(),
        entry.address.is_some(),
        entry.port.is_some(),
    ];
    let mut raw = [0; 13];
    raw[0] = (0..4).map(|bit| u32::from(parts[bit]) << bit).sum();
    raw[1] = entry.ethertype.unwrap_or(0).into();
    raw[2] = entry.protocol.unwrap_or(0).into();
    raw[3] = entry.port.unwrap_or(0).into();
    if let Some(prefix) = entry.address {
        raw[4] = version(prefix.address()).into();
        raw[5..9].copy_from_slice(&address_words(padded(prefix.address())));
        raw[9..13].copy_from_slice(&address_words(leading_ones(prefix.length())));
    }
    raw
}

fn raw_addresses(endpoints: &Endpoints) -> Vec<u32> {
    let raw: [RawAddress; Endpoints::MOST] = std::array::from_fn(|i| {
        let Some(&address) = endpoints.addresses.get(i) else { return [0; 5] };
        let [a, b, c, d] = address_words(padded(address));
        [version(address).into(), a, b, c, d]
    });
    raw.concat()
}

/// A bit for each port, as bytes in words.
fn port_bits(endpoints: &Endpoints) -> Vec<u32> {
    let mut bits = vec![[0_u8; 4]; 1 << 11];
    for port in endpoints.ports.iter().cloned().flatten() {
        bits[usize::from(port / 32)][usize::from(port / 8 % 4)] |= 1 << (port % 8);
    }
    bits.into_iter().map(u32::from_ne_bytes).collect()
}

fn address_words(bytes: [u8; 16]) -> [u32; 4] {
    std::array::from_fn(|i| u32::from_ne_bytes(std::array::from_fn(|j| bytes[i * 4 + j])))
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn padded(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes = v6.octets(),
    }
    bytes
}

fn leading_ones(bits: u8) -> [u8; 16] {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0).to_be_bytes()
}

/// What the trie of prefixes holds where a device carries both directions: version and address, and
/// whether addresses lie inside (0) or stand for inside ones (1). Empty otherwise.
pub(super) fn ranked_prefixes(config: &ProgramConfig) -> Vec<(Key<[u8; 17]>, u32)> {
    let steering: &Steering = &config.steering;
    let Orientation::ByPrefix(inside) = steering.orientation(config.device) else {
        return Vec::new();
    };
    // The longest prefix decides in the trie, but being inside does among the lists.
    let covered = |prefix: &Prefix| inside.iter().any(|wider| wider.covers(prefix));
    let external = steering.external().iter().filter(|prefix| !covered(prefix));
    let ranked = |list: &PrefixList, rank| -> Vec<_> {
        list.iter().map(|prefix| (trie_key(prefix), rank)).collect()
    };
    let mut entries: Vec<_> = external.map(|prefix| (trie_key(prefix), 1)).collect();
    entries.extend(ranked(inside, 0));
    entries
}

fn trie_key(prefix: &Prefix) -> Key<[u8; 17]> {
    let mut bytes = [0; 17];
    bytes[0] = version(prefix.address());
    bytes[1..].copy_from_slice(&padded(prefix.address()));
    Key::new(8 + u32::from(prefix.length()), bytes)
}
