//! Which end of a flow comes first in its key, so that both directions have the same one.

use std::net::IpAddr;

use rheostat_packet::FlowKey;

use crate::prefix::PrefixList;

/// The side of the network a packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// From the network that is served or protected.
    Inside,
    /// From the rest of the world.
    Outside,
}

/// How keys of packets that arrive on a device are turned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// The device faces the inside: the source comes first.
    Inside,
    /// The device faces the outside: the destination comes first.
    Outside,
    /// The device carries both directions, as a capture does. Of two endpoints of which one has an
    /// inside address, that one comes first; otherwise the lower one does.
    ByPrefix(PrefixList),
}

/// A key that is the same for both directions of its flow, and how the packet relates to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oriented {
    /// The key.
    pub key: FlowKey,
    /// The side the packet comes from.
    pub side: Side,
    /// Whether the packet travels from the first endpoint to the second.
    pub forward: bool,
}

impl Orientation {
    /// Turns `key`, whose first endpoint is the packet's source. Where prefixes decide, an address in
    /// `external`, which stands for inside ones, comes before others, but after those inside.
    #[inline(always)]
    pub fn orient(&self, key: FlowKey, external: &PrefixList) -> Oriented {
        let (side, forward) = match self {
            Orientation::Inside => (Side::Inside, true),
            Orientation::Outside => (Side::Outside, false),
            // Not the key itself: a key that is passed on has to lie in memory, and then it does so
            // on the paths above, too.
            Orientation::ByPrefix(inside) => {
                let first = (key.first(), key.first_port());
                by_prefix(inside, external, first, (key.second(), key.second_port()))
            }
        };
        Oriented { key: if forward { key } else { key.reversed() }, side, forward }
    }

    /// The side of a packet without addresses to go by.
    pub fn default_side(&self) -> Side {
        match self {
            Orientation::Inside | Orientation::ByPrefix(_) => Side::Inside,
            Orientation::Outside => Side::Outside,
        }
    }
}

/// The side of a packet between two endpoints, and whether the first of them comes first in its key.
#[inline(never)]
fn by_prefix(
    inside: &PrefixList,
    external: &PrefixList,
    first: (IpAddr, u16),
    second: (IpAddr, u16),
) -> (Side, bool) {
    let rank = |address| match () {
        () if inside.contains(address) => 0,
        () if external.contains(address) => 1,
        () => 2,
    };
    let ranks = (rank(first.0), rank(second.0));
    if ranks == (1, 1) {
        // Inside both ends have other addresses: the packet turns round, and comes as if from outside.
        return (Side::Outside, false);
    }
    let side = if ranks.0 == 0 { Side::Inside } else { Side::Outside };
    (side, (ranks.0, first) <= (ranks.1, second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn inside_comes_before_external_and_external_before_all_else() {
        let list = |text: &str| [text.parse().unwrap()].into_iter().collect::<PrefixList>();
        let orientation = Orientation::ByPrefix(list("10.0.0.0/8"));
        let external = list("9.0.0.0/24");
        let [host, gate, other] =
            [[10, 0, 0, 1], [9, 0, 0, 1], [8, 8, 8, 8]].map(|octets| (Ipv4Addr::from(octets), 5));
        let orient = |from, to| orientation.orient(FlowKey::v4(from, to, 17, 0), &external);
        let there = |from, to| {
            let Oriented { key, side, forward } = orient(from, to);
            assert_eq!(key, FlowKey::v4(from, to, 17, 0));
            (side, forward)
        };
        let back = |from, to| {
            let Oriented { key, side, forward } = orient(from, to);
            assert_eq!(key, FlowKey::v4(to, from, 17, 0));
            (side, forward)
        };
        assert_eq!(there(host, other), (Side::Inside, true));
        assert_eq!(there(host, gate), (Side::Inside, true));
        assert_eq!(there(gate, other), (Side::Outside, true));
        assert_eq!(back(other, gate), (Side::Outside, false));
        assert_eq!(back(other, host), (Side::Outside, false));
        assert_eq!(back(gate, host), (Side::Outside, false));
        // A packet that turned round.
        assert_eq!(back((Ipv4Addr::new(9, 0, 0, 2), 5), gate), (Side::Outside, false));
        assert_eq!(back(gate, (Ipv4Addr::new(9, 0, 0, 2), 5)), (Side::Outside, false));
    }
}
