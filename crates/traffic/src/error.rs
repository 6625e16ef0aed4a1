//! Why there is no such source.

use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

use crate::MixError;

/// Why a source cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SourceError {
    /// The usual traffic makes no sense.
    #[error(transparent)]
    Mix(#[from] MixError),
    /// No packets would ever come.
    #[error("a rate of 0 packets per second: give at least 1")]
    Rate,
    /// Not a share.
    #[error("`{what}` is {value}: it lies above 0 and below 1")]
    Share {
        /// The setting.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// Not a share, where all or nothing is possible, too.
    #[error("an IPv6 share of {0}: it lies between 0 and 1")]
    Ipv6Share(f64),
    /// No flows, or more than there are names for.
    #[error("{0} flows: 1 to 10000000 are possible")]
    Flows(u32),
    /// A frame that cannot be.
    #[error("frames of {0} bytes: 60 to 1514 are possible")]
    Size(usize),
    /// Bursts without packets.
    #[error("bursts of 0 packets: give at least 1")]
    Burst,
    /// Not an exponent of Zipf's law.
    #[error("an exponent of {0}: it is a number that is not negative")]
    Exponent(f64),
    /// A surge that is none.
    #[error("a surge to {0} times the usual load: it lies above 1 and at most at 100000")]
    Factor(f64),
    /// A surge that does not end before it comes again, or takes no time.
    #[error(
        "a surge of {lasting:?} every {every:?}: it is longer than nothing, and shorter than the pause"
    )]
    Surge {
        /// How long it lasts.
        lasting: Duration,
        /// After how long it comes again.
        every: Duration,
    },
    /// There are no visits.
    #[error("0 visits at a time: give at least 1")]
    Visits,
    /// Answers that could not reach the visitors.
    #[error(
        "visitors of {target} cannot be answered from {server}: give both in one version of IP"
    )]
    Families {
        /// Where visitors connect to.
        target: SocketAddr,
        /// Where answers would come from.
        server: SocketAddr,
    },
    /// A capture without packets cannot be replayed.
    #[error("there are no packets to replay")]
    Empty,
    /// More copies than make sense, or none.
    #[error("{0} copies in parallel: 1 to 256 are possible")]
    Copies(u16),
    /// Steps out of order.
    #[error("step {0} does not lie after the one before: write steps in the order of their times")]
    Order(usize),
    /// A factor that is none.
    #[error("a step to {0} times the load: the factor is a number that is not negative")]
    Step(f64),
}
