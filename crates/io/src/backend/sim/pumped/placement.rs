//! What one receive queue of a NIC that never sleeps holds: a function of when packets were due, when the
//! indirection table was rewritten, and when the lane gave descriptors back. When it is worked out changes nothing.
//!
//! A descriptor that is given back at t takes the first arrival of its queue, under the table in force when that
//! arrival was due, that is due after t and not taken yet. The arrivals that find every descriptor occupied are the drops.
//! Replies to what the device sent are arrivals like any other.

use std::collections::VecDeque;
use std::sync::Arc;

use rheostat_base::{DeviceId, QueueId};
use rheostat_packet::{AllocError, Mbuf, PoolCache};

use super::arrivals::Chunk;
use super::chunk_list::{ALL, Link};
use crate::backend::sim::answering::Answering;

/// Arrivals that are looked through for the next one of a queue.
const NEAR: usize = 64;
/// In the place of an arrival's: a reply.
const REPLY: u32 = u32::MAX;

/// Times are in nanoseconds, on the clock of the run.
#[derive(Debug)]
pub(super) struct Placement {
    queue: QueueId,
    descriptors: usize,
    /// By bucket: whether it leads to this queue, under the table in force at `placed`.
    mine: Box<[bool]>,
    /// Tables to come: each is in force for what is due after its time.
    tables: VecDeque<(u64, Arc<[QueueId]>)>,
    /// From the chunk of the first packet that waits to the one that is being placed. Never empty.
    chunks: VecDeque<Arc<Link>>,
    /// The number of the first of them.
    first_chunk: u64,
    /// The next arrival to be placed in the last of them.
    at: usize,
    /// Chunk and place of each packet that waits; of a reply, a chunk that is not behind that of any packet behind it, and
    /// [`REPLY`].
    waiting: VecDeque<(u64, u32)>,
    /// Replies to what the device sends.
    answering: Option<Answering>,
    /// Descriptors that hold a packet at `placed`.
    occupied: usize,
    /// Descriptors given back at or after `placed`: when, and how many.
    released: VecDeque<(u64, usize)>,
    /// Every arrival that was due before is placed.
    placed: u64,
    /// The first moment whose arrivals no longer come: the source was stopped.
    end: u64,
}

/// What became of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) arrived: u64,
    pub(super) arrived_bytes: u64,
    /// Found no descriptor.
    pub(super) dropped: u64,
    pub(super) oversize: u64,
    pub(super) enqueued: u64,
}

impl Placement {
    /// A queue that sees all that is drawn after `first`, under `table`.
    pub(super) fn new(
        queue: QueueId,
        descriptors: usize,
        table: &[QueueId],
        first: Arc<Link>,
    ) -> Placement {
        Placement {
            queue,
            descriptors,
            mine: table.iter().map(|&to| to == queue).collect(),
            tables: VecDeque::new(),
            chunks: VecDeque::from([first]),
            first_chunk: 0,
            at: 0,
            waiting: VecDeque::with_capacity(descriptors),
            answering: None,
            occupied: 0,
            released: VecDeque::new(),
            placed: 0,
            end: ALL,
        }
    }

    /// The same with replies among what arrives.
    pub(super) fn with_replies(self, answering: Answering) -> Placement {
        Placement { answering: Some(answering), ..self }
    }

    /// Packets that wait, of those that were due before [`Placement::placed`].
    pub(super) fn backlog(&self) -> usize {
        self.waiting.len()
    }

    /// Every arrival that was due before is placed.
    pub(super) fn placed(&self) -> u64 {
        self.placed
    }

    /// Arrivals that are due after `at` are placed by `table`; all of them, where there is no such moment yet.
    pub(super) fn rewrite(&mut self, at: Option<u64>, table: &Arc<[QueueId]>) {
        match at {
            Some(at) => self.tables.push_back((at, table.clone())),
            None => self.put_in_force(table),
        }
    }

    fn put_in_force(&mut self, table: &[QueueId]) {
        for (mine, to) in self.mine.iter_mut().zip(table) {
            *mine = *to == self.queue;
        }
    }

    /// Tables that are known and not in force yet.
    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Nothing that is due at `end` or later arrives.
    pub(super) fn stop(&mut self, end: u64) {
        self.end = self.end.min(end);
    }

    /// Whether the source was stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.end != ALL
    }

    /// Whether nothing more arrives, unless the device sends more that is answered.
    pub(super) fn has_ended(&self) -> bool {
        let is_answered = self.answering.as_ref().is_some_and(|answering| !answering.is_idle());
        self.placed >= self.end || self.is_through() && !is_answered
    }

    /// Before when no reply arrives at this queue, if the present is `now`; `None` where nothing is answered.
    pub(super) fn next_reply(&self, now: u64) -> Option<u64> {
        self.answering.as_ref().map(|answering| answering.next_due(now))
    }

    /// Before when nothing of the source arrives at this queue, from the start of the source; unless its table is rewritten meanwhile,
    /// which makes the lane look in vain, or a little later. `None` if the arrivals that come next are not drawn.
    pub(super) fn next_due(&self) -> Option<u64> {
        let last = self.last();
        let records = &last.chunk.records()[self.at..];
        let near = &records[..records.len().min(NEAR)];
        let own = near.iter().find(|record| self.mine[usize::from(record.bucket)]);
        match own.or(near.last()) {
            Some(record) => Some(record.due),
            None => last.next().is_none().then(|| last.complete()),
        }
    }

    /// Whether every arrival of a source that has ended is placed.
    fn is_through(&self) -> bool {
        let last = self.last();
        self.at == last.chunk.records().len() && last.complete() == ALL
    }

    fn last(&self) -> &Arc<Link> {
        self.chunks.back().expect("there is a chunk being placed")
    }

    /// Places what is due before `until`, as far as it is drawn; the source starts at `origin`. Where it is not,
    /// [`Placement::placed`] stays behind `until`.
    pub(super) fn place(&mut self, until: u64, origin: u64) -> Placed {
        let until = until.min(self.end);
        let mut sum = Placed::default();
        self.fetch_replies(until);
        while self.placed < until {
            // Taken out and put back: lanes that count references would share a cache line.
            let link = self.chunks.pop_back().expect("there is a chunk being placed");
            let has_more = self.place_chunk(&link.chunk, until, origin, &mut sum);
            let next = link.next().filter(|_| !has_more).cloned();
            let complete = origin.saturating_add(link.complete());
            self.chunks.push_back(link);
            if has_more {
                self.placed = until;
            } else if let Some(next) = next {
                self.at = 0;
                self.chunks.push_back(next);
                self.free_chunks();
            } else {
                self.placed = self.placed.max(complete.min(until));
                break;
            }
        }
        self.change_before(self.placed, &mut sum);
        sum
    }

    /// Fetches the replies that are due before `until` and lead here when they are due.
    fn fetch_replies(&mut self, until: u64) {
        let Some(answering) = &mut self.answering else { return };
        if self.placed >= until {
            return;
        }
        let (tables, mine, queue) = (&self.tables, &self.mine, self.queue);
        answering.fetch(until, |due, bucket| match tables.iter().rfind(|(at, _)| *at < due) {
            Some((_, table)) => table[bucket] == queue,
            None => mine[bucket],
        });
    }

    /// Places what the last chunk, which is not among the others meanwhile, has that is due before `until`; whether it
    /// has more.
    fn place_chunk(&mut self, chunk: &Chunk, until: u64, origin: u64, sum: &mut Placed) -> bool {
        let mut number = self.at;
        let last_chunk = self.first_chunk + self.chunks.len() as u64;
        let mut change = self.next_change();
        for record in &chunk.records()[self.at..] {
            let due = origin.saturating_add(record.due);
            if due >= until {
                self.at = number;
                return true;
            }
            if due > change {
                change = self.change_before(due, sum);
            }
            if self.mine[usize::from(record.bucket)] {
                sum.arrived += 1;
                sum.arrived_bytes += u64::from(chunk.wire_len_of(record, number));
                if record.is_wide() && chunk.is_oversize(number) {
                    sum.oversize += 1;
                } else if self.occupied == self.descriptors {
                    sum.dropped += 1;
                } else {
                    sum.enqueued += 1;
                    self.occupied += 1;
                    self.waiting.push_back((last_chunk, number as u32));
                }
            }
            number += 1;
        }
        self.at = number;
        false
    }

    /// After when something is different: another table, descriptors that were given back, a reply.
    fn next_change(&self) -> u64 {
        let table = self.tables.front().map_or(u64::MAX, |(at, _)| *at);
        let reply = self.answering.as_ref().and_then(Answering::first_due).unwrap_or(u64::MAX);
        table.min(reply).min(self.released.front().map_or(u64::MAX, |(at, _)| *at))
    }

    /// Makes what changed before `due` so, and returns the next change.
    #[cold]
    fn change_before(&mut self, due: u64, sum: &mut Placed) -> u64 {
        while let Some(reply) = self.answering.as_mut().and_then(|replies| replies.pop_due(due)) {
            self.settle(reply.due);
            sum.arrived += 1;
            sum.arrived_bytes += reply.wire_len();
            if self.occupied == self.descriptors {
                sum.dropped += 1;
                continue;
            }
            sum.enqueued += 1;
            self.occupied += 1;
            self.waiting.push_back((self.first_chunk, REPLY));
            if let Some(answering) = &mut self.answering {
                answering.enqueue(reply);
            }
        }
        self.settle(due);
        self.next_change()
    }

    /// Puts tables in force that were written before `due`, and frees what was given back before.
    fn settle(&mut self, due: u64) {
        while let Some((_, table)) = self.tables.pop_front_if(|(at, _)| *at < due) {
            self.put_in_force(&table);
        }
        while let Some((_, count)) = self.released.pop_front_if(|(at, _)| *at < due) {
            self.occupied -= count;
        }
    }

    /// Takes up to `limit` packets that wait, in the order of their arrival, and gives their descriptors back at `now`.
    /// Returns how many, and for how many of them there was no buffer: these are gone.
    pub(super) fn take(
        &mut self,
        limit: usize,
        (now, origin, device): (u64, u64, DeviceId),
        pool: &mut PoolCache,
        mut each: impl FnMut(Mbuf),
    ) -> (usize, usize) {
        let count = limit.min(self.waiting.len());
        let mut without_buffer = 0;
        for (chunk, index) in self.waiting.drain(..count) {
            let packet = match &mut self.answering {
                Some(answering) if index == REPLY => answering.receive(device, pool),
                _ => {
                    let link = &self.chunks[(chunk - self.first_chunk) as usize];
                    link.chunk.packet(index, origin, device, pool)
                }
            };
            match packet {
                Ok(packet) => each(packet),
                Err(AllocError::Empty | AllocError::Oversize) => without_buffer += 1,
            }
        }
        if count > 0 {
            // A lane that read the clock before others placed its arrivals gives back now.
            let at = now.max(self.placed.saturating_sub(1));
            self.released.push_back((at, count));
            self.settle(self.placed);
            self.free_chunks();
        }
        (count - without_buffer, without_buffer)
    }

    fn free_chunks(&mut self) {
        let needed = self.waiting.front().map_or(u64::MAX, |(chunk, _)| *chunk);
        while self.chunks.len() > 1 && self.first_chunk < needed {
            self.chunks.pop_front();
            self.first_chunk += 1;
        }
    }

    /// Copies the packets that wait in chunks which others are through with, so that these can be freed.
    pub(super) fn compact(&mut self) {
        let last = self.first_chunk + self.chunks.len() as u64 - 1;
        if self.chunks.len() <= 2 {
            return;
        }
        let mut copies = Chunk::default();
        for (chunk, index) in self.waiting.iter_mut().take_while(|(chunk, _)| *chunk < last) {
            if *index == REPLY {
                *chunk = last - 1;
                continue;
            }
            let copy = copies.records().len() as u32;
            let link = &self.chunks[(*chunk - self.first_chunk) as usize];
            copies.push_copy(&link.chunk, *index);
            (*chunk, *index) = (last - 1, copy);
        }
        let link = self.last().clone();
        self.chunks = VecDeque::from([Link::new(copies, 0, &Arc::default()), link]);
        self.first_chunk = last - 1;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use proptest::prelude::*;
    use rheostat_base::Time;
    use rheostat_packet::{HashKind, LinkType, Mempool, MempoolConfig};
    use rheostat_steer::{HashKey, Orientation, PrefixList, Steering};

    use super::*;
    use crate::backend::sim::SimConfig;
    use crate::backend::sim::pumped::arrivals::Pulled;
    use crate::backend::sim::replies::Replies;

    /// Chunks of so many arrivals each, not linked yet, which arrive after these gaps.
    fn chunks(gaps: &[u64], each: usize, held: &Arc<AtomicUsize>) -> Vec<Arc<Link>> {
        let mut due = 0;
        let dues: Vec<u64> = gaps
            .iter()
            .map(|gap| {
                due += gap;
                due
            })
            .collect();
        let starts = dues.chunks(each).skip(1).map(|later| later[0]).chain([ALL]);
        let chunks = dues.chunks(each).zip(starts).zip((0_u32..).step_by(each));
        chunks
            .map(|((dues, complete), first)| {
                let mut chunk = Chunk::default();
                for (due, stamp) in dues.iter().zip(first..) {
                    chunk.push(Pulled {
                        due: *due,
                        timestamp: None,
                        stamp,
                        bytes: &[0; 60],
                        wire_len: 60,
                        link: LinkType::Ethernet,
                        hash: (stamp, HashKind::Ports),
                        bucket: (stamp % 4) as u16,
                        is_oversize: false,
                    });
                }
                Link::new(chunk, complete, held)
            })
            .collect()
    }

    /// A queue that gets replies to these buckets, which are due after these gaps.
    fn answered(queue: Placement, answers: &[(u64, usize)], pool: &PoolCache) -> Placement {
        let orientation = Orientation::ByPrefix(PrefixList::default());
        let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, vec![orientation]).unwrap();
        let config = SimConfig::new("test", 1, Arc::new(steering));
        let replies = Replies::new(&config, pool.pool(), (Duration::ZERO, usize::MAX));
        let mut due = 0;
        for (gap, bucket) in answers {
            due += gap;
            let mut reply = replies.reply(&[0; 60], LinkType::Ethernet);
            reply.bucket = *bucket;
            replies.append(&mut VecDeque::from([reply]), Time::from_nanos(due));
        }
        queue.with_replies(Answering::new(Arc::new(replies)))
    }

    /// Stamps and times of the packets that are taken.
    fn taken(
        queue: &mut Placement,
        limit: usize,
        now: u64,
        pool: &mut PoolCache,
    ) -> Vec<(u32, Time)> {
        let mut packets = Vec::new();
        queue.take(limit, (now, 0, DeviceId(0)), pool, |packet| packets.push(packet));
        let stamps = packets.iter().map(|packet| (packet.stamp(), packet.timestamp())).collect();
        packets.into_iter().for_each(|packet| pool.free(packet));
        stamps
    }

    proptest! {
        /// However late arrivals are drawn and in whatever pieces, whether what waits is copied meanwhile, and whatever
        /// replies come between them: with the same descriptors given back at the same times, the same packets arrive and are dropped.
        #[test]
        fn when_arrivals_are_drawn_makes_no_difference(
            gaps in proptest::collection::vec(0_u64..20, 1..300),
            answers in proptest::collection::vec((0_u64..60, 0_usize..4), 0..60),
            each in 1_usize..20,
            polls in proptest::collection::vec((0_u64..60, 0_usize..6, 0_usize..4, any::<bool>()), 0..80),
            change in 0_u64..2_000,
        ) {
            let config = MempoolConfig { buffers: 64, data_room: 512, headroom: 0 };
            let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
            let cache = PoolCache::new(pool.pool().clone());
            let table: Vec<QueueId> = [0, 1, 0, 1].map(QueueId).into();
            let other: Arc<[QueueId]> = [0, 0, 1, 0].map(QueueId).into();
            let held = Arc::default();
            let start = || Link::new(Chunk::default(), gaps[0], &held);
            let new = |first: &Arc<Link>| {
                let mut queue = Placement::new(QueueId(0), 4, &table, first.clone());
                queue.rewrite(Some(change), &other);
                answered(queue, &answers, &cache)
            };

            let links = chunks(&gaps, each, &held);
            let mut tail = start();
            let mut late = new(&tail);
            let mut left = links.iter();
            let (mut now, mut dropped) = (0, 0);
            let mut seen = Vec::new();
            for (gap, limit, drawn, copies) in polls {
                now += gap;
                for link in left.by_ref().take(drawn) {
                    tail.append(link.clone());
                    tail = link.clone();
                }
                dropped += late.place(now + 1, 0).dropped;
                if copies {
                    late.compact();
                }
                seen.push((now, taken(&mut late, limit, now, &mut pool)));
            }
            for link in left {
                tail.append(link.clone());
                tail = link.clone();
            }
            dropped += late.place(ALL, 0).dropped;

            let first = start();
            let whole = chunks(&gaps, gaps.len(), &held);
            first.append(whole[0].clone());
            let mut in_time = new(&first);
            let mut dropped_in_time = 0;
            for (now, stamps) in seen {
                dropped_in_time += in_time.place(now + 1, 0).dropped;
                prop_assert_eq!(taken(&mut in_time, stamps.len(), now, &mut pool), stamps);
            }
            dropped_in_time += in_time.place(ALL, 0).dropped;
            prop_assert_eq!(dropped, dropped_in_time);
            prop_assert_eq!(taken(&mut late, 9, ALL, &mut pool), taken(&mut in_time, 9, ALL, &mut pool));
            drop((late, in_time, links, whole, tail, first));
            prop_assert_eq!(held.load(std::sync::atomic::Ordering::Relaxed), 0);
        }
    }
}
