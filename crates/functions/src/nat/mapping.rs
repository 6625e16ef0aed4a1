//! The mappings of a shard: which external endpoint stands for an inner one, whatever the remote. They
//! are the coarser state to which flows are anchored, and live as long as one of their flows does. One whose
//! port another has got is not found any more; the flows it still has end on their own.

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;

use hashbrown::HashTable;
use rheostat_packet::FlowKey;
use rheostat_state::{FlowHasher, prefetch_line};

/// Names a mapping of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, packed(2))]
pub(super) struct MappingId(pub(super) u32);

/// An endpoint inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct InnerEndpoint {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) protocol: u8,
    pub(super) zone: u32,
}

/// What stands for it outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct External {
    /// The address, by its place in the pool.
    pub(super) address: u16,
    pub(super) port: u16,
}

/// A mapping with its flows counted, in a line of its own: whatever is kept about it is here. Flows that were opened from
/// outside and not answered inside do not keep it in use (RFC 4787, REQ-6).
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Mapping {
    address: Ipv4Addr,
    port: u16,
    pub(super) external: External,
    /// Flows that only outside has sent on, at most [`UNANSWERED`](super::bind::UNANSWERED).
    pub(super) unanswered: u8,
    flags: u8,
    protocol_and_zone: u32,
    /// Flows that inside has sent on: those that both ends have sent on and that are not over, and the
    /// rest.
    firm: u32,
    loose: u32,
    /// The remote host to which the first flows went, and those that go there: what it lets in from there. Of other
    /// hosts [`Permissions`](super::shard::Permissions) knows.
    remote: Ipv4Addr,
    to_remote: u32,
    /// Since when it waits, if it does, in the order of all mappings of the shard.
    waits_since: u64,
}

const _: () = assert!(size_of::<Mapping>() == 64);

/// Another mapping has the port.
const LOST: u8 = 1;
/// A flow may be among the loose ones that waits for its first answer.
const WAITS: u8 = 2;

/// What a mapping's port is for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It belongs to another mapping.
    Lost,
    /// A flow is open, or it is not known to be over: the port stays.
    Held,
    /// None of the flows was answered.
    Waiting,
    /// All its flows are over: the port is free for others.
    Closed,
}

impl Mapping {
    fn new(inner: InnerEndpoint, external: External) -> Mapping {
        let InnerEndpoint { address, port, protocol, zone } = inner;
        debug_assert!(zone < 1 << 24, "a zone has 24 bits");
        let protocol_and_zone = u32::from(protocol) << 24 | zone;
        let (unanswered, flags, firm, loose) = (0, 0, 0, 0);
        let (remote, to_remote, waits_since) = (Ipv4Addr::UNSPECIFIED, 0, 0);
        Mapping {
            address,
            port,
            external,
            unanswered,
            flags,
            protocol_and_zone,
            firm,
            loose,
            remote,
            to_remote,
            waits_since,
        }
    }

    /// The endpoint inside.
    pub(super) fn inner(&self) -> InnerEndpoint {
        let (protocol, zone) =
            ((self.protocol_and_zone >> 24) as u8, self.protocol_and_zone & 0xff_ffff);
        InnerEndpoint { address: self.address, port: self.port, protocol, zone }
    }

    /// What the port is for others.
    pub(super) fn usage(&self) -> Use {
        match () {
            () if self.flags & LOST != 0 => Use::Lost,
            () if self.firm > 0 || self.loose == 0 => Use::Held,
            () if self.flags & WAITS != 0 => Use::Waiting,
            () => Use::Closed,
        }
    }

    /// Whether inside has sent on any of its flows.
    pub(super) fn is_kept(&self) -> bool {
        self.firm > 0 || self.loose > 0
    }

    /// Whether it has no flow.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_kept() && self.unanswered == 0
    }

    /// A flow on which inside has sent joins. It waits for its first answer.
    pub(super) fn join(&mut self) {
        self.loose += 1;
        self.flags |= WAITS;
    }

    /// A flow has been answered, or one that was over is not.
    pub(super) fn firm_up(&mut self) {
        self.loose -= 1;
        self.firm += 1;
        self.forget_waits();
    }

    /// A flow is over.
    pub(super) fn loosen(&mut self) {
        self.firm -= 1;
        self.loose += 1;
    }

    /// A flow on which inside has sent ends.
    pub(super) fn leave(&mut self, is_firm: bool) {
        *(if is_firm { &mut self.firm } else { &mut self.loose }) -= 1;
        self.forget_waits();
    }

    /// A flow goes to a remote host: whether the mapping has room to note it.
    pub(super) fn grant(&mut self, remote: Ipv4Addr) -> bool {
        let fits = self.to_remote == 0 || self.remote == remote;
        if fits {
            self.remote = remote;
            self.to_remote += 1;
        }
        fits
    }

    /// A flow to a remote host ends: whether the mapping had noted one.
    pub(super) fn revoke(&mut self, remote: Ipv4Addr) -> bool {
        let is_noted = self.permits(remote);
        self.to_remote -= u32::from(is_noted);
        is_noted
    }

    /// Whether a flow to a remote host is noted here.
    pub(super) fn permits(&self, remote: Ipv4Addr) -> bool {
        self.to_remote > 0 && self.remote == remote
    }

    /// Flows on which inside has sent, and flows on which only outside has.
    pub(super) fn flows(&self) -> (u32, u32) {
        (self.firm + self.loose, self.unanswered.into())
    }

    /// Since when it waits, in the order of all mappings of the shard.
    pub(super) fn waits_since(&self) -> u64 {
        self.waits_since
    }

    /// Another mapping gets the port.
    pub(super) fn lose(&mut self) {
        self.flags |= LOST;
    }

    fn forget_waits(&mut self) {
        if self.loose == 0 {
            self.flags &= !WAITS;
        }
    }
}

/// The mappings of a shard.
#[derive(Debug)]
pub(super) struct Mappings {
    slots: Vec<Mapping>,
    /// Given back, to be taken again last first, while they are in the cache.
    free: Vec<u32>,
    by_inner: HashTable<u32>,
    /// Drawn at random, so that no host can choose endpoints that collide.
    hasher: FlowHasher,
    /// Mappings that have begun to wait so far.
    waited: u64,
}

impl Default for Mappings {
    fn default() -> Mappings {
        let random = RandomState::new();
        Mappings {
            slots: Vec::new(),
            free: Vec::new(),
            by_inner: HashTable::new(),
            hasher: FlowHasher::new(std::array::from_fn(|word| random.hash_one(word))),
            waited: 0,
        }
    }
}

/// The hash of an inner endpoint. Places in the table are named by low bits, which the flow table's hash has no use for.
#[inline]
fn hash_of(hasher: &FlowHasher, inner: &InnerEndpoint) -> u64 {
    let InnerEndpoint { address, port, protocol, zone } = *inner;
    let hash =
        hasher.hash(&FlowKey::v4((address, port), (Ipv4Addr::UNSPECIFIED, 0), protocol, zone));
    hash.0 ^ hash.0 >> 32
}

impl Mappings {
    /// The mapping of an inner endpoint.
    pub(super) fn find(&self, inner: &InnerEndpoint) -> Option<MappingId> {
        let is_it = |slot: &u32| self.slots[*slot as usize].inner() == *inner;
        self.by_inner.find(hash_of(&self.hasher, inner), is_it).map(|slot| MappingId(*slot))
    }

    /// Asks for a mapping's line.
    #[inline]
    pub(super) fn prefetch(&self, MappingId(slot): MappingId) {
        if let Some(mapping) = self.slots.get(slot as usize) {
            prefetch_line(mapping);
        }
    }

    /// A mapping that has not been removed.
    pub(super) fn get(&self, MappingId(slot): MappingId) -> &Mapping {
        &self.slots[slot as usize]
    }

    /// A mapping that has not been removed, to count its flows.
    pub(super) fn get_mut(&mut self, MappingId(slot): MappingId) -> &mut Mapping {
        &mut self.slots[slot as usize]
    }

    /// A mapping waits from now on for the first answer to any of its flows.
    pub(super) fn note_wait(&mut self, MappingId(slot): MappingId) {
        self.waited += 1;
        self.slots[slot as usize].waits_since = self.waited;
    }

    /// Adds a mapping without flows of an endpoint that has none.
    pub(super) fn insert(&mut self, inner: InnerEndpoint, external: External) -> MappingId {
        let mapping = Mapping::new(inner, external);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = mapping;
                // The line of the next one.
                self.free.last().inspect(|next| self.prefetch(MappingId(**next)));
                slot
            }
            None => {
                self.slots.push(mapping);
                (self.slots.len() - 1) as u32
            }
        };
        let Mappings { slots, by_inner, hasher, .. } = self;
        let hash = |slot: &u32| hash_of(hasher, &slots[*slot as usize].inner());
        by_inner.insert_unique(hash_of(hasher, &inner), slot, hash);
        MappingId(slot)
    }

    /// Lets the inner endpoint of a mapping have another. The mapping stays for the flows that it has.
    pub(super) fn unlink(&mut self, MappingId(slot): MappingId) {
        let hash = hash_of(&self.hasher, &self.slots[slot as usize].inner());
        if let Ok(entry) = self.by_inner.find_entry(hash, |known| *known == slot) {
            entry.remove();
        }
    }

    /// Removes a mapping that has no flow left.
    pub(super) fn remove(&mut self, MappingId(slot): MappingId) {
        debug_assert!(self.slots[slot as usize].is_unused(), "a mapping in use");
        self.unlink(MappingId(slot));
        self.free.push(slot);
    }

    /// The mappings in up to `most` slots from `from` on that have flows, and the next slot, if there is one.
    pub(super) fn from(
        &self,
        from: u32,
        most: usize,
    ) -> (Option<u32>, impl Iterator<Item = &Mapping>) {
        let first = self.slots.len().min(from as usize);
        let end = self.slots.len().min(first.saturating_add(most));
        let used = self.slots[first..end].iter().filter(|mapping| !mapping.is_unused());
        ((end < self.slots.len()).then_some(end as u32), used)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_inner.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn mappings_are_what_a_map_holds(steps in prop::collection::vec((0_u16..40, any::<bool>()), 0..200)) {
            let mut mappings = Mappings::default();
            let mut model: HashMap<InnerEndpoint, (MappingId, External)> = HashMap::new();
            for (step, (number, remove)) in steps.into_iter().enumerate() {
                let inner = InnerEndpoint {
                    address: Ipv4Addr::from_bits(u32::from(number % 7)),
                    port: number,
                    protocol: 17,
                    zone: 0,
                };
                match (model.get(&inner).copied(), remove) {
                    (Some((id, external)), true) => {
                        prop_assert_eq!(mappings.get(id).external, external);
                        mappings.remove(id);
                        model.remove(&inner);
                    }
                    (None, false) => {
                        let external = External { address: 0, port: step as u16 };
                        let id = mappings.insert(inner, external);
                        prop_assert!(model.values().all(|(other, _)| *other != id));
                        model.insert(inner, (id, external));
                    }
                    _ => {}
                }
                prop_assert_eq!(mappings.find(&inner), model.get(&inner).map(|(id, _)| *id));
                prop_assert_eq!(mappings.len(), model.len());
                for (inner, (id, external)) in &model {
                    prop_assert_eq!(mappings.get(*id).inner(), *inner);
                    prop_assert_eq!(mappings.get(*id).external, *external);
                }
            }
        }
    }
}
