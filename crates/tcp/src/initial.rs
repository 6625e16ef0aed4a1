//! Initial sequence numbers that cannot be guessed (RFC 6528), and offsets of time stamps (RFC 7323, 5.4).

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use rheostat_base::Time;
use siphasher::sip::SipHasher24;

use crate::sequence::SequenceNumber;

/// Where the numbers of a connection start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initial {
    /// The number of the SYN.
    pub sequence: SequenceNumber,
    /// What is added to the clock of time stamps.
    pub stamp_offset: u32,
}

/// Chooses them by a secret, which the caller draws at random and keeps for as long as the process runs.
#[derive(Clone, Copy)]
pub struct InitialNumbers {
    hasher: SipHasher24,
}

impl InitialNumbers {
    /// With this secret.
    pub fn new(secret: &[u8; 16]) -> InitialNumbers {
        InitialNumbers { hasher: SipHasher24::new_with_key(secret) }
    }

    /// The numbers of a connection that begins now: they rise by one every 4 us, from a start that depends on both ends.
    pub fn of(&self, local: SocketAddr, remote: SocketAddr, now: Time) -> Initial {
        let mut hasher = self.hasher;
        (local, remote).hash(&mut hasher);
        let hash = hasher.finish();
        let ticks = (now.as_nanos() / 4_000) as u32;
        Initial { sequence: SequenceNumber(hash as u32) + ticks, stamp_offset: (hash >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (SocketAddr, SocketAddr) {
        ("192.0.2.1:80".parse().unwrap(), "192.0.2.2:4000".parse().unwrap())
    }

    #[test]
    fn numbers_of_the_same_ends_rise_by_one_every_four_microseconds() {
        let numbers = InitialNumbers::new(&[7; 16]);
        let (local, remote) = ends();
        let first = numbers.of(local, remote, Time::ZERO);
        let second = numbers.of(local, remote, Time::from_millis(1));
        assert_eq!(second.sequence.since(first.sequence), 250);
        assert_eq!(second.stamp_offset, first.stamp_offset);
    }

    #[test]
    fn numbers_depend_on_the_secret_and_on_both_ends() {
        let (local, remote) = ends();
        let other = SocketAddr::new(remote.ip(), 4_001);
        let of = |secret, a, b| InitialNumbers::new(&[secret; 16]).of(a, b, Time::ZERO);
        let all =
            [of(7, local, remote), of(8, local, remote), of(7, local, other), of(7, remote, local)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a.sequence != b.sequence), "{all:?}");
        }
    }
}
