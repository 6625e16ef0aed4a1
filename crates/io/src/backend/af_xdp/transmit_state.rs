//! Telling the kernel to send, until it has sent.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::BURST;
use rustix::io::Errno;

use super::counters::Counters;
use super::ring::Gauge;
use crate::device::Unsent;
use crate::sys::ring_mapping::RingMapping;
use crate::sys::xdp_socket::{CONTINUED, Descriptor, Transfer, XdpSocket};

/// How long an interface that is down is left alone.
const TIMEOUT: Duration = Duration::from_millis(1);

/// Packets that one system call sends at most where the kernel copies, if it lets itself be told (Linux 6.17). Older ones
/// send 32.
pub(super) const AT_ONCE: u32 = 64;

/// What the two ends of a lane know of its TX ring. Sending happens in a system call (where the kernel
/// copies: of `at_once` packets at most), and may end early; what then waits is kicked again by whatever the
/// lane does next, be it sending or receiving.
///
/// The call for a full burst is put off as long as the next burst fits into the same call. A burst is full when the lane has more
/// to do, so the next one follows at once. It is made at the end of the lane's next poll at the latest, when the lane asks what
/// is unsent; when the receiving end comes by for the second time; and before the lane sleeps.
#[derive(Debug)]
pub(super) struct TransmitState {
    /// Which state whether the interface is gone.
    counters: Arc<Counters>,
    ring: Gauge<Arc<RingMapping<Descriptor>>>,
    transfer: Transfer,
    /// Packets that one call sends.
    at_once: u32,
    /// Whether the call for packets in the ring is put off: one of the constants below.
    put_off: AtomicU8,
    /// Whether packets may wait in the ring. Relaxed, as the next: both ends belong to one lane, and moving the lane to another
    /// thread orders them. Where packets leave in the order of claims, lanes send in turn under a lock, and the receiving end
    /// leaves the ring alone.
    waiting: AtomicBool,
    /// Nanoseconds before which the kernel is not asked again.
    not_before: AtomicU64,
    /// The kernel said last that the interface is down.
    down: AtomicBool,
    /// Packets that the kernel took out of the ring and did not send, and their bytes.
    refused: AtomicU64,
    refused_bytes: AtomicU64,
    /// System calls made to send.
    calls: AtomicU64,
    /// Nothing more is to be sent.
    ended: AtomicBool,
}

/// The call is not put off.
const NOT: u8 = 0;
/// It was, and the receiving end has not run since.
const JUST_NOW: u8 = 1;
/// It was, and the receiving end has come by.
const BEFORE: u8 = 2;

/// What is left in the ring when the device is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing.
    Empty,
    /// Something, which may still get out.
    Waiting,
    /// Something, and the interface takes no more.
    Hopeless,
}

impl TransmitState {
    pub(super) fn new(
        ring: Gauge<Arc<RingMapping<Descriptor>>>,
        transfer: Transfer,
        at_once: u32,
        counters: Arc<Counters>,
    ) -> TransmitState {
        TransmitState {
            counters,
            ring,
            transfer,
            at_once,
            put_off: AtomicU8::new(NOT),
            waiting: AtomicBool::new(false),
            not_before: AtomicU64::new(0),
            down: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            refused_bytes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// What was put into the ring and has not been sent. A driver that works in our memory sends what it has
    /// taken, sooner or later; where the kernel copies, what it has not taken waits.
    pub(super) fn unsent(&self) -> Unsent {
        let is_known = self.transfer == Transfer::Copy && !self.has_ended();
        let waiting = if is_known && self.is_waiting() { self.packets_waiting().0 } else { 0 };
        let (refused, refused_bytes) = (&self.refused, &self.refused_bytes);
        Unsent {
            waiting,
            refused: refused.load(Ordering::Relaxed),
            refused_bytes: refused_bytes.load(Ordering::Relaxed),
            ..Unsent::default()
        }
    }

    /// Ends sending: what is left in the ring is refused.
    pub(super) fn end(&self) {
        self.put_off.store(NOT, Ordering::Relaxed);
        if !self.ended.swap(true, Ordering::Relaxed) {
            let (packets, bytes) = self.packets_waiting();
            self.refused.fetch_add(packets, Ordering::Relaxed);
            self.refused_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// System calls made to send so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether nothing more is to be sent.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whole packets in the ring, and their bytes.
    fn packets_waiting(&self) -> (u64, u64) {
        // SAFETY: the lane that writes to the ring is the one that calls this, or the lock under which lanes write is held.
        let pieces = unsafe { self.ring.unconsumed() };
        pieces.fold((0, 0), |(packets, bytes), piece| {
            let last = u64::from(piece.options & CONTINUED == 0);
            (packets + last, bytes + u64::from(piece.len))
        })
    }

    /// Counts the packet that the kernel took out of the ring last as refused.
    fn note_refusal(&self) {
        // SAFETY: the lane that writes to the ring is the one that calls this, or the lock under which lanes write is held.
        let mut pieces = unsafe { self.ring.consumed_last() };
        let last = pieces.next().map_or(0, |piece| u64::from(piece.len));
        let before = pieces.take_while(|piece| piece.options & CONTINUED != 0);
        let bytes = last + before.map(|piece| u64::from(piece.len)).sum::<u64>();
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.refused_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether packets may wait in the ring for the kernel to be told once more.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the interface was down when the kernel was last told to send.
    pub(super) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Sends what was just put into the ring, and what may wait there. With `more` to come soon, that may be put off.
    pub(super) fn kick(&self, socket: &XdpSocket, now: Time, more: bool) {
        self.waiting.store(true, Ordering::Relaxed);
        if more && self.may_put_off() {
            self.put_off.store(JUST_NOW, Ordering::Relaxed);
            return;
        }
        self.kick_again(socket, now);
    }

    /// Whether another burst fits into the call that sends what waits.
    fn may_put_off(&self) -> bool {
        self.transfer == Transfer::Copy && self.ring.waiting() + BURST as u32 <= self.at_once
    }

    /// Whether the notification of the kernel about packets in the ring was put off on purpose.
    pub(super) fn is_put_off(&self) -> bool {
        self.put_off.load(Ordering::Relaxed) != NOT
    }

    /// What the receiving end does in each poll: sends what waits, unless that was put off since it came by last.
    #[inline]
    pub(super) fn come_by(&self, socket: &XdpSocket, now: Time) {
        if self.put_off.load(Ordering::Relaxed) == JUST_NOW {
            self.put_off.store(BEFORE, Ordering::Relaxed);
            return;
        }
        self.kick_again(socket, now);
    }

    /// Sends what may wait in the ring; costs a load when nothing does.
    #[inline]
    pub(super) fn kick_again(&self, socket: &XdpSocket, now: Time) {
        if self.waiting.load(Ordering::Relaxed)
            && now.as_nanos() >= self.not_before.load(Ordering::Relaxed)
        {
            self.ask(socket, now);
        }
    }

    /// Makes the kernel send what waits in the ring, whatever it said before.
    pub(super) fn flush(&self, socket: &XdpSocket) -> Flushed {
        self.put_off.store(NOT, Ordering::Relaxed);
        if self.ring.waiting() == 0 {
            return Flushed::Empty;
        }
        match self.send_all(socket) {
            Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => Flushed::Hopeless,
            _ if self.ring.waiting() == 0 => Flushed::Empty,
            _ => Flushed::Waiting,
        }
    }

    fn ask(&self, socket: &XdpSocket, now: Time) {
        self.put_off.store(NOT, Ordering::Relaxed);
        // A driver that works in our memory sets a flag when it wants to be notified. Where the kernel copies it
        // always does, but reports it only on the sockets that were there first.
        let asked = self.transfer == Transfer::Copy || self.ring.needs_wakeup();
        let outcome = if asked { self.send_all(socket) } else { Ok(()) };
        if let Err(Errno::NXIO | Errno::NODEV) = outcome {
            return self.counters.gone.store(true, Ordering::Relaxed);
        }
        // Also said when the interface vanishes; then the socket is unbound a moment later.
        let is_down = outcome == Err(Errno::NETDOWN);
        if is_down {
            let later = now.as_nanos() + TIMEOUT.as_nanos() as u64;
            self.not_before.store(later, Ordering::Relaxed);
        }
        // EAGAIN: more than one call sends waited, or the COMPLETION ring or the socket's buffer is full.
        // ENOBUFS: the driver's queue is full. Whatever it is, the ring states what waits.
        self.down.store(is_down, Ordering::Relaxed);
        self.waiting.store(self.ring.waiting() > 0, Ordering::Relaxed);
    }

    /// Makes the kernel send what waits in the ring. Where it copies, it stops behind a packet that the
    /// interface does not take, and states EBUSY (`__xsk_generic_xmit`): that packet is gone, and its buffer
    /// comes back as those of the others. A system call for each of them, and one for the rest.
    fn send_all(&self, socket: &XdpSocket) -> Result<(), Errno> {
        loop {
            let before = self.ring.waiting();
            if before == 0 {
                return Ok(());
            }
            self.calls.fetch_add(1, Ordering::Relaxed);
            match socket.send() {
                Err(Errno::BUSY)
                    if self.transfer == Transfer::Copy && self.ring.waiting() < before =>
                {
                    self.note_refusal();
                }
                outcome => return outcome,
            }
        }
    }
}
