//! What others can have of a set of ports when it has no free one: ports that have served their purpose, and those of hosts
//! whose flows were not answered.
//!
//! As long as there are free ports, no request asks for this, and keeping it up to date would cost every new flow some lines of
//! memory. So it is found out from the mappings when a request first finds no free port, and kept up to date from then on, until
//! as many ports as the set has were given back since the last such request. Finding out takes a look at each port of
//! the set; between two times, as many are given back.

use std::net::Ipv4Addr;

use super::mapping::Use;
use super::rank_set::RankSet;
use super::waiting::Waiting;

/// The ports of a set, by rank, that others can have.
#[derive(Debug)]
pub(super) struct Shortage {
    /// Ports of TCP that serve another connection when none is free: those of mappings all of whose
    /// connections are over, and those that rest.
    pub(super) spent: RankSet,
    /// Ports of mappings none of whose flows is answered.
    pub(super) waiting: Waiting,
    /// Ports in all.
    size: usize,
    /// Ports that were given back since a request found none.
    given_back: usize,
}

impl Shortage {
    /// Of a set of `size` ports, of which others can have none yet.
    pub(super) fn new(size: usize) -> Shortage {
        let (spent, waiting) = (RankSet::new(size), Waiting::default());
        Shortage { spent, waiting, size, given_back: 0 }
    }

    /// A request has found no free port.
    pub(super) fn note(&mut self) {
        self.given_back = 0;
    }

    /// A port was given back: whether ports are short no longer.
    pub(super) fn is_over_after_release(&mut self) -> bool {
        self.given_back += 1;
        self.given_back >= self.size
    }

    /// What the mapping of a port, one of `host`'s, is to others changes.
    pub(super) fn use_changes(&mut self, rank: usize, host: Ipv4Addr, before: Use, after: Use) {
        match before {
            Use::Waiting => self.waiting.remove(host, rank),
            Use::Closed => self.spent.remove(rank),
            Use::Held | Use::Lost => {}
        }
        match after {
            Use::Waiting => self.waiting.add(host, rank),
            Use::Closed => self.spent.insert(rank),
            Use::Held | Use::Lost => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use rheostat_base::Time;

    use crate::nat::mapping::{External, InnerEndpoint, Mapping, MappingId, Mappings, Use};
    use crate::nat::ports::{PortSet, PortSets};
    use std::net::Ipv4Addr;

    const PORTS: usize = 24;
    const TCP: u8 = 6;

    /// Two shards of the same ports, of which one is asked for what others can have at each step, and so knows at all times.
    struct Pair {
        mappings: Mappings,
        sets: [PortSets; 2],
        /// The mapping of each port.
        owners: [Option<MappingId>; PORTS],
        now: Time,
    }

    impl Pair {
        fn new() -> Pair {
            let sets = [(); 2].map(|()| {
                let mut sets = PortSets::new(1);
                sets.get_or_make(0, TCP, || PortSet::new(PORTS, |_| true)).unwrap();
                sets
            });
            let owners = [None; PORTS];
            Pair { mappings: Mappings::default(), sets, owners, now: Time::from_secs(100) }
        }

        fn each(&mut self, act: impl FnMut(&mut PortSets)) {
            self.sets.iter_mut().for_each(act);
        }

        fn change(&mut self, rank: usize, change: impl FnOnce(&mut Mapping)) {
            let Some(id) = self.owners[rank] else { return };
            let before = self.mappings.get(id).usage();
            change(self.mappings.get_mut(id));
            self.usage_changes(rank, id, before, self.mappings.get(id).usage());
        }

        fn usage_changes(&mut self, rank: usize, id: MappingId, before: Use, after: Use) {
            if before == after {
                return;
            }
            if after == Use::Waiting {
                self.mappings.note_wait(id);
            }
            let host = self.mappings.get(id).inner().address;
            self.each(|sets| sets.use_changes((0, TCP), (before, after), || (rank, host)));
        }

        /// A host maps a port, which another may have had.
        fn map(&mut self, rank: usize, host: u8, step: usize) {
            let inner = InnerEndpoint {
                address: Ipv4Addr::new(10, 0, 0, host),
                port: step as u16,
                protocol: TCP,
                zone: 0,
            };
            if let Some(former) = self.owners[rank] {
                self.usage_changes(rank, former, self.mappings.get(former).usage(), Use::Held);
                self.mappings.get_mut(former).lose();
                self.each(|sets| sets.vacate(0, TCP, rank));
            }
            let id = self.mappings.insert(inner, External { address: 0, port: rank as u16 });
            self.each(|sets| sets.occupy(0, TCP, rank, id));
            self.owners[rank] = Some(id);
            self.change(rank, Mapping::join);
        }

        /// The only flow of a port's mapping ends.
        fn end(&mut self, rank: usize, rest: Duration) {
            let Some(id) = self.owners[rank] else { return };
            let is_firm = self.mappings.get(id).usage() == Use::Held;
            self.change(rank, |mapping| mapping.leave(is_firm));
            self.owners[rank] = None;
            self.mappings.remove(id);
            let now = self.now;
            self.each(|sets| sets.release((0, TCP), rank, now, rest));
        }
    }

    proptest! {
        /// What a set finds out when ports are short is what it would know had it kept it up to date all the time.
        #[test]
        fn what_is_found_out_late_is_what_was_there(
            steps in prop::collection::vec((0_u8..9, 0..PORTS, 0_u8..5), 1..400),
        ) {
            let mut pair = Pair::new();
            for (step, (kind, rank, host)) in steps.into_iter().enumerate() {
                let Pair { mappings, sets: [kept, _], .. } = &mut pair;
                kept.note_shortage(0, TCP, mappings);
                let usage = pair.owners[rank].map(|id| pair.mappings.get(id).usage());
                match (kind, usage) {
                    (0..=2, _) => pair.map(rank, host, step),
                    (3, Some(Use::Waiting | Use::Closed)) => pair.change(rank, Mapping::firm_up),
                    (4, Some(Use::Held)) => pair.change(rank, Mapping::loosen),
                    (5, _) => pair.end(rank, Duration::ZERO),
                    (6, _) => pair.end(rank, Duration::from_secs(60)),
                    (7, _) => {
                        pair.now += Duration::from_secs(u64::from(host) * 9);
                        let now = pair.now;
                        pair.each(|sets| sets.wake(0, TCP, now));
                    }
                    (8, _) => {
                        let Pair { mappings, sets: [_, late], .. } = &mut pair;
                        late.note_shortage(0, TCP, mappings);
                    }
                    _ => {}
                }
                let [one, other] = pair.sets.each_ref().map(|sets| sets.in_use().collect::<Vec<_>>());
                prop_assert_eq!(one, other);
                let [kept, late] = pair.sets.each_mut().map(|sets| sets.get_mut(0, TCP).unwrap());
                let kept = kept.shortage_mut().expect("asked for at each step");
                let Some(late) = late.shortage_mut() else { continue };
                for rank in 0..PORTS {
                    prop_assert_eq!(kept.spent.contains(rank), late.spent.contains(rank), "{}", rank);
                }
                for host in 0..5 {
                    let host = Ipv4Addr::new(10, 0, 0, host);
                    let [one, other] = [&mut *kept, &mut *late].map(|shortage| {
                        let mut taken = Vec::new();
                        while let Some(rank) =
                            shortage.waiting.oldest_of_largest(host, |rank| !taken.contains(&rank))
                        {
                            taken.push(rank);
                        }
                        taken
                    });
                    prop_assert_eq!(one, other);
                }
            }
        }
    }

    #[test]
    fn a_shortage_is_over_once_as_many_ports_as_there_are_were_given_back() {
        let mut pair = Pair::new();
        let Pair { mappings, sets: [sets, _], .. } = &mut pair;
        sets.note_shortage(0, TCP, mappings);
        for round in 0..2 * PORTS - 1 {
            if round == PORTS - 1 {
                // A request finds no port again.
                let Pair { mappings, sets: [sets, _], .. } = &mut pair;
                sets.note_shortage(0, TCP, mappings);
            }
            pair.map(round % PORTS, 1, round);
            pair.end(round % PORTS, Duration::ZERO);
            let is_over = round == 2 * PORTS - 2;
            let set = pair.sets[0].get(0, TCP).unwrap();
            assert_eq!(set.shortage().is_none(), is_over, "{round}");
        }
    }
}
