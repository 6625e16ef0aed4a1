//! Remote endpoints to which so many flows go that a free port towards them is hard to meet: with address- and
//! port-dependent mapping, where a port serves one flow to each.
//!
//! As long as a few ports tried at random show a free one, the flow table alone says which are taken. Once they
//! do not, the ports of that remote endpoint are kept in sets, made from the table once, until half of those
//! that suit are free again. So the search costs the same however many are taken, and flows to others cost no memory.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::flow::{Endpoint, Ends};
use super::rank_set::RankSet;
use super::waiting::Waiting;

/// Where crowded flows go, and from which external address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    external: Ipv4Addr,
    remote: Endpoint,
    protocol: u8,
    zone: u32,
}

impl Way {
    /// That of flows between these addresses.
    pub(super) fn new(external: Ipv4Addr, remote: Endpoint, protocol: u8, zone: u32) -> Way {
        // Queries have the flow's own identifier for a remote port.
        let port = if protocol == 1 { 0 } else { remote.1 };
        Way { external, remote: (remote.0, port), protocol, zone }
    }

    /// That of a flow.
    pub(super) fn of(ends: &Ends, protocol: u8, zone: u32) -> Way {
        Way::new(ends.external.0, ends.remote, protocol, zone)
    }
}

/// What the port of a flow is for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// The flow is answered, or its host cannot lose it.
    Kept,
    /// This host's flow was not answered.
    Waiting(Ipv4Addr),
    /// The flow's connection is over.
    Spent,
}

/// The ports towards one remote endpoint, by rank.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    pub(super) free: RankSet,
    pub(super) spent: RankSet,
    pub(super) waiting: Waiting,
    /// Flows that have one of the ports, and how few there are for this to be a crowd no more.
    held: usize,
    least: usize,
    /// The ports that the configuration gives out.
    ports: usize,
}

impl Crowd {
    /// `size` ports, of which `holding` says what they are: `None` for a free one. It is a crowd as long as
    /// flows have `least` of them. The configuration gives out `ports` of them.
    pub(super) fn new(
        size: usize,
        least: usize,
        ports: usize,
        mut holding: impl FnMut(usize) -> Option<Holding>,
    ) -> Crowd {
        let (free, spent) = (RankSet::new(size), RankSet::new(size));
        let mut crowd = Crowd { free, spent, waiting: Waiting::default(), held: 0, least, ports };
        for rank in 0..size {
            match holding(rank) {
                Some(holding) => crowd.hold(rank, holding),
                None => crowd.free.insert(rank),
            }
        }
        crowd
    }

    /// Ports of flows that are not over, those that the configuration has given away included.
    pub(super) fn in_use(&self) -> usize {
        (self.held - self.spent.len()).min(self.ports)
    }

    /// A flow has the port of `rank` from now on.
    pub(super) fn hold(&mut self, rank: usize, holding: Holding) {
        self.free.remove(rank);
        self.held += 1;
        self.mark(rank, holding);
    }

    /// The flow of a port is this to others from now on; it was nothing before.
    pub(super) fn mark(&mut self, rank: usize, holding: Holding) {
        match holding {
            Holding::Kept => {}
            Holding::Waiting(host) => self.waiting.add(host, rank),
            Holding::Spent => self.spent.insert(rank),
        }
    }

    /// What the flow of a port was to others, it is no longer.
    pub(super) fn unmark(&mut self, rank: usize, host: Ipv4Addr) {
        self.spent.remove(rank);
        self.waiting.remove(host, rank);
    }

    /// The port has no flow any more.
    pub(super) fn let_go(&mut self, rank: usize, host: Ipv4Addr) {
        self.unmark(rank, host);
        self.free.insert(rank);
        self.held -= 1;
    }
}

/// How full the ports of a crowd are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fullest {
    pub(super) remote: Endpoint,
    pub(super) in_use: usize,
    pub(super) ports: usize,
}

/// The crowds of a shard.
#[derive(Debug, Default)]
pub(super) struct Crowds(HashMap<Way, Crowd>);

impl Crowds {
    /// The crowd on a way, if there is one.
    pub(super) fn get_mut(&mut self, way: &Way) -> Option<&mut Crowd> {
        if self.0.is_empty() { None } else { self.0.get_mut(way) }
    }

    /// For each external address and protocol that has crowds, the crowd with the largest share of its ports in
    /// use. The time grows with the number of crowds, each of which has flows on half of its ports.
    pub(super) fn fullest(&self) -> HashMap<(Ipv4Addr, u8), Fullest> {
        let mut fullest: HashMap<_, Fullest> = HashMap::new();
        for (way, crowd) in &self.0 {
            let found = Fullest { remote: way.remote, in_use: crowd.in_use(), ports: crowd.ports };
            let known = fullest.entry((way.external, way.protocol)).or_insert(found);
            if found.in_use * known.ports > known.in_use * found.ports {
                *known = found;
            }
        }
        fullest
    }

    /// The number of crowds.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a crowd.
    pub(super) fn insert(&mut self, way: Way, crowd: Crowd) {
        self.0.insert(way, crowd);
    }

    /// The port of a flow that has ended is free.
    pub(super) fn release(&mut self, way: &Way, rank: usize, host: Ipv4Addr) {
        let Some(crowd) = self.get_mut(way) else { return };
        crowd.let_go(rank, host);
        if crowd.held < crowd.least {
            self.0.remove(way);
        }
    }
}
