//! Where workers run: on which threads of a core, and next to which memory.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::topology::{Processor, Topology};
use rheostat_base::CoreId;

/// Where workers run. Written as `SIBLINGS`, `NODE` or `SIBLINGS,NODE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// On which threads of a core.
    pub siblings: Siblings,
    /// On which nodes of memory.
    pub node: NodeChoice,
}

/// What the threads of a core do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Siblings {
    /// One has a worker, the others are idle.
    #[default]
    Idle,
    /// Each has a worker.
    Both,
    /// One has a worker of the network, another one of the application.
    Split,
}

/// The nodes of memory that workers are next to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// Any, the device's first where it is known.
    #[default]
    Any,
    /// That of the device.
    Device,
    /// Another than that of the device.
    Other,
    /// Half of the workers on that of the device, half on another.
    Half,
}

/// The cores of a placement, in the order in which workers take them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedCores {
    /// Of workers that do everything, or the network where applications have workers of their own.
    pub network: Vec<CoreId>,
    /// Of workers of the application, each a sibling of the one in the same place of `network`; with [`Siblings::Split`] alone.
    pub application: Vec<CoreId>,
}

/// Why a placement could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no placement: write idle-siblings, both-siblings or split-siblings, any-node, device-node, other-node or half-half, or \
     one of each, such as idle-siblings,device-node"
)]
pub struct UnknownPlacement(String);

/// Why workers cannot be placed so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlacementError {
    /// Cores have one thread each.
    #[error("`{0}`: no core that this process may use has two threads")]
    NoSiblings(Siblings),
    /// There is one node.
    #[error("`{0}`: this process may use one node of memory only")]
    OneNode(NodeChoice),
    /// The node of the device is not known.
    #[error("`{0}`: the kernel does not say which node the device is next to")]
    UnknownNode(NodeChoice),
    /// The node of the device has no processor that may be used.
    #[error(
        "`{choice}`: this process may use no processor of node {node}, which the device is next to"
    )]
    Closed {
        /// What was asked for.
        choice: NodeChoice,
        /// The node.
        node: u32,
    },
    /// There are fewer places than workers.
    #[error("`{placement}` has places for {places} workers here, and there are {workers}")]
    TooMany {
        /// What was asked for.
        placement: Placement,
        /// Places.
        places: usize,
        /// Workers.
        workers: usize,
    },
}

const SIBLINGS: [(&str, Siblings); 3] = [
    ("idle-siblings", Siblings::Idle),
    ("both-siblings", Siblings::Both),
    ("split-siblings", Siblings::Split),
];

const NODES: [(&str, NodeChoice); 4] = [
    ("any-node", NodeChoice::Any),
    ("device-node", NodeChoice::Device),
    ("other-node", NodeChoice::Other),
    ("half-half", NodeChoice::Half),
];

impl Placement {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Placement> {
        let nodes = |siblings| NODES.map(|(_, node)| Placement { siblings, node });
        SIBLINGS.into_iter().flat_map(move |(_, siblings)| nodes(siblings))
    }

    /// Cores for `workers` workers, or for as many as there are places for. `usable` are the processors that the process may use;
    /// `device` is the node that the device is next to, where that is known.
    ///
    /// # Errors
    /// [`PlacementError`] when there are no such places, or too few.
    pub fn resolve(
        self,
        topology: &Topology,
        usable: &[CoreId],
        device: Option<u32>,
        workers: Option<usize>,
    ) -> Result<PlacedCores, PlacementError> {
        let mut cores = topology.cores();
        cores.iter_mut().for_each(|core| core.retain(|thread| usable.contains(&thread.id)));
        cores.retain(|core| !core.is_empty());
        if self.siblings != Siblings::Idle {
            if cores.iter().all(|core| core.len() < 2) {
                return Err(PlacementError::NoSiblings(self.siblings));
            }
            cores.retain(|core| core.len() > 1 || self.siblings == Siblings::Both);
        }
        let halves = self.by_node(cores, device)?;
        let places = |half: &[Vec<Processor>]| -> Vec<(CoreId, Option<CoreId>)> {
            match self.siblings {
                Siblings::Idle => half.iter().map(|core| (core[0].id, None)).collect(),
                Siblings::Split => half.iter().map(|core| (core[0].id, Some(core[1].id))).collect(),
                Siblings::Both => half.iter().flatten().map(|thread| (thread.id, None)).collect(),
            }
        };
        let halves: Vec<_> = halves.iter().map(|half| places(half)).collect();
        let chosen = self.take(&halves, workers)?;
        Ok(PlacedCores {
            network: chosen.iter().map(|(network, _)| *network).collect(),
            application: chosen.iter().filter_map(|(_, application)| *application).collect(),
        })
    }

    /// The cores to use: in one part, or in the halves that are used alike.
    fn by_node(
        self,
        mut cores: Vec<Vec<Processor>>,
        device: Option<u32>,
    ) -> Result<Vec<Vec<Vec<Processor>>>, PlacementError> {
        let mut nodes: Vec<u32> = cores.iter().map(|core| core[0].node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if self.node == NodeChoice::Any {
            cores.sort_by_key(|core| Some(core[0].node) != device);
            return Ok(vec![cores]);
        }
        if nodes.len() < 2 && self.node != NodeChoice::Device {
            return Err(PlacementError::OneNode(self.node));
        }
        // Where there is one node, every device is next to it.
        let node = match (device, nodes.as_slice()) {
            (Some(node), _) | (None, &[node]) => node,
            (None, _) => return Err(PlacementError::UnknownNode(self.node)),
        };
        let (near, far): (Vec<_>, Vec<_>) =
            cores.into_iter().partition(|core| core[0].node == node);
        if near.is_empty() && self.node != NodeChoice::Other {
            return Err(PlacementError::Closed { choice: self.node, node });
        }
        Ok(match self.node {
            NodeChoice::Half => vec![near, far],
            NodeChoice::Other => vec![far],
            NodeChoice::Any | NodeChoice::Device => vec![near],
        })
    }

    /// Takes so many places, from each half alike: the first has one more of an odd number.
    fn take<T: Copy>(
        self,
        halves: &[Vec<T>],
        workers: Option<usize>,
    ) -> Result<Vec<T>, PlacementError> {
        let shortest = halves.iter().map(Vec::len).min().unwrap_or(0);
        let places = match halves.len() {
            // An odd worker more may run on the first half.
            2 => shortest * 2 + usize::from(halves[0].len() > shortest),
            _ => shortest,
        };
        let even = shortest * halves.len();
        let workers = workers.unwrap_or(even);
        if workers > places || workers == 0 {
            return Err(PlacementError::TooMany { placement: self, places, workers });
        }
        let first = workers.div_ceil(halves.len().max(1));
        let mut left = workers;
        Ok(halves
            .iter()
            .flat_map(|half| {
                let count = first.min(left);
                left -= count;
                half.iter().take(count).copied().collect::<Vec<_>>()
            })
            .collect())
    }
}

impl FromStr for Placement {
    type Err = UnknownPlacement;

    fn from_str(text: &str) -> Result<Placement, UnknownPlacement> {
        let mut placement = Placement::default();
        let (mut has_siblings, mut has_node) = (false, false);
        for word in text.split(',').map(str::trim) {
            let siblings = SIBLINGS.iter().find(|(name, _)| *name == word);
            let node = NODES.iter().find(|(name, _)| *name == word);
            match (siblings, node) {
                (Some((_, siblings)), _) if !has_siblings => {
                    (placement.siblings, has_siblings) = (*siblings, true);
                }
                (_, Some((_, node))) if !has_node => (placement.node, has_node) = (*node, true),
                _ => return Err(UnknownPlacement(text.to_owned())),
            }
        }
        Ok(placement)
    }
}

impl fmt::Display for Siblings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = SIBLINGS.iter().find(|(_, siblings)| siblings == self);
        f.write_str(own.map_or("", |(name, _)| name))
    }
}

impl fmt::Display for NodeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = NODES.iter().find(|(_, node)| node == self);
        f.write_str(own.map_or("", |(name, _)| name))
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.siblings, self.node)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Nodes of so many cores with so many threads, numbered as Linux does: the second threads behind all first ones, nodes in
    /// turn.
    fn machine(nodes: u32, cores: u32, threads: u32) -> Topology {
        let mut files: HashMap<String, String> = HashMap::new();
        let total = nodes * cores * threads;
        files.insert("/sys/devices/system/cpu/online".into(), format!("0-{}", total - 1));
        files.insert("/sys/devices/system/node/online".into(), format!("0-{}", nodes - 1));
        for node in 0..nodes {
            let members: Vec<_> =
                (0..total).filter(|id| id % nodes == node).map(|id| id.to_string()).collect();
            let path = format!("/sys/devices/system/node/node{node}/cpulist");
            files.insert(path, members.join(","));
        }
        for id in 0..total {
            let folder = format!("/sys/devices/system/cpu/cpu{id}/topology");
            files.insert(format!("{folder}/physical_package_id"), (id % nodes).to_string());
            files.insert(format!("{folder}/core_id"), (id / nodes % cores).to_string());
        }
        Topology::read(|path| files.get(path).cloned())
    }

    fn resolve(
        text: &str,
        topology: &Topology,
        device: Option<u32>,
        workers: Option<usize>,
    ) -> Result<(Vec<u16>, Vec<u16>), String> {
        let usable: Vec<_> = topology.processors().iter().map(|thread| thread.id).collect();
        let placement: Placement = text.parse().unwrap();
        let placed = placement.resolve(topology, &usable, device, workers);
        let numbers = |cores: Vec<CoreId>| cores.into_iter().map(|core| core.0).collect();
        placed
            .map(|placed| (numbers(placed.network), numbers(placed.application)))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn two_nodes_with_hyperthreads_have_every_placement() {
        // Cores of node 0: {0, 8} {2, 10} {4, 12} {6, 14}; of node 1: {1, 9} {3, 11} {5, 13} {7, 15}.
        let topology = machine(2, 4, 2);
        let none: Vec<u16> = Vec::new();
        for (text, device, workers, network) in [
            ("idle-siblings", None, None, vec![0, 1, 2, 3, 4, 5, 6, 7]),
            ("any-node", Some(1), Some(5), vec![1, 3, 5, 7, 0]),
            ("device-node", Some(1), None, vec![1, 3, 5, 7]),
            ("other-node,idle-siblings", Some(1), Some(2), vec![0, 2]),
            ("half-half", Some(1), Some(4), vec![1, 3, 0, 2]),
            ("half-half", Some(0), Some(3), vec![0, 2, 1]),
            ("both-siblings,device-node", Some(0), None, vec![0, 8, 2, 10, 4, 12, 6, 14]),
            ("both-siblings,half-half", Some(0), Some(4), vec![0, 8, 1, 9]),
        ] {
            let placed = resolve(text, &topology, device, workers);
            assert_eq!(placed, Ok((network, none.clone())), "{text}");
        }
        let split = resolve("split-siblings,other-node", &topology, Some(0), Some(3));
        assert_eq!(split, Ok((vec![1, 3, 5], vec![9, 11, 13])));
        assert_eq!(Placement::all().count(), 12);
        for placement in Placement::all() {
            let text = placement.to_string();
            assert_eq!(text.parse(), Ok(placement));
            assert!(resolve(&text, &topology, Some(0), None).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_a_machine_does_not_have_is_named() {
        let plain = machine(1, 2, 1);
        let wrong = |text: &str, workers| resolve(text, &plain, None, workers).unwrap_err();
        assert!(wrong("both-siblings", None).contains("two threads"));
        assert!(wrong("split-siblings", None).contains("two threads"));
        assert!(wrong("other-node", None).contains("one node"));
        assert!(wrong("half-half", None).contains("one node"));
        assert!(wrong("idle-siblings", Some(3)).contains("places for 2 workers"));
        assert_eq!(resolve("device-node", &plain, None, None), Ok((vec![0, 1], vec![])));
        let two = machine(2, 2, 1);
        let unknown = resolve("device-node", &two, None, None).unwrap_err();
        assert!(unknown.contains("does not say"), "{unknown}");
        let too_many = resolve("half-half", &two, Some(0), Some(5)).unwrap_err();
        assert!(too_many.contains("places for 4 workers"), "{too_many}");
    }

    #[test]
    fn processors_that_may_not_be_used_are_not_placed_on() {
        let topology = machine(2, 2, 2);
        let usable = [0, 2, 4, 1].map(CoreId);
        let place = |text: &str, device| {
            text.parse::<Placement>().unwrap().resolve(&topology, &usable, device, None)
        };
        // Of the sibling pairs {0, 4}, {2, 6}, {1, 5}, {3, 7}, the first is whole.
        let split = place("split-siblings", None).unwrap();
        assert_eq!((split.network, split.application), (vec![CoreId(0)], vec![CoreId(4)]));
        assert_eq!(place("both-siblings", None).unwrap().network, [0, 4, 1, 2].map(CoreId));
        let closed = "device-node".parse::<Placement>().unwrap();
        let closed = closed.resolve(&topology, &[CoreId(0), CoreId(2)], Some(1), None);
        assert_eq!(closed, Err(PlacementError::Closed { choice: NodeChoice::Device, node: 1 }));
        let nothing = place("idle-siblings", None)
            .and_then(|_| Placement::default().resolve(&topology, &[], None, None));
        assert!(matches!(nothing, Err(PlacementError::TooMany { places: 0, .. })));
    }

    #[test]
    fn words_that_are_none_or_come_twice_are_refused() {
        for wrong in ["", "cores", "any-node,half-half", "idle-siblings,idle-siblings", "any-node,"]
        {
            let error = wrong.parse::<Placement>().unwrap_err().to_string();
            assert!(error.contains("split-siblings"), "{error}");
        }
    }
}
