//! The mappings of a shard: which external endpoint stands for an inner one, whatever the remote. They
//! are the coarser state to which flows are anchored, and live as long as one of their flows does.

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;

use hashbrown::HashTable;

/// Names a mapping of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// A mapping with its flows counted. Flows that someone outside has opened and nobody inside has
/// answered do not keep it in use (RFC 4787, REQ-6).
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) inner: InnerEndpoint,
    pub(super) external: External,
    /// Flows that inside has sent on.
    pub(super) kept_by: u32,
    /// Flows that only outside has sent on.
    pub(super) unanswered: u32,
}

const _: () = assert!(size_of::<Mapping>() <= 24);

/// The mappings of a shard.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    slots: Vec<Mapping>,
    free: Vec<u32>,
    by_inner: HashTable<u32>,
    /// Drawn at random, so that nobody can choose endpoints that collide.
    hasher: RandomState,
}

impl Mappings {
    /// The mapping of an inner endpoint.
    pub(super) fn find(&self, inner: &InnerEndpoint) -> Option<MappingId> {
        let is_it = |slot: &u32| self.slots[*slot as usize].inner == *inner;
        self.by_inner.find(self.hasher.hash_one(inner), is_it).map(|slot| MappingId(*slot))
    }

    /// A mapping that has not been removed.
    pub(super) fn get(&self, MappingId(slot): MappingId) -> &Mapping {
        &self.slots[slot as usize]
    }

    /// A mapping that has not been removed, to count its flows.
    pub(super) fn get_mut(&mut self, MappingId(slot): MappingId) -> &mut Mapping {
        &mut self.slots[slot as usize]
    }

    /// Adds a mapping without flows of an endpoint that has none.
    pub(super) fn insert(&mut self, inner: InnerEndpoint, external: External) -> MappingId {
        let mapping = Mapping { inner, external, kept_by: 0, unanswered: 0 };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = mapping;
                slot
            }
            None => {
                self.slots.push(mapping);
                (self.slots.len() - 1) as u32
            }
        };
        let Mappings { slots, by_inner, hasher, .. } = self;
        let hash = |slot: &u32| hasher.hash_one(slots[*slot as usize].inner);
        by_inner.insert_unique(hasher.hash_one(inner), slot, hash);
        MappingId(slot)
    }

    /// Removes a mapping that has no flow left.
    pub(super) fn remove(&mut self, MappingId(slot): MappingId) -> Mapping {
        let mapping = self.slots[slot as usize];
        debug_assert!(mapping.kept_by == 0 && mapping.unanswered == 0, "a mapping in use");
        let hash = self.hasher.hash_one(mapping.inner);
        if let Ok(entry) = self.by_inner.find_entry(hash, |known| *known == slot) {
            entry.remove();
            self.free.push(slot);
        }
        mapping
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
                        prop_assert_eq!(mappings.remove(id).external, external);
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
                    prop_assert_eq!(mappings.get(*id).inner, *inner);
                    prop_assert_eq!(mappings.get(*id).external, *external);
                }
            }
        }
    }
}
