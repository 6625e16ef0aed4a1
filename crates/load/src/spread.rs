//! How connections are spread over the receive queues of the server: by their source ports, which the hash of the server's device
//! makes a queue of.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_steer::HashKey;
use rheostat_steer::toeplitz::Toeplitz;
use thiserror::Error;

/// The ports that connections come from.
const PORTS: std::ops::RangeInclusive<u16> = 10_000..=60_999;
/// Bytes of a key.
const KEY: usize = 40;

/// How connections are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// As many on each queue.
    Even,
    /// By ports that the kernel picks.
    #[default]
    Random,
    /// Half of them on the first queue, the others on the others alike.
    Skew,
}

/// Why a spread or a key could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpreadError {
    /// No such spread.
    #[error("`{0}` is no spread: write even, random or skew")]
    Unknown(String),
    /// No such key.
    #[error(
        "`{0}` is no hash key: write microsoft, symmetric or 40 bytes as 80 hexadecimal digits"
    )]
    Key(String),
    /// There are not so many queues.
    #[error(
        "a table of {buckets} buckets cannot lead to {queues} queues: write 1 to {buckets}, and a power of two of buckets"
    )]
    Queues {
        /// Queues asked for.
        queues: usize,
        /// Buckets of the table.
        buckets: usize,
    },
}

impl FromStr for Spread {
    type Err = SpreadError;

    fn from_str(text: &str) -> Result<Spread, SpreadError> {
        match text {
            "even" => Ok(Spread::Even),
            "random" => Ok(Spread::Random),
            "skew" => Ok(Spread::Skew),
            _ => Err(SpreadError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spread::Even => "even",
            Spread::Random => "random",
            Spread::Skew => "skew",
        })
    }
}

impl Spread {
    /// The queue that connection `number` of `count` is to be on; `None` where it does not matter.
    pub fn queue(self, number: usize, count: usize, queues: usize) -> Option<usize> {
        match self {
            Spread::Random => None,
            Spread::Even => Some(number % queues),
            Spread::Skew if queues == 1 || number < count.div_ceil(2) => Some(0),
            Spread::Skew => Some(1 + (number - count.div_ceil(2)) % (queues - 1)),
        }
    }
}

/// What the server's device makes of addresses and ports: the Toeplitz hash names a bucket, and buckets lead to queues in turn.
#[derive(Clone)]
pub struct QueueHash {
    toeplitz: Toeplitz,
    buckets: usize,
    queues: usize,
}

impl fmt::Debug for QueueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the key, which decides what attackers can aim at.
        f.debug_struct("QueueHash")
            .field("buckets", &self.buckets)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl QueueHash {
    /// With the key of this name.
    ///
    /// # Errors
    /// [`SpreadError`] when the key cannot be read, or the sizes do not fit each other.
    pub fn new(key: &str, buckets: usize, queues: usize) -> Result<QueueHash, SpreadError> {
        if !buckets.is_power_of_two() || queues == 0 || queues > buckets {
            return Err(SpreadError::Queues { queues, buckets });
        }
        let key = match key {
            "microsoft" => HashKey::MICROSOFT,
            "symmetric" => HashKey::symmetric(),
            digits => HashKey::new(parse_key(digits)?),
        };
        Ok(QueueHash { toeplitz: Toeplitz::new(&key), buckets, queues })
    }

    /// Queues.
    pub fn queues(&self) -> usize {
        self.queues
    }

    /// The queue of what `client` sends to `server`.
    pub fn queue(&self, client: SocketAddr, server: SocketAddr) -> usize {
        let mut input = Vec::with_capacity(36);
        for address in [client.ip(), server.ip()] {
            match address {
                IpAddr::V4(address) => input.extend(address.octets()),
                IpAddr::V6(address) => input.extend(address.octets()),
            }
        }
        input.extend(client.port().to_be_bytes());
        input.extend(server.port().to_be_bytes());
        self.toeplitz.hash_bytes(&input) as usize % self.buckets % self.queues
    }

    /// The ports from which connections of `client` reach each queue, in a random order.
    pub fn ports(&self, client: IpAddr, server: SocketAddr, seed: u64) -> Vec<Vec<u16>> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut ports: Vec<u16> = PORTS.collect();
        ports.shuffle(&mut random);
        // Another run soon after this one meets its ports seldom.
        let turn = random.random_range(0..ports.len());
        ports.rotate_left(turn);
        let mut by_queue = vec![Vec::new(); self.queues];
        for port in ports {
            by_queue[self.queue(SocketAddr::new(client, port), server)].push(port);
        }
        by_queue
    }
}

fn parse_key(digits: &str) -> Result<[u8; KEY], SpreadError> {
    let wrong = || SpreadError::Key(digits.to_owned());
    let mut key = [0; KEY];
    let digits: Vec<char> = digits.chars().filter(|digit| *digit != ':').collect();
    if digits.len() != 2 * KEY {
        return Err(wrong());
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |character: char| character.to_digit(16).ok_or_else(wrong);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str =
        "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";

    #[test]
    fn the_hash_is_that_of_the_published_suite() {
        // "RSS Hashing Functions": 66.9.149.187:2794 to 161.142.100.80:1766 hashes to 0x51ccc178.
        let client: SocketAddr = "66.9.149.187:2794".parse().unwrap();
        let server: SocketAddr = "161.142.100.80:1766".parse().unwrap();
        for key in ["microsoft", SUITE] {
            for (buckets, queues) in [(128, 128), (512, 512), (128, 3)] {
                let hash = QueueHash::new(key, buckets, queues).unwrap();
                assert_eq!(hash.queue(client, server), 0x51cc_c178 % buckets % queues);
            }
        }
        let client: SocketAddr = "[3ffe:2501:200:1fff::7]:2794".parse().unwrap();
        let server: SocketAddr = "[3ffe:2501:200:3::1]:1766".parse().unwrap();
        let hash = QueueHash::new("microsoft", 512, 512).unwrap();
        assert_eq!(hash.queue(client, server), 0x4020_7d3d % 512);
    }

    #[test]
    fn every_port_leads_to_the_queue_it_is_listed_for() {
        let server: SocketAddr = "10.0.0.1:7000".parse().unwrap();
        let client: IpAddr = "10.0.0.2".parse().unwrap();
        let hash = QueueHash::new("symmetric", 128, 3).unwrap();
        let by_queue = hash.ports(client, server, 1);
        assert_eq!(by_queue.iter().map(Vec::len).sum::<usize>(), PORTS.count());
        for (queue, ports) in by_queue.iter().enumerate() {
            assert!(ports.len() > 10_000);
            assert!(
                ports
                    .iter()
                    .all(|port| hash.queue(SocketAddr::new(client, *port), server) == queue)
            );
        }
    }

    #[test]
    fn connections_are_spread_as_is_asked_for() {
        let counts = |spread: Spread, count, queues| {
            let mut counts = vec![0; queues];
            (0..count).filter_map(|n| spread.queue(n, count, queues)).for_each(|q| counts[q] += 1);
            counts
        };
        assert_eq!(counts(Spread::Even, 64, 4), [16; 4]);
        assert_eq!(counts(Spread::Skew, 64, 3), [32, 16, 16]);
        assert_eq!(counts(Spread::Skew, 5, 1), [5]);
        assert_eq!(counts(Spread::Skew, 1, 2), [1, 0]);
        assert_eq!(counts(Spread::Random, 64, 2), [0, 0]);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert!("odd".parse::<Spread>().unwrap_err().to_string().contains("skew"));
        for key in ["", "random", "zz", &SUITE[1..], &SUITE.replace('6', "ü")] {
            assert!(QueueHash::new(key, 128, 2).is_err(), "{key}");
        }
        for (buckets, queues) in [(128, 0), (100, 2), (128, 129)] {
            assert!(QueueHash::new("microsoft", buckets, queues).is_err());
        }
    }
}
