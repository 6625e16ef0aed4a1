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
