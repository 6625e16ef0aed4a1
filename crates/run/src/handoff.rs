//! The rings on which packets go to the lane that owns their shard: one from each lane to each other,
//! each with a single producer and a single consumer, so that a packet of one flow keeps its order.

use std::sync::Arc;

use rheostat_base::LaneId;
use rheostat_base::sync::spsc::{self, Consumer, Producer};

use crate::lane::Placed;
use crate::waker::Waker;

/// The ends of the rings that one lane holds.
#[derive(Debug)]
pub struct Handoff {
    /// To every other lane; none to itself.
    outbound: Vec<Option<Outbound>>,
    /// From every other lane; none from itself.
    inbound: Vec<Option<Consumer<Placed>>>,
    /// One per lane, of the worker that runs it; none before the workers are known.
    wakers: Vec<Arc<Waker>>,
    /// Where the next round of taking starts, so that no sender is always last.
    start: usize,
}

#[derive(Debug)]
struct Outbound {
    ring: Producer<Placed>,
    /// Packets of this poll, published together.
    staged: Vec<Placed>,
}

impl Handoff {
    /// Connects `lanes` lanes, each pair by a ring for at least `capacity` packets each way.
    pub fn mesh(lanes: usize, capacity: usize) -> Vec<Handoff> {
        let mut ends: Vec<Handoff> = (0..lanes)
            .map(|_| Handoff {
                outbound: Vec::new(),
                inbound: Vec::new(),
                wakers: Vec::new(),
                start: 0,
            })
            .collect();
        for from in 0..lanes {
            for to in 0..lanes {
                if from == to {
                    ends[from].outbound.push(None);
                    ends[to].inbound.push(None);
                } else {
                    let (ring, consumer) = spsc::ring(capacity);
                    ends[from].outbound.push(Some(Outbound { ring, staged: Vec::new() }));
                    ends[to].inbound.push(Some(consumer));
                }
            }
        }
        ends
    }

    /// Lets the lane wake the workers of others, of which `wakers` has one per lane.
    pub(crate) fn wake_by(&mut self, wakers: Vec<Arc<Waker>>) {
        self.wakers = wakers;
    }

    /// Lays a packet aside for lane `to`; [`Handoff::publish`] sends it.
    ///
    /// # Panics
    /// When `to` is this lane: a packet that is home already is not handed off.
    pub fn stage(&mut self, to: LaneId, packet: Placed) {
        let outbound = self.outbound[to.index()].as_mut();
        outbound.expect("a packet is handed to another lane").staged.push(packet);
    }

    /// Sends what was laid aside. Packets for which a ring has no room are passed to `refused`, oldest
    /// first. Returns how many were sent.
    pub fn publish(&mut self, mut refused: impl FnMut(Placed)) -> usize {
        let mut sent = 0;
        for (to, outbound) in self.outbound.iter_mut().enumerate() {
            let Some(outbound) = outbound.as_mut().filter(|out| !out.staged.is_empty()) else {
                continue;
            };
            let mut staged = outbound.staged.drain(..);
            sent += outbound.ring.push_all(&mut staged);
            staged.for_each(&mut refused);
            if let Some(waker) = self.wakers.get(to) {
                waker.wake();
            }
        }
        sent
    }

    /// Takes up to `limit` packets from each sender, in order per sender. Returns how many.
    pub fn take(&mut self, limit: usize, mut f: impl FnMut(Placed)) -> usize {
        let lanes = self.inbound.len();
        self.start = (self.start + 1) % lanes.max(1);
        let mut taken = 0;
        for step in 0..lanes {
            if let Some(ring) = &mut self.inbound[(self.start + step) % lanes] {
                taken += ring.pop_each(limit, &mut f);
            }
        }
        taken
    }

    /// Packets waiting to be taken by this lane.
    pub fn waiting(&self) -> usize {
        self.inbound.iter().flatten().map(Consumer::len).sum()
    }
}
