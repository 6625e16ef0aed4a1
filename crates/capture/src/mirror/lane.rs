//! The lane's end of a mirror.

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::Ordering;
use rheostat_base::sync::spsc::Producer;
use rheostat_base::{DeviceId, DropReason, LaneId};
use rheostat_packet::{HashKind, Mbuf};
use rheostat_steer::Steering;

use super::comments::Comments;
use super::{Epoch, Look, MirrorEnd, Mirrors, Tracing};
use crate::trace::{Event, MOST, Step};
use crate::{Copied, Expression, Fields, Point, Wanted};

/// The mirror of one lane. The default is one without a way for readers to begin.
#[derive(Default)]
pub struct LaneMirror {
    mirrors: Option<Arc<Mirrors>>,
    lane: LaneId,
    /// The generation of the mirrors that this lane has taken up.
    seen: u64,
    armed: bool,
    captures: Vec<(Producer<Copied>, Arc<Look<Wanted>>)>,
    trace: Option<(Producer<Event>, Arc<Look<Tracing>>)>,
    comments: Comments,
    /// Copies of packets that a device is about to be offered, with their capture and their place.
    offered: Vec<(usize, usize, Copied)>,
    /// Their marks.
    marks: Vec<u8>,
}

impl LaneMirror {
    pub(super) fn new(mirrors: Arc<Mirrors>, lane: LaneId) -> LaneMirror {
        LaneMirror { mirrors: Some(mirrors), lane, ..LaneMirror::default() }
    }

    /// Takes note of readers that have begun or ended. Once per poll.
    #[inline]
    pub fn refresh(&mut self) {
        if let Some(mirrors) = &self.mirrors
            // Relaxed: the number is a hint that the lock is worth taking; see `renew`.
            && mirrors.generation.load(Ordering::Relaxed) != self.seen
        {
            self.renew();
        }
    }

    /// Whether there is a reader, as far as the lane knows.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    /// Whether packets are copied, as far as the lane knows.
    #[inline]
    pub fn is_capturing(&self) -> bool {
        self.armed && !self.captures.is_empty()
    }

    /// Lets copies of received packets wait for comments, until the end of their poll at the latest.
    pub fn expect_comments(&mut self) {
        self.comments.are_expected = true;
    }

    /// Passes on the copies of a received packet with what was done with it.
    #[cold]
    pub fn comment_on_received(&mut self, packet: &Mbuf, text: &str) {
        let complete = self.comments.complete(packet, text);
        self.pass_on(complete);
    }

    /// Says why a packet is about to be sent, for its copies.
    #[cold]
    pub fn comment_on_sent(&mut self, packet: &Mbuf, text: String) {
        self.comments.keep(packet, text);
    }

    /// Passes on the copies about which nothing was said. At the end of every poll while there is a reader.
    #[cold]
    pub fn end_poll(&mut self) {
        let rest = self.comments.rest();
        self.pass_on(rest);
    }

    fn pass_on(&mut self, copies: Vec<(usize, Copied)>) {
        for (capture, copy) in copies {
            if let Some((ring, look)) = self.captures.get_mut(capture) {
                look.push(ring, copy);
            }
        }
    }

    #[cold]
    fn renew(&mut self) {
        // Captures are about to get other numbers.
        self.end_poll();
        let Some(mirrors) = &self.mirrors else { return };
        let mut shared = mirrors.lock();
        // Under the lock, so that the number belongs to what is found: rings that are left later are
        // announced by another.
        self.seen = mirrors.generation.load(Ordering::Relaxed);
        let fresh = std::mem::take(&mut shared.waiting[self.lane.index()]);
        drop(shared);
        self.captures.retain(|(_, look)| !look.is_closed());
        self.trace.take_if(|(_, look)| look.is_closed());
        for end in fresh {
            match end {
                MirrorEnd::Capture(ring, look) if !look.is_closed() => {
                    self.captures.push((ring, look))
                }
                MirrorEnd::Trace(ring, look) if !look.is_closed() => {
                    self.trace = Some((ring, look))
                }
                // Gone before it was taken up.
                MirrorEnd::Capture(..) | MirrorEnd::Trace(..) => {}
            }
        }
        self.armed = !self.captures.is_empty() || self.trace.is_some();
    }

    /// Copies and marks packets that the lane has received from `device`.
    #[cold]
    pub fn received(&mut self, device: DeviceId, burst: &mut [Mbuf], steering: &Steering) {
        for packet in &*burst {
            self.copy(Point::Before, device, packet);
        }
        for packet in burst {
            if let Some(mark) = self.mark(packet) {
                packet.set_mark(mark);
                let step = self.arrival(device, packet, steering);
                self.note(packet, step);
            }
        }
    }

    /// The mark of a packet with these fields that this machine is about to send, if it is to be traced from here on: no packet
    /// that is traced has caused it.
    #[cold]
    pub fn mark_made(&self, fields: &Fields) -> Option<u8> {
        self.mark_if(|filter| filter.holds(fields))
    }

    /// The mark of a packet that is to be traced.
    fn mark(&self, packet: &Mbuf) -> Option<u8> {
        self.mark_if(|filter| filter.matches(packet))
    }

    fn mark_if(&self, is_wanted: impl FnOnce(&Expression) -> bool) -> Option<u8> {
        let (_, look) = self.trace.as_ref()?;
        let Tracing { filter, count, first_mark, marked } = &look.wanted;
        // Relaxed: lanes only have to get different numbers.
        if marked.load(Ordering::Relaxed) >= *count
            || filter.as_ref().is_some_and(|filter| !is_wanted(filter))
        {
            return None;
        }
        let number = marked.fetch_add(1, Ordering::Relaxed);
        let mark = (u32::from(*first_mark) + number) % u32::from(MOST) + 1;
        (number < *count).then_some(mark as u8)
    }

    fn arrival(&self, device: DeviceId, packet: &Mbuf, steering: &Steering) -> Step {
        let covers = match packet.hash_kind() {
            HashKind::None => None,
            HashKind::Addresses => Some("addresses"),
            HashKind::Ports => Some("addresses and ports"),
        };
        Step::Received {
            device,
            length: packet.wire_len().max(packet.len() as u32),
            nanos: self.unix(packet.timestamp().as_nanos()),
            hash: covers.map(|covers| (packet.hash(), covers)),
            bucket: covers.map(|_| steering.bucket_of_hash(packet.hash())),
        }
    }

    /// Copies packets before `device` is offered them: those it takes are gone then.
    #[cold]
    pub fn offer(&mut self, device: DeviceId, burst: &[Mbuf]) {
        self.offered.clear();
        self.marks.clear();
        self.marks.extend(burst.iter().map(|packet| packet.mark()));
        let comments: Vec<_> = burst.iter().map(|packet| self.comments.take(packet)).collect();
        for (capture, (_, look)) in self.captures.iter().enumerate() {
            for (place, packet) in burst.iter().enumerate() {
                if look.wanted.includes(Point::After, device, packet) {
                    let at = (Point::After, device, self.lane);
                    let nanos = self.departure(packet);
                    let mut copy = Copied::of(packet, look.wanted.snaplen, at, nanos);
                    copy.comment = comments[place].clone();
                    self.offered.push((capture, place, copy));
                }
            }
        }
    }

    /// Passes on the copies of the packets that the device took: the first `taken` of those offered.
    #[cold]
    pub fn took(&mut self, device: DeviceId, taken: usize) {
        for (capture, place, copy) in self.offered.drain(..) {
            if place < taken {
                let (ring, look) = &mut self.captures[capture];
                look.push(ring, copy);
            }
        }
        let marks = std::mem::take(&mut self.marks);
        for mark in marks.iter().take(taken).filter(|mark| **mark != 0) {
            self.note_mark(*mark, Step::Sent(device));
        }
        self.marks = marks;
    }

    /// Shows a packet that is about to be dropped, if there is a reader. For every packet that a lane drops.
    #[inline]
    pub fn dropping(&mut self, packet: &Mbuf, reason: DropReason) {
        if self.armed || packet.mark() != 0 {
            self.dropped(packet.device(), packet, reason);
        }
    }

    /// Shows a packet that has served its purpose and is about to be freed, if it is one that is traced.
    #[inline]
    pub fn consuming(&mut self, packet: &Mbuf) {
        if packet.mark() != 0 {
            self.note(packet, Step::Consumed);
        }
    }

    /// Copies and notes a packet that is about to be dropped on its way from, or to, `device`.
    #[cold]
    pub fn dropped(&mut self, device: DeviceId, packet: &Mbuf, reason: DropReason) {
        self.copy(Point::Dropped(reason), device, packet);
        self.note(packet, Step::Dropped(reason));
    }

    /// Notes what happens to a packet, if it is one that is traced.
    #[cold]
    pub fn note(&mut self, packet: &Mbuf, step: Step) {
        if packet.mark() != 0 {
            self.note_mark(packet.mark(), step);
        }
    }

    /// Notes what happens to the packet with this mark, or because of it.
    #[cold]
    pub fn note_mark(&mut self, mark: u8, step: Step) {
        if mark == 0 {
            return;
        }
        // Another lane may have marked the packet before this one has heard of the trace. It has heard
        // of it now: what came with the packet is at least as new as the mark.
        self.refresh();
        let (Some((ring, look)), Some(mirrors)) = (&mut self.trace, &self.mirrors) else { return };
        let event = Event { packet: mark, at: mirrors.clock.now(), lane: self.lane, step };
        look.push(ring, event);
    }

    fn copy(&mut self, point: Point, device: DeviceId, packet: &Mbuf) {
        let nanos = match point {
            Point::Before => self.unix(packet.timestamp().as_nanos()),
            Point::After | Point::Dropped(_) => self.departure(packet),
        };
        for (capture, (ring, look)) in self.captures.iter_mut().enumerate() {
            if !look.wanted.includes(point, device, packet) {
                continue;
            }
            if ring.room() == 0 {
                // Not even copied.
                look.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let copy = Copied::of(packet, look.wanted.snaplen, (point, device, self.lane), nanos);
            match self.comments.are_expected && point == Point::Before {
                true => self.comments.hold(capture, packet, copy),
                false => look.push(ring, copy),
            }
        }
    }

    /// When a packet leaves: now, or, where packets carry the time, its own.
    fn departure(&self, packet: &Mbuf) -> u64 {
        let stamp = packet.timestamp().as_nanos();
        match &self.mirrors {
            Some(mirrors) if mirrors.epoch != Epoch::Unix => {
                self.unix(mirrors.clock.now().as_nanos())
            }
            _ => stamp,
        }
    }

    /// Nanoseconds since 1970.
    fn unix(&self, nanos: u64) -> u64 {
        match self.mirrors.as_ref().map(|mirrors| mirrors.epoch) {
            Some(Epoch::Clock(start)) => start.saturating_add(nanos),
            _ => nanos,
        }
    }
}

impl std::fmt::Debug for LaneMirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaneMirror").field("lane", &self.lane).field("armed", &self.armed).finish()
    }
}
