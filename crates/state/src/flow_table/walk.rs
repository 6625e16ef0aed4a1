//! Walking through the flows of a table, some entries at a time.

use std::ops::ControlFlow;

use rheostat_base::Time;
use rheostat_packet::FlowKey;

use super::entry::{EntryKind, NO_PARTNER};
use super::{Detached, FlowMut, FlowTable};

/// Entries that are requested ahead of the one that is looked at.
const AHEAD: u32 = 4;

/// A flow that a walk meets.
#[derive(Debug)]
pub enum WalkedFlow<'a> {
    /// The flow, to read and change.
    Here(FlowMut<'a>),
    /// A detached flow: of it, the table knows no more.
    Away(AwayFlow),
}

/// A detached flow with its keys.
#[derive(Clone, Copy, Debug)]
pub struct AwayFlow {
    /// The key the flow was created under.
    pub key: FlowKey,
    /// Its second key, if it has one.
    pub alias: Option<FlowKey>,
    /// The rest.
    pub detached: Detached,
}

impl WalkedFlow<'_> {
    /// When the flow ends unless a packet comes; of a detached flow, a time before which it does not end.
    pub fn deadline(&self) -> Time {
        match self {
            WalkedFlow::Here(flow) => flow.deadline(),
            WalkedFlow::Away(away) => away.detached.bound,
        }
    }
}

impl FlowTable {
    /// Shows the flows whose entries have numbers from `from` on to `visit`, in the order of these numbers, until that breaks off or
    /// `most` entries have been looked at. Returns the number of the next entry, which is that of the flow at which `visit` broke
    /// off; `None` when there is no other. Beside it, how many entries were looked at.
    ///
    /// An entry keeps its number as long as its flow lives: a walk in pieces shows each flow that lives all the while once, whatever
    /// happens to the table between them. Takes one or two cache lines per entry, of flows or free.
    pub fn walk(
        &mut self,
        from: u32,
        most: u32,
        mut visit: impl FnMut(WalkedFlow<'_>) -> ControlFlow<()>,
    ) -> (Option<u32>, u32) {
        let end = self.entries.used();
        let last = end.min(from.saturating_add(most));
        for index in from..last {
            if index + AHEAD < end {
                self.entries.prefetch_whole(index + AHEAD);
            }
            let flow = match self.entries.name(index).kind() {
                EntryKind::V6Alias => continue,
                EntryKind::Free => match self.away(index) {
                    Some(away) => WalkedFlow::Away(away),
                    None => continue,
                },
                EntryKind::V4 | EntryKind::V4Alias | EntryKind::V6 => {
                    WalkedFlow::Here(FlowMut::new(self, index))
                }
            };
            if visit(flow).is_break() {
                return (Some(index), index - from);
            }
        }
        ((last < end).then_some(last), last.saturating_sub(from))
    }

    /// The number behind that of every entry that has been in use: all flows of the table lie before it.
    pub fn walk_end(&self) -> u32 {
        self.entries.used()
    }

    /// The detached flow in entry `index`, if there is one.
    fn away(&self, index: u32) -> Option<AwayFlow> {
        let all = self.detached.as_ref()?;
        let (number, bound, keys) = all.of_flow(index)?;
        let own = Some(keys[1]).filter(|alias| *alias != FlowKey::NONE);
        let partner = self.entries.cold(index).partner;
        let alias = match partner {
            NO_PARTNER => own,
            partner => all.keys_at(partner).map(|keys| keys[0]),
        };
        let detached = Detached { flow: self.id(index), number, bound };
        Some(AwayFlow { key: keys[0], alias, detached })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use super::*;
    use crate::{FlowHasher, StateLayout, TableConfig};

    fn key(number: u32) -> FlowKey {
        let (inside, outside) = (Ipv4Addr::from_bits(number), Ipv4Addr::new(192, 0, 2, 1));
        FlowKey::v4((inside, 1), (outside, 443), 6, 0)
    }

    fn table() -> FlowTable {
        let config = TableConfig { capacity: 64, aliases: true };
        FlowTable::new(config, Arc::new(StateLayout::new()), FlowHasher::fixed()).unwrap()
    }

    fn add(table: &mut FlowTable, key: &FlowKey) -> crate::FlowId {
        let hash = table.hash_of(key);
        table.insert(hash, key, Time::ZERO).unwrap()
    }

    /// The keys that one piece of a walk shows, and where the next begins.
    fn piece(table: &mut FlowTable, from: u32, most: u32) -> (Vec<FlowKey>, Option<u32>) {
        let mut keys = Vec::new();
        let (next, _) = table.walk(from, most, |flow| {
            keys.push(match flow {
                WalkedFlow::Here(flow) => flow.key(),
                WalkedFlow::Away(away) => away.key,
            });
            ControlFlow::Continue(())
        });
        (keys, next)
    }

    #[test]
    fn a_walk_in_pieces_shows_each_flow_that_stays_once() {
        let mut table = table();
        let flows: Vec<_> = (0..20).map(|number| add(&mut table, &key(number))).collect();
        let (mut shown, next) = piece(&mut table, 0, 7);
        assert_eq!((shown.len(), next), (7, Some(7)));
        // One that was shown ends and one that was not; the entry of the former serves another flow.
        table.remove(flows[3]);
        table.remove(flows[12]);
        table.end_burst();
        add(&mut table, &key(100));
        let mut from = next;
        while let Some(at) = from {
            let (keys, next) = piece(&mut table, at, 5);
            shown.extend(keys);
            from = next;
        }
        let stayed = (0..20).filter(|number| ![3, 12].contains(number)).map(key);
        for key in stayed {
            assert_eq!(shown.iter().filter(|other| **other == key).count(), 1, "{key}");
        }
    }

    #[test]
    fn a_walk_that_breaks_off_goes_on_with_the_same_flow() {
        let mut table = table();
        (0..5).for_each(|number| _ = add(&mut table, &key(number)));
        let mut left = 2;
        let (next, looked) = table.walk(0, 100, |_| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((next, looked), (Some(2), 2));
        assert_eq!(piece(&mut table, 2, 100), ((2..5).map(key).collect(), None));
        assert_eq!(piece(&mut table, 99, 100), (Vec::new(), None), "beyond the end");
    }

    #[test]
    fn a_detached_flow_is_shown_with_both_keys_and_its_bound() {
        let mut table = table();
        let v6 = |last: u16| std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let six = FlowKey::v6((v6(1), 1), (v6(2), 2), 17, 0);
        for (key, alias) in [(key(1), key(2)), (six, six.reversed())] {
            let flow = add(&mut table, &key);
            let hash = table.hash_of(&alias);
            table.alias(flow, hash, &alias).unwrap();
            table.flow(flow).unwrap().set_deadline(Time::from_secs(9));
            let detached = table.detach(flow, 7).unwrap();
            let mut seen = Vec::new();
            table.walk(0, 100, |flow| {
                let WalkedFlow::Away(away) = flow else { return ControlFlow::Continue(()) };
                seen.push((away.key, away.alias, away.detached.number, away.detached.flow));
                assert!(away.detached.bound >= Time::from_secs(9));
                ControlFlow::Continue(())
            });
            assert_eq!(seen, [(key, Some(alias), 7, flow)]);
            table.attach(detached);
        }
    }
}
