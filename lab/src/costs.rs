//! What things cost on a machine, as a simulation takes them: measured distributions with their raw data.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rheostat_measure::machine::Machine;
use rheostat_measure::record::unknown_profile;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::noise::Noise;

mod distribution;
mod fixture;
mod measurement;
pub(crate) mod meter;

pub use distribution::Distribution;
pub use measurement::measure;
pub(crate) use measurement::wakes;

/// A file of costs, as `rheo bench costs` writes it. Everything is in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Where the figures are from, in a line.
    pub about: String,
    /// The command line.
    pub command: String,
    /// The commit that `rheo` was built from.
    pub commit: String,
    /// The cargo profile that it was built with; `unknown` in files from before it was written.
    #[serde(default = "unknown_profile")]
    pub profile: String,
    /// Whether it was built without optimisation, so that its figures are too high.
    pub debug: bool,
    /// The machine.
    pub machine: Machine,
    /// When it was started, in UTC.
    pub started: String,
    /// What lanes pay for packets, by chain.
    pub chains: Vec<ChainCosts>,
    /// To hand a packet to another lane, sender and receiver together.
    pub handoff_ns: Distribution,
    /// To give a shard away.
    pub release_ns: Distribution,
    /// To take a shard in.
    pub install_ns: Distribution,
    /// From ringing for a worker that sleeps until it runs.
    pub wake_ns: Distribution,
    /// From the rewriting of a simulated NIC's indirection table until no packet is placed by the old one.
    pub fence_ns: Distribution,
    /// What the machine itself does.
    pub noise: Noise,
}

/// What lanes pay for packets that a chain processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainCosts {
    /// The chain's name in scenarios.
    pub chain: String,
    /// For a poll that finds something, however many packets.
    pub poll_ns: f64,
    /// By the number of flows that packets belong to, ascending.
    pub sets: Vec<SetCosts>,
}

/// What lanes pay for packets of so many flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetCosts {
    /// Flows.
    pub flows: u32,
    /// Per packet, beyond the poll; the distribution is that over bursts.
    pub packet_ns: Distribution,
    /// Per packet in polls that find a single one, the poll included.
    pub single_ns: Distribution,
}

/// Why there are no costs.
#[derive(Debug, Error)]
pub enum CostsError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{}: {problem}; `rheo bench costs --output FILE` writes a file of costs", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The costs that come with rheostat, and their file's name.
const BUILT_IN: (&str, &str) =
    ("xeon-2.5GHz-2vcpu.json", include_str!("../costs/xeon-2.5GHz-2vcpu.json"));

impl Costs {
    /// The costs that come with rheostat.
    pub fn built_in() -> Costs {
        let (name, text) = BUILT_IN;
        Costs::parse(Path::new(name), text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The name of the file that [`Costs::built_in`] is from.
    pub fn built_in_name() -> &'static str {
        BUILT_IN.0
    }

    /// Costs from a file.
    ///
    /// # Errors
    /// [`CostsError`].
    pub fn open(path: &Path) -> Result<Costs, CostsError> {
        let text = fs::read_to_string(path)
            .map_err(|source| CostsError::Read { path: path.to_owned(), source })?;
        Costs::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Costs, CostsError> {
        let wrong = |problem: String| CostsError::Wrong { path: path.to_owned(), problem };
        let costs: Costs = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        match costs.problem() {
            None => Ok(costs),
            Some(problem) => Err(wrong(problem)),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.chain("empty").is_none() {
            return Some("it has no chain `empty`".into());
        }
        for chain in &self.chains {
            if chain.sets.is_empty() || !chain.sets.is_sorted_by_key(|set| set.flows) {
                return Some(format!(
                    "the sets of `{}` are missing, or not ascending",
                    chain.chain
                ));
            }
        }
        let packets = self.chains.iter().flat_map(|chain| &chain.sets).map(|set| &set.packet_ns);
        let others = [&self.handoff_ns, &self.release_ns, &self.install_ns];
        let more = [&self.wake_ns, &self.fence_ns];
        let fits = |of: &Distribution| of.is_sound();
        let sound = packets.chain(others).chain(more).all(fits);
        (!sound).then(|| "a distribution is empty, or no ascending row of times".into())
    }

    /// Whether the pauses are the machine's own: they are not when something else ran on it meanwhile.
    pub fn was_left_alone(&self) -> bool {
        !self.noise.is_of_other_programs()
    }

    /// The text of their file.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("costs are plain data") + "\n"
    }

    /// What lanes pay for packets that the chain of this name processes.
    pub fn chain(&self, name: &str) -> Option<&ChainCosts> {
        self.chains.iter().find(|chain| chain.chain == name)
    }

    /// What a core pays for packets that it only looks at: those of the empty chain.
    pub(crate) fn dispatched(&self) -> &ChainCosts {
        self.chain("empty").expect("checked when it was read")
    }
}

impl ChainCosts {
    /// What a share `rank` of packets does not exceed, among `flows` flows: in between of the sets that were
    /// measured by the logarithm of their flows, and as the nearest one outside.
    pub(crate) fn nanos(&self, rank: f64, flows: f64) -> f64 {
        let above = self.sets.partition_point(|set| f64::from(set.flows) < flows);
        let at = |set: &SetCosts| set.packet_ns.quantile(rank);
        match (above.checked_sub(1).map(|below| &self.sets[below]), self.sets.get(above)) {
            (Some(below), Some(above)) => {
                let log = |set: &SetCosts| f64::from(set.flows).ln();
                let share = (flows.ln() - log(below)) / (log(above) - log(below));
                at(below) + (at(above) - at(below)) * share
            }
            (Some(set), None) | (None, Some(set)) => at(set),
            (None, None) => unreachable!("checked when it was read"),
        }
    }

    /// The mean of [`ChainCosts::nanos`].
    pub(crate) fn mean(&self, flows: f64) -> f64 {
        (0..100).map(|rank| self.nanos((f64::from(rank) + 0.5) / 100.0, flows)).sum::<f64>() / 100.0
    }
}
