//! The ports whose flows were not answered, by the host that has them: what one host can lose when another
//! finds no port.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// Unanswered ports of one set, by host, in the order in which they were given out. Joining and leaving take
/// constant time; finding the port that a host is to lose takes a look at each host.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    hosts: HashMap<Ipv4Addr, Host>,
    /// When each port joined, by rank; zero for one that does not wait.
    joined: Vec<u32>,
    clock: u32,
}

#[derive(Debug, Default)]
struct Host {
    count: usize,
    /// Ranks, with the time at which each joined; those that have left since are skipped.
    queue: VecDeque<(u16, u32)>,
}

impl Waiting {
    /// Adds the port of `rank`, which `host` has and which does not wait yet.
    pub(super) fn add(&mut self, host: Ipv4Addr, rank: usize) {
        if self.joined.len() <= rank {
            self.joined.resize(rank + 1, 0);
        }
        if self.clock == u32::MAX {
            self.renumber();
        }
        self.clock += 1;
        self.joined[rank] = self.clock;
        let Waiting { hosts, joined, clock } = self;
        let host = hosts.entry(host).or_default();
        host.count += 1;
        host.queue.push_back((rank as u16, *clock));
        if host.queue.len() > 2 * host.count + 16 {
            host.queue.retain(|(rank, time)| joined[usize::from(*rank)] == *time);
        }
    }

    /// Removes the port of `rank`, if it waits.
    pub(super) fn remove(&mut self, host: Ipv4Addr, rank: usize) {
        let Some(time) = self.joined.get_mut(rank).filter(|time| **time != 0) else { return };
        *time = 0;
        if let Some(known) = self.hosts.get_mut(&host) {
            known.count -= 1;
            if known.count == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// The port to be given to `host` instead: of the host that has most of them, the oldest that `suits`. Of
    /// hosts that have as many, `host` itself loses one, or else the one whose port is older.
    pub(super) fn oldest_of_largest(
        &mut self,
        host: Ipv4Addr,
        mut suits: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let mut best: Option<((usize, bool, u32), usize)> = None;
        for (address, Host { count, queue }) in &mut self.hosts {
            if best.is_some_and(|((most, ..), _)| *count < most) {
                continue;
            }
            let joined = &self.joined;
            let lives = |(rank, time): &(u16, u32)| joined[usize::from(*rank)] == *time;
            while queue.front().is_some_and(|front| !lives(front)) {
                queue.pop_front();
            }
            let mut fitting =
                queue.iter().filter(|entry| lives(entry) && suits(usize::from(entry.0)));
            if let Some(&(rank, time)) = fitting.next() {
                let order = (*count, *address == host, u32::MAX - time);
                if best.is_none_or(|(known, _)| order > known) {
                    best = Some((order, usize::from(rank)));
                }
            }
        }
        best.map(|(_, rank)| rank)
    }

    /// Starts the count of times anew, in the order there is.
    fn renumber(&mut self) {
        let mut order: Vec<usize> =
            (0..self.joined.len()).filter(|rank| self.joined[*rank] != 0).collect();
        order.sort_unstable_by_key(|rank| self.joined[*rank]);
        let none = vec![0; self.joined.len()];
        let old = std::mem::replace(&mut self.joined, none);
        for (rank, time) in order.iter().zip(1..) {
            self.joined[*rank] = time;
        }
        for host in self.hosts.values_mut() {
            host.queue.retain_mut(|(rank, time)| {
                let lives = old[usize::from(*rank)] == *time;
                *time = self.joined[usize::from(*rank)];
                lives
            });
        }
        self.clock = order.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_host_loses_its_oldest_port(
            steps in prop::collection::vec((0_u8..5, 0_usize..40, any::<bool>()), 1..300),
            wraps: bool,
        ) {
            let mut waiting = Waiting::default();
            if wraps {
                waiting.clock = u32::MAX - 20;
            }
            // Hosts and ranks in the order in which they joined.
            let mut plain: Vec<(u8, usize)> = Vec::new();
            for (number, rank, add) in steps {
                let address = |number: u8| Ipv4Addr::new(10, 0, 0, number);
                match plain.iter().position(|(_, known)| *known == rank) {
                    Some(at) if !add => {
                        let (owner, _) = plain.remove(at);
                        waiting.remove(address(owner), rank);
                    }
                    None if add => {
                        waiting.add(address(number), rank);
                        plain.push((number, rank));
                    }
                    _ => {}
                }
                let suits = |rank: usize| rank % 4 != 3;
                let count = |host: u8| plain.iter().filter(|(owner, _)| *owner == host).count();
                let candidates = plain.iter().enumerate().filter(|(_, (_, rank))| suits(*rank));
                let expected = candidates.max_by_key(|(at, (owner, _))| {
                    (count(*owner), *owner == number, std::cmp::Reverse(*at))
                });
                let found = waiting.oldest_of_largest(address(number), suits);
                prop_assert_eq!(found, expected.map(|(_, (_, rank))| *rank));
            }
        }
    }
}
