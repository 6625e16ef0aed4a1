//! From a configured function to one that runs, and to its work beside the run.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat_ip::RunLimit;
use rheostat_state::txn::Objects;

use super::rules::RuleList;
use crate::link::Link;

/// The run that a function is built for.
#[derive(Clone, Copy, Debug)]
pub struct BuildCx<'a> {
    /// The objects that the functions of the chain share are made from these.
    pub objects: &'a Objects,
    /// The limit of errors and resets that the functions of the chain send together.
    pub errors: &'a RunLimit,
    /// The seed of random choices; a random one without.
    pub seed: Option<u64>,
    /// Whether the chain will run. Otherwise it is only looked at, and needs nothing beside it.
    pub runs: bool,
    /// What the function hands over that runs, and that this one is to take the place of; `None` when a run starts.
    pub predecessor: Option<&'a Handed>,
}

impl BuildCx<'_> {
    /// The source of random choices; with a seed the same each time.
    pub fn rng(&self) -> StdRng {
        self.seed.map_or_else(StdRng::from_os_rng, StdRng::seed_from_u64)
    }

    /// What the function hands over whose place this one takes, if it handed over a `T`.
    pub fn predecessor<T: Any>(&self) -> Option<&T> {
        self.predecessor?.downcast_ref()
    }
}

/// What lives on when a function with other settings takes the place of a running one: shared objects, logs, the health of
/// backends. A function is built before it is known whether it comes into force, so it changes nothing of this until a shard
/// [follows](crate::ShardState::follow) it.
pub type Handed = Arc<dyn Any + Send + Sync>;

/// Why a function cannot be built as configured.
pub type BuildError = Box<dyn Error + Send + Sync>;

/// A function that was built, and its work beside the run.
#[derive(Default)]
pub struct Built {
    /// The function; `None` if packets need not pass it.
    pub link: Option<Box<dyn Link>>,
    /// The log that it writes during the run, and the file for it.
    /// `None` also if it goes on with the log of its predecessor, whose file is the same.
    pub log: Option<(PathBuf, Box<dyn Lines>)>,
    /// The ports that it gives flows, to be watched during the run.
    pub ports: Option<Arc<dyn PortShares>>,
    /// Its rules, which are listed during the run.
    pub rules: Option<Arc<dyn RuleList>>,
    /// The part of it that commands change during the run: they find it by its type.
    pub control: Option<Arc<dyn Any + Send + Sync>>,
    /// What a function that takes its place takes over: the [`BuildCx::predecessor`] of that one.
    pub handed: Option<Handed>,
}

impl Built {
    /// A function without work beside the run.
    pub fn of(link: Box<dyn Link>) -> Built {
        Built { link: Some(link), ..Built::default() }
    }
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built").field("link", &self.link).finish_non_exhaustive()
    }
}

/// The lines of a log, one JSON object each.
pub trait Lines: Send + 'static {
    /// Writes the lines that have come since the last call. Returns how many these are.
    ///
    /// # Errors
    /// Those of the file.
    fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize>;

    /// Writes lines that were held back, once no more come.
    ///
    /// # Errors
    /// Those of the file.
    fn write_last(&mut self, _file: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

impl Lines for Box<dyn Lines> {
    fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize> {
        (**self).write_new(file)
    }

    fn write_last(&mut self, file: &mut dyn Write) -> io::Result<()> {
        (**self).write_last(file)
    }
}

/// Ports in use, which may be read during the run.
pub trait PortShares: fmt::Debug + Send + Sync {
    /// The use of each external address by each protocol.
    fn shares(&self) -> Vec<PortShare>;
}

/// The use of one external address by one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShare {
    /// The external address.
    pub address: Ipv4Addr,
    /// The IP protocol.
    pub protocol: u8,
    /// With address- and port-dependent mapping, the remote endpoint to which the largest share of a shard's ports
    /// is in use. The figures are those of that shard.
    pub remote: Option<(Ipv4Addr, u16)>,
    /// The ports that have a flow that is not over.
    pub in_use: u64,
    /// The ports that the configuration gives out.
    pub ports: u64,
}

impl PortShare {
    /// Ports in use, in per cent of those there are.
    pub fn per_cent(&self) -> u64 {
        self.in_use * 100 / self.ports.max(1)
    }
}
