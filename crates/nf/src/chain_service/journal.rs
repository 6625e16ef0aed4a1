//! What is kept of what a packet does on its way through a chain: nothing where that stays as it is, enough to undo it
//! where it is done in a transaction.

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

use rheostat_base::ShardId;
use rheostat_packet::Mbuf;
use rheostat_run::{LaneCounters, Output, PacketInfo, ShardSet};
use rheostat_state::{FlowId, FlowMut};

use crate::chain::Chain;
use crate::cx::{Outbox, OutboxLen};
use crate::packet::Packet;

/// Is told what is done to flows and packets, in order.
pub trait Journal: Debug + Default + Send {
    /// What it keeps of the functions' states of a flow.
    type Saved: Send;
    /// The same for other states.
    type Of<S: Send>: Journal<Saved = S>;
    /// That of a chain of two: whatever one of them can undo, both must.
    type And<J: Journal, S: Send>: Journal<Saved = S>;

    /// A transaction begins: what has been originated so far stays.
    #[inline]
    fn start(&mut self, _made: OutboxLen) {}

    /// What comes now is about the packet with this number.
    #[inline]
    fn turn_to(&mut self, _packet: usize) {}

    /// A handler is about to see a flow of this shard.
    #[inline]
    fn seen<C>(&mut self, _: &C, _: ShardId, _: &mut FlowMut<'_>)
    where
        C: Chain<Journal = Self, Saved = Self::Saved>,
    {
    }

    /// A packet came after a younger one of its flow.
    fn late(&mut self, counters: &LaneCounters);

    /// A flow has entered the table of a shard.
    fn created(&mut self, shard: ShardId, flow: FlowId, counters: &LaneCounters);

    /// The flow may be evicted from now on, or may no longer.
    fn evictable(&mut self, shard: ShardId, flow: &mut FlowMut<'_>, evictable: bool);

    /// A packet for handlers to change.
    fn packet<'a>(&'a mut self, packet: &'a mut Mbuf, info: &'a PacketInfo) -> Packet<'a>;

    /// Everything stays.
    fn keep(&mut self, _shards: &mut ShardSet, _counters: &LaneCounters) {}

    /// Everything becomes what it was.
    fn roll_back<C>(
        &mut self,
        _chain: &C,
        _packets: &mut [Mbuf],
        _originated: &mut Outbox,
        _shards: &mut ShardSet,
        _out: &mut Output,
    ) where
        C: Chain<Journal = Self, Saved = Self::Saved>,
    {
    }
}

/// For flows that one lane owns, whose handlers run once: everything is done at once, and stays.
pub struct AtOnce<S = ()>(PhantomData<fn() -> S>);

const _: () = assert!(size_of::<AtOnce>() == 0);

impl<S> Default for AtOnce<S> {
    fn default() -> AtOnce<S> {
        AtOnce(PhantomData)
    }
}

impl<S> Debug for AtOnce<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("AtOnce")
    }
}

impl<S: Send> Journal for AtOnce<S> {
    type Saved = S;
    type Of<T: Send> = AtOnce<T>;
    type And<J: Journal, T: Send> = J::Of<T>;

    #[inline]
    fn late(&mut self, counters: &LaneCounters) {
        counters.reordered.increment();
    }

    #[inline]
    fn created(&mut self, _: ShardId, _: FlowId, counters: &LaneCounters) {
        counters.flows_created.increment();
    }

    #[inline]
    fn evictable(&mut self, _: ShardId, flow: &mut FlowMut<'_>, evictable: bool) {
        flow.set_evictable(evictable);
    }

    #[inline(always)]
    fn packet<'a>(&'a mut self, packet: &'a mut Mbuf, info: &'a PacketInfo) -> Packet<'a> {
        Packet::new(packet, info)
    }
}
