//! What a simulation knows of a packet, and where it gets it from.

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use rheostat_base::DeviceId;
use rheostat_packet::wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_steer::Steering;
use rheostat_traffic::Source;

use super::flow_numbers::FlowNumbers;

/// A packet that arrives, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimPacket {
    /// When, in nanoseconds on the source's clock.
    pub(crate) at: u64,
    /// One direction of a flow; the number of a flow that has long been silent may stand for another.
    pub(crate) flow: u32,
    /// The hash that places it, the same for both directions.
    pub(crate) hash: u32,
    /// Decides how much work it happens to be: all numbers are equally likely.
    pub(crate) luck: u32,
    /// On the wire.
    pub(crate) bytes: u16,
    /// Of its transport header; 0 where there is none.
    pub(crate) checksum: u16,
    /// Whether it opens or ends a connection.
    pub(crate) connection: bool,
}

/// Reads packets from a source, and parses and hashes them as lanes and devices do.
pub(crate) struct Packets<'a> {
    source: Box<dyn Source>,
    steering: &'a Steering,
    flows: FlowNumbers,
    luck: SmallRng,
    frame: Vec<u8>,
    /// Source times may be out of order in captures; arrivals are not.
    latest: u64,
}

/// The one device of a simulation.
const DEVICE: DeviceId = DeviceId(0);

impl<'a> Packets<'a> {
    /// The packets of `source`, of which at most `in_flight` are under way at the same time.
    pub(crate) fn new(
        source: Box<dyn Source>,
        steering: &'a Steering,
        seed: u64,
        in_flight: u64,
    ) -> Packets<'a> {
        Packets {
            source,
            steering,
            flows: FlowNumbers::new(in_flight),
            luck: SmallRng::seed_from_u64(seed ^ 0x6c75_636b),
            frame: Vec::new(),
            latest: 0,
        }
    }

    /// Replaces the contents of `packets` by the next ones, at most `count`; none when the source has ended.
    pub(crate) fn fill(&mut self, packets: &mut Vec<SimPacket>, count: usize) {
        packets.clear();
        packets.extend(std::iter::from_fn(|| self.next()).take(count));
    }

    fn next(&mut self) -> Option<SimPacket> {
        let arrival = self.source.next(&mut self.frame)?;
        self.latest = self.latest.max(arrival.time.as_nanos());
        let data = self.frame.get(..arrival.len).unwrap_or(&self.frame);
        let headers = Headers::parse_bytes(data, arrival.wire_len as usize, arrival.link);
        let place = match &headers {
            Ok(headers) => self.place(data, headers, arrival.link),
            Err(_) => (FlowKey::NONE, true, 0),
        };
        let (key, forward, hash) = place;
        let (checksum, connection) =
            headers.map_or((0, false), |headers| transport(data, &headers));
        let flow = self.flows.number(key, forward);
        Some(SimPacket {
            at: self.latest,
            flow,
            hash,
            luck: self.luck.next_u32(),
            bytes: u16::try_from(arrival.wire_len).unwrap_or(u16::MAX),
            checksum,
            connection,
        })
    }

    /// A packet's key, its direction, and the hash that places it.
    fn place(&self, data: &[u8], headers: &Headers, link: LinkType) -> (FlowKey, bool, u32) {
        match self.steering.tuple(data, headers, link) {
            Tuple::Flow(key) | Tuple::IcmpError(key) => {
                let oriented = self.steering.orient(DEVICE, key);
                let kind = self.steering.kind_of(&oriented.key);
                (oriented.key, oriented.forward, self.steering.hash(&oriented.key, kind))
            }
            Tuple::Fragment(key, _) => {
                let oriented = self.steering.orient_whole(DEVICE, key);
                let home = self.steering.home_of_fragment(&oriented.key);
                (oriented.key, oriented.forward, home.0.into())
            }
            Tuple::None => (FlowKey::NONE, true, 0),
        }
    }
}

/// The checksum of a transport header, and whether it opens or ends a connection.
fn transport(data: &[u8], headers: &Headers) -> (u16, bool) {
    if headers.fragment.is_some() {
        return (0, false);
    }
    let header = data.get(usize::from(headers.l4)..).unwrap_or_default();
    let checksum_at = match headers.protocol {
        TCP => 16,
        UDP => 6,
        ICMPV4 | ICMPV6 => 2,
        _ => return (0, false),
    };
    let checksum = match header.get(checksum_at..checksum_at + 2) {
        Some(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
        None => 0,
    };
    // FIN, SYN, RST.
    let flags = header.get(13).copied().unwrap_or(0) & 0b111;
    (checksum, headers.protocol == TCP && flags != 0)
}

#[cfg(test)]
mod tests {
    use rheostat_steer::{HashKey, Orientation};
    use rheostat_traffic::{Mix, MixConfig};

    use super::*;

    fn packets(seed: u64, count: usize) -> Vec<SimPacket> {
        let inside = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let orientation = Orientation::ByPrefix(inside.into_iter().collect());
        let steering = Steering::new(&HashKey::MICROSOFT, 512, 128, vec![orientation]).unwrap();
        let mix = MixConfig { flows: 500, seed, ..MixConfig::default() };
        let source = Box::new(Mix::new(mix).unwrap());
        let mut read = Vec::new();
        Packets::new(source, &steering, seed, 1_000).fill(&mut read, count);
        read
    }

    #[test]
    fn a_seed_makes_the_same_packets_in_the_order_of_time() {
        let (one, other) = (packets(1, 20_000), packets(1, 20_000));
        assert_eq!(one, other);
        assert_ne!(one, packets(2, 20_000));
        assert!(one.is_sorted_by_key(|packet| packet.at));
    }

    #[test]
    fn both_directions_have_one_hash_and_two_numbers() {
        let mut hashes = std::collections::BTreeMap::new();
        for packet in packets(1, 20_000) {
            let hash = *hashes.entry(packet.flow).or_insert(packet.hash);
            assert_eq!(hash, packet.hash, "a direction of a flow has one hash");
        }
        let mut numbers = std::collections::BTreeMap::<u32, usize>::new();
        hashes.values().for_each(|hash| *numbers.entry(*hash).or_default() += 1);
        let both = numbers.values().filter(|numbers| **numbers == 2).count();
        assert!(both * 3 > numbers.len(), "{both} of {} flows have answers", numbers.len());
    }

    #[test]
    fn connections_open_and_end_and_checksums_differ() {
        let packets = packets(1, 20_000);
        let connections = packets.iter().filter(|packet| packet.connection).count();
        assert!((100..10_000).contains(&connections), "{connections}");
        let mut checksums: Vec<_> = packets.iter().map(|packet| packet.checksum).collect();
        checksums.sort_unstable();
        checksums.dedup();
        assert!(checksums.len() > 5_000, "{}", checksums.len());
    }
}
