//! One check of one backend, from the first packet to its outcome.

use std::net::IpAddr;
use std::time::Duration;

use rand::Rng;
use rheostat_base::Time;
use rheostat_ip::Outbox;
use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::tcp::{TcpFlags, TcpSegment};
use rheostat_packet::wire::{icmpv4, icmpv6};

use super::event::Failure;
use super::http::HttpCheck;
use super::{CheckConfig, CheckKind};

/// What came of a check.
pub(super) type Outcome = Result<(), Failure>;

/// How long until something is sent once more; twice as long after each time (RFC 6298, sections 2 and 5).
const RESEND: Duration = Duration::from_secs(1);
/// What the longest segment may carry: what fits in 1,280 bytes of IPv6, which every link carries. Option kind
/// 2, length 4 (RFC 9293, section 3.2).
const MSS: [u8; 4] = [2, 4, (1_220_u16 >> 8) as u8, 1_220_u16 as u8];

/// The two ends of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// The address that is asked from, and a port or an identifier of the check's own.
    pub(super) source: IpAddr,
    pub(super) own: u16,
    /// The backend, and its port; zero without ports.
    pub(super) target: IpAddr,
    pub(super) port: u16,
}

/// A check under way.
#[derive(Debug)]
pub(super) struct Probe {
    ends: Ends,
    stage: Stage,
    gives_up: Time,
    resends: Time,
    patience: Duration,
}

/// What is waited for.
#[derive(Debug)]
enum Stage {
    /// The reply to an echo with this sequence number and these bytes.
    Echo { sequence: u16, token: [u8; 8] },
    /// The answer to a SYN with this sequence number.
    Opening { isn: u32 },
    /// The answer to a request.
    Asked { seq: u32, ack: u32, request: Vec<u8>, answer: Vec<u8>, is_acknowledged: bool },
}

impl Probe {
    /// Begins a check at `now`: its first packet goes out.
    pub(super) fn start(
        config: &CheckConfig,
        ends: Ends,
        rng: &mut impl Rng,
        now: Time,
        outbox: &mut Outbox,
    ) -> Probe {
        let stage = match config.kind {
            CheckKind::Icmp => Stage::Echo { sequence: rng.random(), token: rng.random() },
            CheckKind::Tcp | CheckKind::Http(_) => Stage::Opening { isn: rng.random() },
        };
        let probe = Probe {
            ends,
            stage,
            gives_up: now + config.timeout,
            resends: now + RESEND,
            patience: RESEND,
        };
        probe.send(outbox);
        probe
    }

    /// The two ends of a check.
    pub(super) fn ends(&self) -> Ends {
        self.ends
    }

    /// When [`Probe::wake`] has something to do.
    pub(super) fn next_deadline(&self) -> Time {
        self.gives_up.min(self.resends)
    }

    /// Gives up, or sends once more, if it is time.
    pub(super) fn wake(&mut self, now: Time, outbox: &mut Outbox) -> Option<Outcome> {
        if now >= self.gives_up {
            if let Stage::Asked { seq, ack, .. } = self.stage {
                self.send_segment(TcpFlags::RST | TcpFlags::ACK, seq, ack, &[], outbox);
            }
            return Some(Err(Failure::Silent));
        }
        if now >= self.resends {
            self.patience *= 2;
            self.resends = now + self.patience;
            self.send(outbox);
        }
        None
    }

    /// Sends what is waited for an answer to.
    fn send(&self, outbox: &mut Outbox) {
        match &self.stage {
            Stage::Echo { sequence, token } => {
                let kind = match self.ends.target {
                    IpAddr::V4(_) => icmpv4::ECHO_REQUEST,
                    IpAddr::V6(_) => icmpv6::ECHO_REQUEST,
                };
                let rest = u32::from(self.ends.own) << 16 | u32::from(*sequence);
                let message = Transport::Icmp { kind, code: 0, rest };
                self.send_packet(message, token, outbox);
            }
            Stage::Opening { isn } => self.send_segment(TcpFlags::SYN, *isn, 0, &[], outbox),
            Stage::Asked { is_acknowledged: true, .. } => {}
            Stage::Asked { seq, ack, request, .. } => {
                let seq = seq.wrapping_sub(request.len() as u32);
                self.send_segment(TcpFlags::PSH | TcpFlags::ACK, seq, *ack, request, outbox);
            }
        }
    }

    fn send_segment(&self, flags: u8, seq: u32, ack: u32, data: &[u8], outbox: &mut Outbox) {
        let options: &[u8] = if flags & TcpFlags::SYN != 0 { &MSS } else { &[] };
        let ports = (self.ends.own, self.ends.port);
        // A reset takes nothing any more.
        let window = if flags & TcpFlags::RST != 0 { 0 } else { u16::MAX };
        let header = TcpHeader { ports, seq, ack, flags, window, urgent: 0, options };
        self.send_packet(Transport::Tcp(header), data, outbox);
    }

    fn send_packet(&self, transport: Transport<'_>, data: &[u8], outbox: &mut Outbox) {
        let Ends { source, target, .. } = self.ends;
        outbox.send(FrameBuilder::new(source, target, transport, Payload::Bytes(data)).to_vec());
    }

    /// Takes an ICMP message from the backend, without the checksum, which was verified.
    pub(super) fn take_echo(&self, sequence: u16, data: &[u8]) -> Option<Outcome> {
        match &self.stage {
            Stage::Echo { sequence: own, token } if *own == sequence && data == token => {
                Some(Ok(()))
            }
            _ => None,
        }
    }

    /// Takes an ICMP error about a packet of the check, whose transport header begins with `quoted`.
    pub(super) fn take_error(&self, code: u8, quoted: &[u8]) -> Option<Outcome> {
        // A sender that does not see the packets cannot guess their contents (RFC 5927, section 4.1).
        let word = |at: usize| quoted.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
        let is_ours = match &self.stage {
            Stage::Echo { sequence, .. } => {
                word(4) == Some(u32::from(self.ends.own) << 16 | u32::from(*sequence))
            }
            Stage::Opening { isn } => word(4) == Some(*isn),
            // Once a connection is open, errors are soft (RFC 1122, section 4.2.3.9).
            Stage::Asked { .. } => false,
        };
        is_ours.then_some(Err(Failure::Unreachable(code)))
    }

    /// Takes a segment from the backend with its data.
    pub(super) fn take_segment(
        &mut self,
        kind: &CheckKind,
        segment: &TcpSegment<'_>,
        data: &[u8],
        now: Time,
        outbox: &mut Outbox,
    ) -> Option<Outcome> {
        let flags = segment.flags().0;
        let has = |flag| flags & flag != 0;
        match &self.stage {
            Stage::Echo { .. } => None,
            Stage::Opening { isn } => {
                let seq = isn.wrapping_add(1);
                if !has(TcpFlags::ACK) || segment.ack() != seq {
                    return None;
                }
                if has(TcpFlags::RST) {
                    return Some(Err(Failure::Refused));
                }
                if !has(TcpFlags::SYN) {
                    return None;
                }
                let ack = segment.seq().wrapping_add(1);
                match kind {
                    CheckKind::Http(check) => {
                        let request = check.request(self.ends.target);
                        self.ask(seq, ack, request, now, outbox);
                        None
                    }
                    CheckKind::Icmp | CheckKind::Tcp => {
                        self.send_segment(TcpFlags::RST | TcpFlags::ACK, seq, ack, &[], outbox);
                        Some(Ok(()))
                    }
                }
            }
            Stage::Asked { .. } => self.take_answer(kind, segment, data, outbox),
        }
    }

    /// Sends a request on an open connection.
    fn ask(&mut self, seq: u32, ack: u32, request: Vec<u8>, now: Time, outbox: &mut Outbox) {
        let seq = seq.wrapping_add(request.len() as u32);
        let answer = Vec::with_capacity(HttpCheck::KEPT);
        self.stage = Stage::Asked { seq, ack, request, answer, is_acknowledged: false };
        self.patience = RESEND;
        self.resends = now + RESEND;
        self.send(outbox);
    }

    fn take_answer(
        &mut self,
        kind: &CheckKind,
        segment: &TcpSegment<'_>,
        data: &[u8],
        outbox: &mut Outbox,
    ) -> Option<Outcome> {
        let Stage::Asked { seq, ack, request, answer, is_acknowledged } = &mut self.stage else {
            return None;
        };
        let CheckKind::Http(check) = kind else { return None };
        let flags = segment.flags().0;
        let has = |flag| flags & flag != 0;
        if has(TcpFlags::RST) {
            // Only what is exactly next, or any host could end it (RFC 5961, section 3.2).
            return (segment.seq() == *ack).then_some(Err(Failure::Reset));
        }
        if has(TcpFlags::SYN) {
            // Our acknowledgement is lost: it goes out once more, with the request.
            if !*is_acknowledged && segment.seq().wrapping_add(1) == *ack {
                self.send(outbox);
            }
            return None;
        }
        // What acknowledges data that was never sent is none of ours.
        let sent = request.len() as u32;
        let behind = seq.wrapping_sub(segment.ack());
        if !has(TcpFlags::ACK) || behind > sent {
            return None;
        }
        *is_acknowledged |= behind == 0;
        if segment.seq() != *ack {
            // Out of order, or once more: say what is next.
            let (seq, ack) = (*seq, *ack);
            if !data.is_empty() {
                self.send_segment(TcpFlags::ACK, seq, ack, &[], outbox);
            }
            return None;
        }
        *ack = ack.wrapping_add(data.len() as u32);
        let wanted = HttpCheck::KEPT - answer.len();
        answer.extend_from_slice(&data[..data.len().min(wanted)]);
        let judged = check.judge(answer);
        let outcome = judged.or_else(|| has(TcpFlags::FIN).then_some(Err(Failure::Closed)));
        let (seq, ack) = (*seq, *ack);
        match outcome {
            Some(_) => self.send_segment(TcpFlags::RST | TcpFlags::ACK, seq, ack, &[], outbox),
            None if !data.is_empty() => self.send_segment(TcpFlags::ACK, seq, ack, &[], outbox),
            None => {}
        }
        outcome
    }
}
