//! What a function lists of its flows, and of tables of its own, while a run goes on. A function that lists implements [`Lists`] and
//! hands that over with its link ([`Link::listing`](crate::Link)), its stage ([`Stage::listing`](crate::Stage::listing)) or its
//! registration ([`FromSettings::LISTS`](crate::registry::FromSettings::LISTS)). Others are listed by their names.

use std::fmt;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::FlowKey;
use rheostat_run::listing::{FunctionFields, ListedFields};
use rheostat_state::FlowMut;

use crate::function::NetworkFunction;

/// What is known where a function lists something.
#[derive(Clone, Copy, Debug)]
pub struct ListCx<'a, S> {
    /// The time of the lane.
    pub now: Time,
    /// What the function keeps for the shard.
    pub shard: &'a S,
    /// The devices at which the latest packets of the flow arrived: those from the key's first end, and those from its second;
    /// [`DeviceId::NONE`] where none has come, and beside flows.
    pub devices: [DeviceId; 2],
}

/// Lists what a function knows of flows. Called by the lane that has the shard, between packets, only while a client lists: some
/// hundred nanoseconds per flow are a good measure. Changes and decides nothing.
pub trait Lists: NetworkFunction {
    /// Adds what is known of the flow that was opened under `key`.
    fn list(
        &self,
        cx: ListCx<'_, Self::Shard>,
        key: &FlowKey,
        flow: &Self::Flow,
        into: &mut ListedFields,
    );

    /// Adds entries that the function has in a table of its own in the shard, such as mappings: `most` at most, from number `from`
    /// on. Returns the number of the next entry, or `None` at the end. As with flows, an entry keeps its number while it lives.
    fn entries(
        &self,
        _cx: ListCx<'_, Self::Shard>,
        _from: u32,
        _most: usize,
        _into: &mut Vec<ListedFields>,
    ) -> Option<u32> {
        None
    }

    /// Adds the entries that are the same in all shards, such as those of the configuration.
    fn fixed_entries(&self, _into: &mut Vec<ListedFields>) {}
}

/// [`Lists::list`].
type List<F, S, T> = fn(&F, ListCx<'_, S>, &FlowKey, &T, &mut ListedFields);

/// [`Lists::entries`].
type Entries<F, S> = fn(&F, ListCx<'_, S>, u32, usize, &mut Vec<ListedFields>) -> Option<u32>;

/// The methods of [`Lists`] of an `F`, as values.
pub struct ListMethods<F: NetworkFunction> {
    pub(crate) list: List<F, <F as NetworkFunction>::Shard, <F as NetworkFunction>::Flow>,
    pub(crate) entries: Entries<F, <F as NetworkFunction>::Shard>,
    pub(crate) fixed_entries: fn(&F, &mut Vec<ListedFields>),
}

impl<F: Lists> ListMethods<F> {
    /// That of the function's own implementation.
    pub const fn of() -> ListMethods<F> {
        ListMethods { list: F::list, entries: F::entries, fixed_entries: F::fixed_entries }
    }
}

impl<F: NetworkFunction> Clone for ListMethods<F> {
    fn clone(&self) -> ListMethods<F> {
        *self
    }
}

impl<F: NetworkFunction> Copy for ListMethods<F> {}

impl<F: NetworkFunction> fmt::Debug for ListMethods<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListMethods")
    }
}

/// A flow whose functions are asked about it.
pub struct ListedFlow<'a, 'f> {
    pub(crate) now: Time,
    pub(crate) key: &'a FlowKey,
    pub(crate) flow: &'a mut FlowMut<'f>,
    pub(crate) into: &'a mut Vec<FunctionFields>,
}

impl fmt::Debug for ListedFlow<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedFlow").field("key", self.key).finish_non_exhaustive()
    }
}

/// The entries that are wanted of the function with a name.
#[derive(Debug)]
pub struct WantedEntries<'a> {
    pub(crate) function: &'a str,
    pub(crate) now: Time,
    pub(crate) from: u32,
    pub(crate) most: usize,
    pub(crate) into: &'a mut Vec<ListedFields>,
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use rheostat_run::listing::Value;
    use rheostat_state::{FlowHasher, FlowTable, StateLayout, TableConfig};

    use super::*;
    use crate::chain::{Chain, Chain2, Stage};
    use crate::cx::Cx;
    use crate::link::link;
    use crate::packet::Packet;
    use crate::verdict::{Outcome, Verdict};

    /// A function that counts packets, with a table of three entries.
    struct Counter;

    /// One that lists nothing.
    struct Silent;

    impl NetworkFunction for Counter {
        type Flow = u64;
        type Shard = u32;

        fn packet(&self, _: &mut Cx<'_, u32>, _: &mut Packet<'_>, _: &mut u64) -> Outcome<Verdict> {
            Ok(Verdict::Forward)
        }
    }

    impl NetworkFunction for Silent {
        type Flow = ();
        type Shard = ();

        fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, _: &mut ()) -> Outcome<Verdict> {
            Ok(Verdict::Forward)
        }
    }

    impl Lists for Counter {
        fn list(&self, cx: ListCx<'_, u32>, _: &FlowKey, flow: &u64, into: &mut ListedFields) {
            into.number("seen", *flow);
            into.number("of", u64::from(*cx.shard));
            into.counted(*flow, 0);
        }

        fn entries(
            &self,
            _: ListCx<'_, u32>,
            from: u32,
            most: usize,
            into: &mut Vec<ListedFields>,
        ) -> Option<u32> {
            let end = 3.min(from + most as u32);
            into.extend((from..end).map(|_| ListedFields::default()));
            (end < 3).then_some(end)
        }

        fn fixed_entries(&self, into: &mut Vec<ListedFields>) {
            into.push(ListedFields::default());
        }
    }

    #[test]
    fn functions_list_their_fields_and_others_their_names() {
        let mut layout = StateLayout::new();
        let counter = Stage::new(Counter, &mut layout).unwrap().listing();
        let silent = Stage::new(Silent, &mut layout).unwrap();
        let (seen, nothing) = (counter.handle, silent.handle);
        let chain = Chain2(counter, silent);
        let config = TableConfig { capacity: 8, aliases: false };
        let hasher = FlowHasher::fixed();
        let mut table = FlowTable::new(config, Arc::new(layout), hasher).unwrap();
        let key = FlowKey::v4((Ipv4Addr::LOCALHOST, 1), (Ipv4Addr::LOCALHOST, 2), 17, 0);
        let id = table.insert(table.hash_of(&key), &key, Time::ZERO).unwrap();
        let mut flow = table.flow(id).unwrap();
        let shard = (9, ());
        let list = |flow: &mut FlowMut<'_>| {
            let mut into = Vec::new();
            let now = Time::ZERO;
            chain.list(&shard, &mut ListedFlow { now, key: &key, flow, into: &mut into });
            into
        };
        assert_eq!(list(&mut flow), [], "no function has a state");
        flow.init(seen, 7);
        flow.init(nothing, ());
        let listed = list(&mut flow);
        let names: Vec<_> = listed.iter().map(|of| of.function).collect();
        assert_eq!(names, ["Counter", "Silent"]);
        let fields = &listed[0].fields;
        assert_eq!(fields.get("seen"), Some(&Value::Number(7)));
        assert_eq!(fields.get("of"), Some(&Value::Number(9)));
        assert_eq!(fields.counts(), Some((7, 0)));
        assert_eq!(listed[1].fields, ListedFields::default());
    }

    #[test]
    fn entries_come_in_pieces_from_the_function_with_the_name() {
        let mut layout = StateLayout::new();
        let counter = Stage::new(Counter, &mut layout).unwrap().listing();
        let chain = Chain2(Stage::new(Silent, &mut layout).unwrap(), counter);
        let entries = |function, from| {
            let mut into = Vec::new();
            let wanted =
                WantedEntries { function, now: Time::ZERO, from, most: 2, into: &mut into };
            let next = chain.entries(&((), 0), wanted);
            (into.len(), next)
        };
        assert_eq!([entries("Counter", 0), entries("Counter", 2)], [(2, Some(2)), (1, None)]);
        assert_eq!(entries("Silent", 0), (0, None));
        let mut fixed = Vec::new();
        chain.fixed_entries("Silent", &mut fixed);
        chain.fixed_entries("Counter", &mut fixed);
        assert_eq!(fixed.len(), 1);
    }

    #[test]
    #[should_panic(expected = "the listing of a function of another type")]
    fn a_link_is_listed_by_its_own_function_alone() {
        let _ = link(Silent).listing::<Counter>();
    }
}
