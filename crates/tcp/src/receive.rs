//! The receiving side: bytes in order for the user, acknowledgements and a window for the peer.

mod acknowledgement;
mod held;
mod invariants;
mod stamps;
mod tuning;
mod urgent;
mod window;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use acknowledgement::Acknowledgement;
use arrayvec::ArrayVec;
use held::HeldRanges;
use rheostat_base::Time;
pub(crate) use stamps::Stamps;
use tuning::ReceiveTuning;
use urgent::PeerUrgent;
use window::OfferedWindow;
pub(crate) use window::shift_for;

use crate::config::Config;
use crate::connection::Ignored;
use crate::deadline::Deadline;
use crate::memory::MemoryBudget;
use crate::options::MAX_BLOCKS;
use crate::ring::ByteRing;
use crate::sequence::{SequenceNumber, SequenceRange};

/// What a segment has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedData {
    /// There are bytes that were not there before.
    pub(crate) has_bytes: bool,
    /// The peer has sent all it had to send.
    pub(crate) is_finished: bool,
    /// What of it did not count.
    pub(crate) ignored: Option<Ignored>,
}

/// Data beyond a gap lies in the buffer, too, at its place; it takes no other memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReceiveHalf {
    /// Unread bytes in order, up to `next`.
    unread: ByteRing,
    /// The next number expected (RCV.NXT).
    next: SequenceNumber,
    /// What has been acknowledged last.
    acked: SequenceNumber,
    window: OfferedWindow,
    /// How much has been received, as far as it can be counted.
    so_far: u32,
    ack: Acknowledgement,
    tuning: ReceiveTuning,
    held: HeldRanges,
    /// What was received twice, for the next acknowledgement.
    duplicate: Option<SequenceRange>,
    /// The number of the peer's FIN, once it is known.
    fin: Option<SequenceNumber>,
    urgent: PeerUrgent,
    mss: u16,
    /// Bytes of data that a segment of the peer carries at most.
    segment: u16,
}

impl ReceiveHalf {
    /// Expects data at `next`. `shift` is the scale of our windows. Of each segment, `options` bytes are no data.
    pub(crate) fn new(
        config: &Config,
        next: SequenceNumber,
        shift: u8,
        options: u16,
    ) -> ReceiveHalf {
        let limit = config.initial_receive_buffer.min(config.receive_buffer);
        let segment = config.mss.saturating_sub(options);
        ReceiveHalf {
            unread: ByteRing::new(limit),
            next,
            so_far: 0,
            acked: next,
            held: HeldRanges::default(),
            duplicate: None,
            fin: None,
            window: OfferedWindow::new(next, shift, limit as u32, segment.into()),
            ack: Acknowledgement::new(),
            urgent: PeerUrgent::default(),
            tuning: ReceiveTuning::new(),
            mss: config.mss,
            segment,
        }
    }

    /// Charges this budget for what is allocated.
    pub(crate) fn set_memory(&mut self, budget: Option<Arc<MemoryBudget>>) {
        self.unread.set_memory(budget);
    }

    pub(crate) fn next(&self) -> SequenceNumber {
        self.next
    }

    pub(crate) fn last_ack(&self) -> SequenceNumber {
        self.acked
    }

    pub(crate) fn acknowledgement(&mut self) -> &mut Acknowledgement {
        &mut self.ack
    }

    pub(crate) fn ack_deadline(&self) -> Deadline {
        self.ack.deadline()
    }

    pub(crate) fn is_ack_due(&self) -> bool {
        self.ack.is_due()
    }

    pub(crate) fn unread(&self) -> usize {
        self.unread.len()
    }

    /// The number of the first byte that has not been read.
    fn read_position(&self) -> SequenceNumber {
        let end = if self.is_finished() { self.next - 1 } else { self.next };
        end - self.unread.len() as u32
    }

    /// Takes the urgent pointer of a segment in the window. Returns whether there is more that is urgent than before.
    pub(crate) fn handle_urgent(&mut self, seq: SequenceNumber, pointer: u16) -> bool {
        let read = self.read_position();
        !self.is_finished() && self.urgent.on_pointer(seq, pointer, read)
    }

    /// Urgent bytes that have not been read, received or not.
    pub(crate) fn urgent(&self) -> Option<u32> {
        self.urgent.left(self.read_position())
    }

    /// Segments that arrived beyond a gap and are, or were, held.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.held.updates()
    }

    /// Bytes that are held beyond gaps.
    pub(crate) fn held(&self) -> u32 {
        self.held.len()
    }

    /// Bytes of memory for data.
    pub(crate) fn allocated(&self) -> usize {
        self.unread.allocated()
    }

    /// Bytes of that memory that data needs: all where some lies beyond a gap.
    pub(crate) fn needed(&self) -> usize {
        if self.held.is_empty() { self.unread.len() } else { self.unread.allocated() }
    }

    /// Gives back memory that no data needs.
    pub(crate) fn fit(&mut self) {
        if self.held.is_empty() {
            self.unread.fit();
        }
    }

    /// Whether everything up to the peer's FIN has arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next.is_after(fin))
    }

    /// What the peer may still send: up to the edge it was told.
    pub(crate) fn window(&self) -> u32 {
        self.window.edge().since(self.next)
    }

    /// The largest segment that the peer sends.
    pub(crate) fn mss(&self) -> u32 {
        self.mss.into()
    }

    /// Notes a window told without scale.
    pub(crate) fn on_unscaled_window(&mut self, window: u16) {
        self.window.on_unscaled(self.next, window);
    }

    /// Takes what of a segment's data is new and in the window. Everything but data in order is acknowledged at once
    /// (RFC 5681, 4.2). `round_trip` is the smoothed one, once there is one. Bytes in order go to `read`, if that is there and nothing
    /// is unread.
    pub(crate) fn handle_data(
        &mut self,
        seq: SequenceNumber,
        (payload, read): (&[u8], Option<&mut Vec<u8>>),
        fin: bool,
        round_trip: Option<Duration>,
        (config, now): (&Config, Time),
    ) -> ReceivedData {
        let range = SequenceRange::of_len(seq, payload.len() as u32);
        let (before, mut ignored) = (self.next, None);
        if !range.is_empty() {
            ignored = self.handle_bytes(range, payload, read, config.ack_delay, now);
            self.tune(round_trip, config.receive_buffer, now);
        }
        if fin {
            self.handle_fin(range.end);
        }
        self.so_far = self.so_far.saturating_add(self.next.since(before));
        let mut received =
            ReceivedData { has_bytes: self.next != before, is_finished: false, ignored };
        if self.fin == Some(self.next) {
            self.next += 1;
            self.ack.on_immediate();
            received.is_finished = true;
        }
        received
    }

    /// Nothing of a segment is in the window: acknowledged at once. What was received before, no longer ago than a buffer, is
    /// reported.
    pub(crate) fn handle_outside(&mut self, seq: SequenceNumber, len: u32) {
        self.ack.on_immediate();
        let range = SequenceRange::of_len(seq, len);
        let most = self.so_far.min(self.unread.limit() as u32);
        let before = SequenceRange::of_len(self.next - most, most);
        if !range.is_empty() && before.contains(range) {
            self.duplicate = Some(range);
        }
    }

    fn handle_bytes(
        &mut self,
        range: SequenceRange,
        payload: &[u8],
        read: Option<&mut Vec<u8>>,
        ack_delay: Duration,
        now: Time,
    ) -> Option<Ignored> {
        let mut ignored = None;
        let past = SequenceRange { start: range.start, end: range.end.min(self.next) };
        let twice = if past.is_empty() { self.held.duplicate(range) } else { Some(past) };
        if let Some(known) = twice {
            ignored = Some(if known == range { Ignored::Duplicate } else { Ignored::Overlap });
            self.duplicate = twice;
            self.ack.on_immediate();
        }
        let edge = self.fin.unwrap_or(self.window.edge()).min(self.window.edge());
        let fresh = range.intersection(SequenceRange { start: self.next, end: edge });
        if fresh != range {
            self.ack.on_immediate();
            ignored = ignored.or(Some(Ignored::BeyondWindow));
        }
        if fresh.is_empty() {
            return ignored;
        }
        let from = fresh.start.since(range.start) as usize;
        let data = &payload[from..from + fresh.len() as usize];
        let distance = fresh.start.since(self.next) as usize;
        let is_next = distance == 0 && self.held.is_empty();
        if let Some(read) = read.filter(|_| is_next && self.unread.len() == 0) {
            read.extend_from_slice(data);
            self.next = fresh.end;
            self.ack.on_data(fresh.len(), ack_delay, now);
            self.on_read(data.len());
            return ignored;
        }
        if !self.unread.has_memory_for(distance, data.len()) {
            self.ack.on_immediate();
            return Some(Ignored::NoRoom);
        }
        if is_next {
            self.unread.push(data);
            self.next = fresh.end;
            self.ack.on_data(fresh.len(), ack_delay, now);
            return ignored;
        }
        self.ack.on_immediate();
        if distance == 0 {
            self.unread.place(0, data);
            self.advance_to(fresh.end);
        } else if self.held.insert(fresh) {
            self.unread.place(distance, data);
        } else {
            ignored = Some(Ignored::NoRoom);
        }
        while let Some(end) = self.held.take_from(self.next) {
            self.advance_to(end);
        }
        ignored
    }

    /// Lets the buffer grow with what is read, up to `largest`, while memory is not scarce.
    fn tune(&mut self, round_trip: Option<Duration>, largest: usize, now: Time) {
        let Some(target) = self.tuning.on_data(round_trip, now) else { return };
        let target = target.min(largest);
        if target > self.unread.limit() && !self.unread.is_under_pressure() {
            self.unread.tune_limit(target);
            self.window.on_limit(self.unread.limit() as u32, self.segment.into());
        }
    }

    /// Room that may be offered: under pressure, in memory that is held already, or one segment if nothing waits to be read, so
    /// that each connection gets on.
    fn offerable(&self) -> u32 {
        let room = self.unread.room() as u32;
        if !self.unread.is_under_pressure() {
            return room;
        }
        let gets_on = self.unread.len() == 0 && !self.unread.is_exhausted();
        let least = if gets_on { self.mss.into() } else { 0 };
        (self.unread.held_room() as u32).max(least).min(room)
    }

    /// Bytes up to `end` are in place.
    fn advance_to(&mut self, end: SequenceNumber) {
        self.unread.advance(end.since(self.next) as usize);
        self.next = self.next.max(end);
    }

    /// The first FIN counts, if it lies in the window and behind all data.
    fn handle_fin(&mut self, fin: SequenceNumber) {
        self.ack.on_immediate();
        let is_behind = self.held.end().is_none_or(|end| !fin.is_before(end));
        let is_in_window = !fin.is_before(self.next) && !fin.is_after(self.window.edge());
        if self.fin.is_none() && is_behind && is_in_window {
            self.fin = Some(fin);
        }
    }

    /// Gives unread bytes to the user. Where that makes room that the peer should know of, an acknowledgement becomes due.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let len = self.unread.read(out);
        self.on_read(len);
        len
    }

    /// Unread bytes, where they lie.
    pub(crate) fn peek(&self) -> [&[u8]; 2] {
        self.unread.pieces(0, self.unread.len())
    }

    /// Takes the first `len` unread bytes as read.
    pub(crate) fn skip(&mut self, len: usize) {
        self.unread.consume(len);
        self.on_read(len);
    }

    fn on_read(&mut self, len: usize) {
        self.urgent.on_read(self.read_position());
        self.tuning.on_read(len);
        if self.held.is_empty() && self.unread.allocated() > 0 {
            self.unread.trim(self.unread.is_under_pressure());
        }
        let room = self.offerable();
        if len > 0 && !self.is_finished() && self.window.is_update_worthwhile(self.next, room) {
            self.ack.on_immediate();
        }
    }

    /// Acknowledgement number and window of a segment that leaves. What was received twice has been reported in its blocks.
    pub(crate) fn acknowledge(&mut self) -> (SequenceNumber, u16) {
        self.ack.on_sent();
        self.acked = self.next;
        self.duplicate = None;
        (self.next, self.window.offer(self.next, self.offerable()))
    }

    /// SACK blocks for the next segment.
    pub(crate) fn blocks(&self, room: usize) -> ArrayVec<SequenceRange, MAX_BLOCKS> {
        self.held.blocks(self.duplicate, room)
    }
}
