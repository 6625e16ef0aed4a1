//! Taking endpoints back, and what ports become for others as their flows are answered and end.

use std::net::Ipv4Addr;

use rheostat_base::Time;

use super::Nat;
use super::config::Filtering;
use super::crowd::Way;
use super::flow::{Binding, Ends, FlowState, Stage, Translated};
use super::log::MappingChange;
use super::mapping::{External, Mapping, MappingId, Use};
use super::shard::NatShard;

impl Nat {
    /// A flow that waited has been answered, is over, or is not over after all.
    #[cold]
    pub(super) fn turn(&self, shard: &mut NatShard, zone: u32, state: &mut FlowState, to: Stage) {
        let from = std::mem::replace(&mut state.stage, to);
        let Some(Translated { ends, binding, mapping, .. }) = state.translated else { return };
        match binding {
            Binding::Fixed | Binding::Asked => {}
            Binding::Mapping => self.change(shard, mapping, |mapping| {
                if from != Stage::Firm {
                    mapping.firm_up();
                }
                if to != Stage::Firm {
                    mapping.loosen();
                }
            }),
            Binding::Own => {
                match (from, to) {
                    (_, Stage::Closed) => self.give_back_to_quota(ends.inner.0),
                    (Stage::Closed, _) => self.take_anyway(ends.inner.0),
                    _ => {}
                }
                let way = Way::of(&ends, state.protocol, zone);
                let rank = shard.classes.of(state.protocol).rank(ends.external.1);
                if let Some(crowd) = shard.crowds.get_mut(&way) {
                    crowd.unmark(rank, ends.inner.0);
                    crowd.mark(rank, state.holding());
                }
            }
        }
    }

    /// Whether another mapping has got the port of a flow's.
    pub(super) fn has_lost_port(&self, shard: &NatShard, translated: &Translated) -> bool {
        let has_mapping = matches!(translated.binding, Binding::Mapping | Binding::Asked);
        has_mapping && shard.mappings.get(translated.mapping).usage() == Use::Lost
    }

    /// Whether a mapping is kept by any flow that inside has sent on.
    pub(super) fn is_kept(&self, shard: &NatShard, id: MappingId) -> bool {
        let mapping = shard.mappings.get(id);
        mapping.is_kept() && mapping.usage() != Use::Lost
    }

    /// Asks for what taking back a flow's endpoint will look at.
    #[inline]
    pub(super) fn prefetch_release(&self, shard: &NatShard, protocol: u8, translated: &Translated) {
        let Translated { ends, binding, mapping, .. } = translated;
        if *binding == Binding::Mapping {
            shard.mappings.prefetch(*mapping);
            // Every mapping of the host is of this address, unless there are several.
            if let Some(part) = self.rules.pool.parts_of(ends.inner.0).next() {
                shard.sets.prefetch(part.address, protocol);
            }
        }
    }

    /// Takes back what a flow that ends had. `has_rested` says that the flow's connection was over, and that
    /// its time has passed since: its port need not rest.
    pub(super) fn release(
        &self,
        shard: &mut NatShard,
        (protocol, zone): (u8, u32),
        (translated, stage): (Translated, Stage),
        now: Time,
        has_rested: bool,
    ) {
        let Translated { ends, binding, mapping: id, .. } = translated;
        match binding {
            Binding::Fixed => return,
            Binding::Own => {
                // Another flow has the endpoint already, and its end is noted.
                if shard.displaced.take_if(|displaced| *displaced == ends).is_none() {
                    let rank = shard.classes.of(protocol).rank(ends.external.1);
                    shard.crowds.release(&Way::of(&ends, protocol, zone), rank, ends.inner.0);
                    self.end_own(shard, protocol, &ends, stage, now);
                }
                return;
            }
            Binding::Asked => shard.mappings.get_mut(id).unanswered -= 1,
            Binding::Mapping => {
                let counts = self.rules.config.filtering == Filtering::AddressDependent;
                if counts && !shard.mappings.get_mut(id).revoke(ends.remote.0) {
                    shard.permissions.revoke(id, ends.remote.0);
                }
                self.change(shard, id, |mapping| mapping.leave(stage == Stage::Firm));
            }
        }
        if shard.mappings.get(id).is_unused() {
            self.unmap(shard, id, now, has_rested);
            shard.mappings.remove(id);
        }
    }

    /// An endpoint that a flow had for itself is taken back.
    pub(super) fn end_own(
        &self,
        shard: &mut NatShard,
        protocol: u8,
        ends: &Ends,
        stage: Stage,
        now: Time,
    ) {
        if stage != Stage::Closed {
            self.give_back_to_quota(ends.inner.0);
        }
        shard.counts.ended += 1;
        let event = self.event(MappingChange::Ended, protocol, ends, true, now);
        shard.note(event);
    }

    /// Takes a port away from a mapping, for another to have it at once. The mapping's flows end on their own.
    pub(super) fn dispossess(&self, shard: &mut NatShard, id: MappingId, now: Time) {
        self.end_mapping(shard, id, now);
        let rank = self.rank_of(shard, id);
        let mapping = shard.mappings.get_mut(id);
        let (external, protocol) = (mapping.external, mapping.inner().protocol);
        mapping.lose();
        self.dispossessed.add(0, 1);
        shard.mappings.unlink(id);
        shard.sets.vacate(external.address, protocol, rank);
    }

    /// The last flow of a mapping ends: its port rests, if it still has it.
    fn unmap(&self, shard: &mut NatShard, id: MappingId, now: Time, has_rested: bool) {
        if shard.mappings.get(id).usage() == Use::Lost {
            self.dispossessed.add(0, -1);
            return;
        }
        self.end_mapping(shard, id, now);
        let rank = self.rank_of(shard, id);
        let mapping = shard.mappings.get(id);
        let (external, protocol) = (mapping.external, mapping.inner().protocol);
        let rest = if has_rested { std::time::Duration::ZERO } else { self.rules.config.rest };
        shard.sets.release((external.address, protocol), rank, now, rest);
    }

    /// The endpoint of a mapping that has its port is taken back: counted, noted, and no longer anything to
    /// others.
    fn end_mapping(&self, shard: &mut NatShard, id: MappingId, now: Time) {
        let ends = self.ends_of(shard, id);
        let mapping = shard.mappings.get(id);
        let (usage, protocol) = (mapping.usage(), mapping.inner().protocol);
        self.use_changes(shard, id, usage, Use::Held);
        self.give_back_to_quota(ends.inner.0);
        shard.counts.ended += 1;
        let event = self.event(MappingChange::Ended, protocol, &ends, false, now);
        shard.note(event);
    }

    /// Changes a mapping, and what its port is for others with it.
    pub(super) fn change(
        &self,
        shard: &mut NatShard,
        id: MappingId,
        change: impl FnOnce(&mut Mapping),
    ) {
        let mapping = shard.mappings.get_mut(id);
        let before = mapping.usage();
        change(mapping);
        let after = mapping.usage();
        if before != after {
            self.use_changes(shard, id, before, after);
        }
    }

    fn use_changes(&self, shard: &mut NatShard, id: MappingId, before: Use, after: Use) {
        if after == Use::Waiting {
            shard.mappings.note_wait(id);
        }
        let NatShard { sets, mappings, classes, .. } = shard;
        let mapping = mappings.get(id);
        let (inner, External { address, port }) = (mapping.inner(), mapping.external);
        match (before, after) {
            (Use::Closed, _) => self.take_anyway(inner.address),
            (_, Use::Closed) => self.give_back_to_quota(inner.address),
            _ => {}
        }
        sets.use_changes((address, inner.protocol), (before, after), || {
            (classes.of(inner.protocol).rank(port), inner.address)
        });
    }

    /// The rank of a mapping's port in its class.
    fn rank_of(&self, shard: &NatShard, id: MappingId) -> usize {
        let mapping = shard.mappings.get(id);
        shard.classes.of(mapping.inner().protocol).rank(mapping.external.port)
    }

    /// The endpoints of a mapping, without a remote one.
    pub(super) fn ends_of(&self, shard: &NatShard, id: MappingId) -> Ends {
        let mapping = shard.mappings.get(id);
        let (External { address, port }, inner) = (mapping.external, mapping.inner());
        Ends {
            inner: (inner.address, inner.port),
            external: (self.rules.pool.address(address), port),
            remote: (Ipv4Addr::UNSPECIFIED, 0),
        }
    }
}
