//! Packets that wait for the link address of their next hop (RFC 4861, section 7.2.2; RFC 1122, section
//! 2.3.2.2).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rheostat_base::{DropReason, Time};
use rheostat_packet::Mbuf;

use rheostat_run::Output;

use super::{Departure, Next, Origin, Path, Stack};

use crate::icmp_error::Problem;
use crate::neighbour::{NeighbourKey, Resolution};

/// How long no new neighbour is resolved once the table has refused one: meanwhile the table's lock is left alone.
const REST: Duration = Duration::from_millis(2);

/// The packets of a lane that wait.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    queues: HashMap<NeighbourKey, VecDeque<(Mbuf, Path)>>,
    count: usize,
    most: usize,
    most_each: usize,
    rests_until: Time,
}

impl WaitingRoom {
    pub(super) fn new(most: usize, most_each: usize) -> WaitingRoom {
        let queues = HashMap::new();
        WaitingRoom { queues, count: 0, most, most_each: most_each.max(1), rests_until: Time::ZERO }
    }

    /// Other limits, for packets that come from now on.
    pub(super) fn set_limits(&mut self, most: usize, most_each: usize) {
        (self.most, self.most_each) = (most, most_each.max(1));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_waiting_for(&self, key: &NeighbourKey) -> bool {
        self.queues.contains_key(key)
    }

    /// The neighbours that packets wait for.
    pub(super) fn keys(&self) -> impl Iterator<Item = &NeighbourKey> {
        self.queues.keys()
    }

    /// Takes out all packets.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Mbuf, Path)> + '_ {
        self.count = 0;
        self.queues.drain().flat_map(|(_, queue)| queue)
    }

    fn take(&mut self, key: &NeighbourKey) -> VecDeque<(Mbuf, Path)> {
        let queue = self.queues.remove(key).unwrap_or_default();
        self.count -= queue.len();
        queue
    }

    /// Lets a packet wait, and returns one for which there is no room.
    fn push(&mut self, key: NeighbourKey, packet: Mbuf, path: Path) -> Option<Mbuf> {
        let queue = self.queues.entry(key).or_default();
        queue.push_back((packet, path));
        self.count += 1;
        // The oldest goes: its sender is the first to try again.
        if queue.len() <= self.most_each && self.count <= self.most {
            return None;
        }
        self.count -= 1;
        let oldest = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&key);
        }
        oldest.map(|(packet, _)| packet)
    }
}

impl Stack {
    /// Takes a packet that has to wait, and requests its next hop's link address if that has not been done.
    #[cold]
    #[inline(never)]
    pub fn hold(&mut self, mut packet: Mbuf, next: Next, out: &mut Output) {
        let Next { key, path } = next;
        if !self.waiting.is_waiting_for(&key) {
            let mut questions = Vec::new();
            let resolution = match self.waiting.rests_until > out.now() {
                true => Resolution::Refused,
                false => self
                    .network
                    .with_neighbours(|table| table.resolve(key, out.now(), &mut questions)),
            };
            match resolution {
                Resolution::Asked => self.ask_all(&questions, out),
                Resolution::Refused => {
                    if self.waiting.rests_until <= out.now() {
                        self.waiting.rests_until = out.now() + REST;
                    }
                    return out.drop(packet, DropReason::NeighbourUnresolved);
                }
                // Another lane has learned it a moment ago.
                Resolution::Known(mac) => {
                    let departure = self.seal(&mut packet, path, key.device(), mac, out);
                    return self.conclude(packet, departure, out);
                }
            }
        }
        if let Some(packet) = self.waiting.push(key, packet, path) {
            out.drop(packet, DropReason::NeighbourUnresolved);
        }
        self.look_again = self.look_again.min(out.now() + super::LOOK_AGAIN);
        self.count_waiting(out);
    }

    /// A neighbour that packets wait for has answered, or is given up.
    pub(super) fn settle(&mut self, key: NeighbourKey, out: &mut Output) {
        let seen = self.neighbours.get(&key);
        for (mut packet, path) in self.waiting.take(&key) {
            let departure = match seen {
                Some(seen) => self.seal(&mut packet, path, key.device(), seen.mac, out),
                None => {
                    if path.origin != Origin::Own {
                        let (device, problem) = (key.device(), Problem::NoHost);
                        self.complain_after_chain(&packet, path, device, problem, out);
                    }
                    Departure::Drop(DropReason::NeighbourUnresolved)
                }
            };
            self.conclude(packet, departure, out);
        }
        self.count_waiting(out);
    }

    fn conclude(&mut self, packet: Mbuf, departure: Departure, out: &mut Output) {
        match departure {
            Departure::Send(device) => out.send(device, packet),
            Departure::Drop(reason) => out.drop(packet, reason),
            Departure::Consume | Departure::Hold(_) => out.consume(packet),
        }
    }

    fn count_waiting(&self, out: &Output) {
        out.counters().waiting.set(self.waiting.count as u64);
    }
}
