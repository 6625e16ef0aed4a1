//! A bad network before a device, by seed: packets are lost, doubled, reordered and late in both directions, as on a wire, and
//! every one of them is accounted for.
//!
//! | | receiving | sending |
//! |---|---|---|
//! | loss | each packet for itself | each packet for itself |
//! | doubling | each packet for itself | none |
//! | reordering | changes places with the next of its burst | changes places with the next of its burst |
//! | delay | none | twice the delay of one direction |
//!
//! No end of a connection can tell a delay in each direction from the whole in one, since neither has the other's clock; and
//! nothing is held back that was placed on a queue, so that moves of shards wait no longer than without.
//!
//! [`with_faults`](super::fault::with_faults) breaks accounts, to see that checkers notice. Here what was lost counts as if it
//! had never arrived, or as sent.

mod device;
mod receive;
mod transmit;

use std::str::FromStr;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{Counter, unit};
use thiserror::Error;

pub use device::{ImpairMonitor, impair};

/// What happens to packets of each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImpairConfig {
    /// Names the sequence of faults; the same seed gives the same faults to the same packets.
    pub seed: u64,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The probability that it arrives twice.
    pub duplicate: f64,
    /// The probability that it changes places with the next.
    pub reorder: f64,
    /// How long it takes.
    pub delay: Duration,
}

/// Why a text is no [`ImpairConfig`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ImpairError {
    #[error("`{0}` is not NAME=VALUE, such as loss=0.01")]
    NotAssigned(String),
    #[error("there is no fault `{0}`; the names are loss, duplicate, reorder, delay and seed")]
    Unknown(String),
    #[error("`{name}={value}`: a probability is a number from 0 to 1")]
    Probability { name: String, value: String },
    #[error("loss, duplicate and reorder are more than 1 together")]
    TooLikely,
    #[error("`delay={value}`: {reason}")]
    Delay { value: String, reason: String },
    #[error("a delay is at most {} s", LONGEST_DELAY.as_secs())]
    TooLate,
    #[error("`seed={0}`: a seed is a whole number")]
    Seed(String),
}

/// Beyond this no connection gets on.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

impl FromStr for ImpairConfig {
    type Err = ImpairError;

    /// Reads a list such as `loss=0.01,reorder=0.01,delay=50ms,seed=7`.
    fn from_str(text: &str) -> Result<ImpairConfig, ImpairError> {
        let mut config = ImpairConfig::default();
        for part in text.split(',') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(ImpairError::NotAssigned(part.to_owned()));
            };
            let probability = || {
                let wrong =
                    || ImpairError::Probability { name: name.to_owned(), value: value.to_owned() };
                let number: f64 = value.parse().map_err(|_| wrong())?;
                if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(wrong()) }
            };
            match name {
                "loss" => config.loss = probability()?,
                "duplicate" => config.duplicate = probability()?,
                "reorder" => config.reorder = probability()?,
                "delay" => {
                    let wrong = |reason: String| ImpairError::Delay { value: value.into(), reason };
                    config.delay =
                        unit::parse_duration(value).map_err(|error| wrong(error.to_string()))?;
                }
                "seed" => {
                    config.seed = value.parse().map_err(|_| ImpairError::Seed(value.to_owned()))?;
                }
                other => return Err(ImpairError::Unknown(other.to_owned())),
            }
        }
        if config.loss + config.duplicate + config.reorder > 1.0 {
            return Err(ImpairError::TooLikely);
        }
        if config.delay > LONGEST_DELAY {
            return Err(ImpairError::TooLate);
        }
        Ok(config)
    }
}

/// How many faults of each kind there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairCounts {
    /// Packets lost.
    pub lost: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Packets that changed places with the next.
    pub reordered: u64,
}

/// What a direction of a queue has counted. Its lane is the only writer.
#[derive(Debug, Default)]
struct Counters {
    lost: Counter,
    lost_bytes: Counter,
    duplicated: Counter,
    duplicated_bytes: Counter,
    reordered: Counter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Lose,
    Double,
    Swap,
}

/// Draws the faults of one direction of a queue: one number per packet, so that what happens to each depends on the seed and its
/// place alone.
#[derive(Debug)]
struct Draw {
    random: SmallRng,
    likely: [(f64, Fault); 3],
}

impl Draw {
    fn new(config: &ImpairConfig, number: u64) -> Draw {
        let likely = [
            (config.loss, Fault::Lose),
            (config.duplicate, Fault::Double),
            (config.reorder, Fault::Swap),
        ];
        let seed = config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
        Draw { random: SmallRng::seed_from_u64(seed), likely }
    }

    fn next(&mut self) -> Option<Fault> {
        let mut number: f64 = self.random.random();
        for (likely, fault) in self.likely {
            if number < likely {
                return Some(fault);
            }
            number -= likely;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_faults_are_read_and_mistakes_named() {
        let config: ImpairConfig = "loss=0.01,reorder=0.02,delay=50ms,seed=7".parse().unwrap();
        let expected = ImpairConfig {
            seed: 7,
            loss: 0.01,
            duplicate: 0.0,
            reorder: 0.02,
            delay: Duration::from_millis(50),
        };
        assert_eq!(config, expected);
        let wrong = |text: &str| text.parse::<ImpairConfig>().unwrap_err().to_string();
        for (text, says) in [
            ("", "not NAME=VALUE"),
            ("loss", "`loss` is not NAME=VALUE"),
            ("los=0.1", "no fault `los`"),
            ("loss=1.5", "`loss=1.5`: a probability"),
            ("loss=nan", "a probability"),
            ("loss=0.6,reorder=0.6", "more than 1 together"),
            ("delay=fast", "`delay=fast`"),
            ("delay=1h", "at most 10 s"),
            ("seed=-1", "`seed=-1`"),
        ] {
            assert!(wrong(text).contains(says), "{text}: {}", wrong(text));
        }
    }
}
