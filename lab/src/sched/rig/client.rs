//! One client: a connection on which requests are sent whenever they are due, and replies come in their order.
//!
//! It follows TCP as far as a link that loses nothing requires: handshake, the window that the service offers,
//! acknowledgements with the next request or by themselves.

use std::collections::VecDeque;

use rheostat_serve::work::WorkReply;
use rheostat_serve::work::frame::HEAD;
use rheostat_traffic::clients::frame::{ACK, FIN, RST, Received, SYN, Sent};

use super::request_frame::{REQUEST, Varying};

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientPhase {
    Closed,
    Opening,
    Open,
    /// The service reset or finished it, or sent bytes that were not due.
    Broken,
}

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RigRequest {
    /// Comes back in the reply: the moment in nanoseconds when it was due.
    pub(super) number: u64,
    /// Decides about its service time.
    pub(super) draw: u64,
}

/// A client with its connection.
#[derive(Debug)]
pub(super) struct RigClient {
    pub(super) port: u16,
    /// The hash of its packets.
    pub(super) hash: u32,
    pub(super) phase: ClientPhase,
    /// An acknowledgement is to be sent at once.
    owes: bool,
    /// By how much the service's windows are scaled.
    scale: u8,
    /// The first byte that was not sent.
    next: u32,
    /// Behind the last byte that the service takes.
    window_end: u32,
    /// The next byte of the service.
    expected: u32,
    /// As far as it was acknowledged.
    acknowledged: u32,
    /// The service's latest time stamp.
    echo: u32,
    /// When the latest reply came, in milliseconds.
    replied: u32,
    /// Bytes of the next reply that have come, and the first of them.
    partial: usize,
    head: [u8; HEAD],
    /// The number of the latest reply.
    latest: u64,
    /// Due requests that the window has no room for.
    waiting: VecDeque<RigRequest>,
}

/// What came of a segment, beside replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyOutcome {
    pub(super) opened: bool,
    pub(super) broken: bool,
    /// Data that had come before.
    pub(super) repeated: bool,
    /// There is something to send now.
    pub(super) sends: bool,
}

impl RigClient {
    pub(super) fn new(port: u16, hash: u32) -> RigClient {
        RigClient {
            port,
            hash,
            phase: ClientPhase::Closed,
            owes: false,
            scale: 0,
            next: hash,
            window_end: hash,
            expected: 0,
            acknowledged: 0,
            echo: 0,
            replied: 0,
            partial: 0,
            head: [0; HEAD],
            latest: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Begins to open the connection: the SYN.
    pub(super) fn open(&mut self, stamp: u32) -> Sent {
        self.phase = ClientPhase::Opening;
        let sequence = self.next;
        self.next = self.next.wrapping_add(1);
        Sent { flags: SYN, sequence, acknowledged: 0, stamp, echo: 0, len: 0 }
    }

    /// Takes a request that is due; what can be sent of it is.
    pub(super) fn request(&mut self, request: RigRequest, stamp: u32) -> Option<Varying> {
        if self.waiting.is_empty() && self.has_room() {
            return Some(self.send(request, stamp));
        }
        self.waiting.push_back(request);
        None
    }

    /// The next request that had to wait, if the window has room for it now.
    pub(super) fn next_waiting(&mut self, stamp: u32) -> Option<Varying> {
        if !self.has_room() {
            return None;
        }
        let request = self.waiting.pop_front()?;
        Some(self.send(request, stamp))
    }

    fn has_room(&self) -> bool {
        let room = self.window_end.wrapping_sub(self.next);
        self.phase == ClientPhase::Open && (REQUEST as u32..1 << 31).contains(&room)
    }

    fn send(&mut self, request: RigRequest, stamp: u32) -> Varying {
        let sequence = self.next;
        self.next = self.next.wrapping_add(REQUEST as u32);
        (self.acknowledged, self.owes) = (self.expected, false);
        Varying {
            port: self.port,
            sequence,
            acknowledged: self.expected,
            stamp,
            echo: self.echo,
            number: request.number,
            draw: request.draw,
        }
    }

    /// The acknowledgement that is to be sent at once.
    pub(super) fn owed(&mut self, stamp: u32) -> Option<Sent> {
        self.owes.then(|| self.acknowledge(stamp))
    }

    /// The acknowledgement of a reply that came at least `delay` milliseconds before `now` and that no request has
    /// acknowledged.
    pub(super) fn overdue(&mut self, delay: u32, now: u32) -> Option<Sent> {
        let is_late = self.acknowledged != self.expected && now.wrapping_sub(self.replied) >= delay;
        (is_late && self.phase == ClientPhase::Open).then(|| self.acknowledge(now))
    }

    fn acknowledge(&mut self, stamp: u32) -> Sent {
        (self.acknowledged, self.owes) = (self.expected, false);
        let (sequence, acknowledged, echo) = (self.next, self.expected, self.echo);
        Sent { flags: ACK, sequence, acknowledged, stamp, echo, len: 0 }
    }

    /// Takes a segment of the service, at `now` milliseconds.
    pub(super) fn handle(
        &mut self,
        segment: &Received<'_>,
        now: u32,
        on_reply: impl FnMut(WorkReply),
    ) -> ReplyOutcome {
        let mut outcome = ReplyOutcome::default();
        match self.phase {
            ClientPhase::Closed | ClientPhase::Broken => return outcome,
            ClientPhase::Opening if segment.flags & (SYN | ACK | RST) == SYN | ACK => {
                self.phase = ClientPhase::Open;
                (self.scale, self.echo) = (segment.scale, segment.stamp);
                self.expected = segment.sequence.wrapping_add(1);
                self.acknowledged = segment.sequence;
                self.window_end = segment.acknowledged.wrapping_add(segment.window.into());
                self.owes = true;
                (outcome.opened, outcome.sends) = (true, true);
                return outcome;
            }
            ClientPhase::Opening | ClientPhase::Open => {}
        }
        if segment.flags & (RST | FIN) != 0 || self.phase == ClientPhase::Opening {
            (self.phase, outcome.broken) = (ClientPhase::Broken, true);
            return outcome;
        }
        let window = u32::from(segment.window) << self.scale;
        self.window_end = segment.acknowledged.wrapping_add(window);
        outcome.sends = !self.waiting.is_empty() && self.has_room();
        let again = self.expected.wrapping_sub(segment.sequence);
        if segment.flags & SYN != 0 || again != 0 {
            // Behind what has come: sent again, or a probe. Before it: the link loses nothing, so it is an error.
            let behind = again < 1 << 31;
            outcome.repeated = !segment.data.is_empty() && behind;
            outcome.broken = !segment.data.is_empty() && !behind;
            if outcome.broken {
                self.phase = ClientPhase::Broken;
            }
            self.owes = true;
            outcome.sends = true;
            if segment.flags & SYN != 0 || !behind {
                return outcome;
            }
        }
        self.echo = segment.stamp;
        // What is new of a segment that was sent again may be more than the first time.
        let data = segment.data.get(again as usize..).unwrap_or_default();
        if !data.is_empty() {
            self.expected = self.expected.wrapping_add(data.len() as u32);
            self.replied = now;
            if !self.take(data, on_reply) {
                (self.phase, outcome.broken) = (ClientPhase::Broken, true);
            }
        }
        outcome
    }

    /// Takes bytes of replies. Returns whether they are such, of requests in their order.
    fn take(&mut self, mut data: &[u8], mut on_reply: impl FnMut(WorkReply)) -> bool {
        while !data.is_empty() {
            let missing = REQUEST - self.partial;
            let (piece, rest) = data.split_at(missing.min(data.len()));
            data = rest;
            let reply = if piece.len() == REQUEST {
                WorkReply::parse(piece).ok()
            } else {
                if let Some(place) = self.head.get_mut(self.partial..) {
                    let head = piece.len().min(place.len());
                    place[..head].copy_from_slice(&piece[..head]);
                }
                self.partial += piece.len();
                if self.partial < REQUEST {
                    return true;
                }
                self.partial = 0;
                read_head(&self.head)
            };
            let is_due =
                |reply: &WorkReply| reply.length as usize == REQUEST && reply.number >= self.latest;
            match reply.filter(is_due) {
                Some(reply) => {
                    self.latest = reply.number;
                    on_reply(reply);
                }
                None => return false,
            }
        }
        true
    }
}

/// A reply by its head, behind which there are zeros alone.
fn read_head(head: &[u8; HEAD]) -> Option<WorkReply> {
    let mut whole = [0; REQUEST];
    whole[..HEAD].copy_from_slice(head);
    WorkReply::parse(&whole).ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn segment(flags: u8, sequence: u32, acknowledged: u32, data: &[u8]) -> Received<'_> {
        Received {
            client: (Ipv4Addr::LOCALHOST, 1),
            server: (Ipv4Addr::LOCALHOST, 80),
            flags,
            sequence,
            acknowledged,
            window: 300,
            stamp: 5,
            scale: 0,
            data,
        }
    }

    /// A client whose connection is open: its next byte is 8, the service's 100; there is room for two requests.
    fn opened() -> RigClient {
        let mut client = RigClient::new(1, 7);
        assert_eq!((client.open(0).flags, client.phase), (SYN, ClientPhase::Opening));
        let outcome = client.handle(&segment(SYN | ACK, 99, 8, &[]), 0, |_| {});
        assert!(outcome.opened && outcome.sends && !outcome.broken);
        let ack = client.owed(0).unwrap();
        assert_eq!((ack.flags, ack.sequence, ack.acknowledged, ack.echo), (ACK, 8, 100, 5));
        assert!(client.owed(0).is_none());
        client
    }

    fn request(number: u64) -> RigRequest {
        RigRequest { number, draw: 0 }
    }

    fn replies(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &number in numbers {
            let reply = WorkReply { number, length: 128, class: 1, target: 1_000, took: 1_010 };
            reply.write(|piece| bytes.extend_from_slice(piece));
        }
        bytes
    }

    #[test]
    fn requests_beyond_the_window_wait_in_order_until_it_has_room() {
        let mut client = opened();
        let sent: Vec<_> =
            (1..=4).filter_map(|number| client.request(request(number), 0)).collect();
        assert_eq!(sent.iter().map(|v| v.sequence).collect::<Vec<_>>(), [8, 136]);
        assert!(client.next_waiting(0).is_none());
        // One is acknowledged: there is room for another.
        let outcome = client.handle(&segment(ACK, 100, 136, &[]), 0, |_| {});
        assert!(outcome.sends);
        let third = client.next_waiting(0).unwrap();
        assert_eq!((third.number, third.sequence), (3, 264));
        assert!(client.next_waiting(0).is_none());
        let _ = client.handle(&segment(ACK, 100, 392, &[]), 0, |_| {});
        assert!(client.request(request(5), 0).is_none());
        let rest: Vec<_> = std::iter::from_fn(|| client.next_waiting(0)).collect();
        assert_eq!(rest.iter().map(|v| v.number).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn a_reply_is_acknowledged_with_the_next_request_or_after_a_delay() {
        let mut client = opened();
        let _ = client.request(request(1), 0);
        let bytes = replies(&[1]);
        let outcome = client.handle(&segment(ACK, 100, 136, &bytes), 50, |_| {});
        assert!(!outcome.sends);
        assert!(client.overdue(40, 89).is_none());
        assert_eq!(client.overdue(40, 90).map(|ack| ack.acknowledged), Some(228));
        assert!(client.overdue(40, 200).is_none());
        let bytes = replies(&[2]);
        let _ = client.handle(&segment(ACK, 228, 136, &bytes), 300, |_| {});
        assert_eq!(client.request(request(3), 310).map(|v| v.acknowledged), Some(356));
        assert!(client.overdue(40, 400).is_none());
    }

    #[test]
    fn what_is_not_due_breaks_the_connection() {
        let out_of_order = replies(&[2, 1]);
        let gap = replies(&[1]);
        for (sequence, data) in [(100, &out_of_order[..]), (101, &gap), (100, &[7; 128])] {
            let mut client = opened();
            let outcome = client.handle(&segment(ACK, sequence, 8, data), 0, |_| {});
            assert!(outcome.broken && client.phase == ClientPhase::Broken, "{sequence}");
            assert!(client.request(request(1), 0).is_none());
        }
        for flags in [RST, FIN | ACK] {
            assert!(opened().handle(&segment(flags, 100, 8, &[]), 0, |_| {}).broken);
        }
        let mut client = opened();
        let _ = client.handle(&segment(ACK, 100, 8, &gap), 0, |_| {});
        let again = client.handle(&segment(ACK, 100, 8, &gap), 0, |_| {});
        assert!(again.repeated && again.sends && !again.broken);
        assert_eq!(client.owed(0).map(|ack| ack.acknowledged), Some(228));
        // Sent again with more behind it.
        let (more, mut read) = (replies(&[1, 2]), Vec::new());
        let outcome =
            client.handle(&segment(ACK, 100, 8, &more), 0, |reply| read.push(reply.number));
        assert!(outcome.repeated && !outcome.broken);
        assert_eq!((read, client.owed(0).map(|ack| ack.acknowledged)), (vec![2], Some(356)));
    }

    proptest! {
        #[test]
        fn replies_are_read_however_segments_cut_them(
            numbers in prop::collection::vec(0..9_u64, 1..12), cuts in prop::collection::vec(1..400_usize, 1..40),
        ) {
            let mut numbers = numbers;
            numbers.sort_unstable();
            let (bytes, mut client) = (replies(&numbers), opened());
            let (mut read, mut at) = (Vec::new(), 0);
            for cut in cuts.into_iter().cycle() {
                let end = (at + cut).min(bytes.len());
                let piece = segment(ACK, 100 + at as u32, 8, &bytes[at..end]);
                let outcome = client.handle(&piece, 0, |reply| read.push((reply.number, reply.took)));
                prop_assert!(!outcome.broken);
                at = end;
                if at == bytes.len() {
                    break;
                }
            }
            let expected: Vec<_> = numbers.iter().map(|number| (*number, 1_010)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
