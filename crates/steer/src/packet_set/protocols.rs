//! Sets of IP protocols.

use std::fmt;

use rheostat_packet::Family;

/// Protocols above IP, over one version of IP or both: whose packets belong to flows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocols {
    /// One bit per number.
    numbers: [u64; 4],
    v4: bool,
    v6: bool,
}

/// Those that have names here.
const NAMES: [(u8, &str); 6] =
    [(1, "ICMP"), (6, "TCP"), (17, "UDP"), (58, "ICMPv6"), (132, "SCTP"), (136, "UDP-Lite")];

impl Protocols {
    /// Every protocol over both versions.
    pub const ALL: Protocols = Protocols { numbers: [u64::MAX; 4], v4: true, v6: true };
    /// TCP alone.
    pub const TCP: Protocols = Protocols::of(&[6]);
    /// UDP alone.
    pub const UDP: Protocols = Protocols::of(&[17]);
    /// TCP and UDP.
    pub const TCP_UDP: Protocols = Protocols::of(&[6, 17]);

    /// The protocols with these numbers (IANA, "Protocol Numbers"), over both versions.
    pub const fn of(numbers: &[u8]) -> Protocols {
        let mut set = [0; 4];
        let mut at = 0;
        while at < numbers.len() {
            set[numbers[at] as usize / 64] |= 1 << (numbers[at] % 64);
            at += 1;
        }
        Protocols { numbers: set, v4: true, v6: true }
    }

    /// The same protocols, over this version of IP alone.
    #[must_use]
    pub const fn over(self, version: Family) -> Protocols {
        let (v4, v6) = match version {
            Family::V4 => (self.v4, false),
            Family::V6 => (false, self.v6),
        };
        Protocols { v4, v6, ..self }
    }

    /// Whether packets of this protocol and version are among them.
    #[inline]
    pub const fn contains(&self, protocol: u8, version: Family) -> bool {
        let over = match version {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        };
        over && self.numbers[protocol as usize / 64] >> (protocol % 64) & 1 == 1
    }

    /// Those of either.
    #[must_use]
    pub(crate) fn union(&self, other: &Protocols) -> Protocols {
        let numbers = std::array::from_fn(|word| self.numbers[word] | other.numbers[word]);
        Protocols { numbers, v4: self.v4 || other.v4, v6: self.v6 || other.v6 }
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |number: &u8| self.numbers[usize::from(*number) / 64] >> (number % 64) & 1 == 1;
        let name = |number: u8| {
            let known = NAMES.iter().find(|(known, _)| *known == number);
            known.map_or_else(|| format!("protocol {number}"), |(_, name)| (*name).to_owned())
        };
        let names: Vec<_> = (0..=u8::MAX).filter(has).map(name).collect();
        match (self.numbers == Protocols::ALL.numbers, names.is_empty()) {
            (true, _) => f.write_str("all protocols")?,
            (_, true) => f.write_str("no protocol")?,
            _ => f.write_str(&names.join(" or "))?,
        }
        f.write_str(match (self.v4, self.v6) {
            (true, false) => " over IPv4",
            (false, true) => " over IPv6",
            _ => "",
        })
    }
}

impl fmt::Debug for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocols({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_they_name_and_say_so() {
        let both = Protocols::TCP_UDP;
        assert!(both.contains(6, Family::V4) && both.contains(17, Family::V6));
        assert!(!both.contains(1, Family::V4) && !both.contains(70, Family::V4));
        assert!(!both.over(Family::V4).contains(6, Family::V6));
        assert_eq!(Protocols::TCP.union(&Protocols::UDP), both);
        assert_eq!(both.to_string(), "TCP or UDP");
        let six = Protocols::of(&[132, 200]).over(Family::V6);
        assert_eq!(six.to_string(), "SCTP or protocol 200 over IPv6");
        assert_eq!(Protocols::ALL.to_string(), "all protocols");
        assert_eq!(Protocols::ALL.over(Family::V4).to_string(), "all protocols over IPv4");
        assert_eq!(Protocols::of(&[]).to_string(), "no protocol");
    }
}
