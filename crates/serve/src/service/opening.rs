//! Segments that belong to no connection: some open one.

use std::sync::Arc;

use rheostat_base::{DeviceId, DropReason};
use rheostat_packet::{FlowKey, Mbuf};
use rheostat_run::{Output, PacketInfo};
use rheostat_tcp::{Config, HalfOpen, Header, Segment, SendReason, State};

use super::TcpService;
use crate::budget::Refused;
use crate::config::SynCookieMode;
use crate::connections::Connections;
use crate::driver::Driver;
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::half_open::HalfOpenEntry;
use crate::index::tag_of;

/// Why a segment that no connection takes is not answered.
const NO_RESET: &str = "no reset: as many errors as may be have been sent lately";

/// How a SYN is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// By a half-open connection, which has its place.
    HalfOpen,
    /// With a cookie.
    Cookie,
}

/// A peer that opens a connection, and where.
pub(super) struct Opening {
    pub(super) key: FlowKey,
    pub(super) tag: u32,
    pub(super) device: DeviceId,
    pub(super) listener: u16,
}

impl Opening {
    fn ends(&self) -> Ends {
        Ends::of(&self.key)
    }
}

impl<D: Driver> TcpService<D> {
    /// Answers a SYN, accepts a connection by a SYN cookie, or answers a segment that can open none with a reset (RFC 9293, 3.10.7.1
    /// and 3.10.7.2).
    ///
    /// # Errors
    /// Why the segment is dropped.
    pub(super) fn open(
        &mut self,
        packet: &Mbuf,
        info: &PacketInfo,
        segment: &Segment<'_>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        let (key, device) = (info.key(), packet.device());
        let ends = Ends::of(&key);
        let header = &segment.header;
        let listener =
            self.around.listeners.find(ends.local).filter(|_| !self.shared.is_draining());
        if self.noted.is_watched {
            let taker = if listener.is_some() { "a listener" } else { "no listener" };
            self.note_segment(&ends, (header, segment.payload.len()), taker, out);
        }
        let Some(listener) = listener else {
            self.refuse(&ends, packet, segment, out);
            return Err(DropReason::NoListener);
        };
        let opening = Opening { key, tag: tag_of(info.hash), device, listener };
        if !header.syn || header.ack.is_some() || header.rst || header.fin {
            if let Some(half_open) = self.check_cookie(&opening, segment, out) {
                return self.accept_by_cookie(opening, &half_open, segment, connections, out);
            }
            self.refuse(&ends, packet, segment, out);
            let is_odd = header.syn && (header.rst || header.fin);
            return Err(if is_odd { DropReason::TcpInvalid } else { DropReason::NoConnection });
        }
        match self.place(connections, out)? {
            Answer::HalfOpen => self.begin_handshake(opening, segment, connections, out),
            Answer::Cookie => self.answer_with_cookie(&opening, header, out),
        }
        Ok(())
    }

    /// The settings of a connection that comes to a listener.
    pub(super) fn settings(&mut self, opening: &Opening) -> Arc<Config> {
        let (listener, peer) = (Some(opening.listener), opening.key.first());
        self.around.listeners.settings(listener, opening.device, peer, &self.around.egress.stack)
    }

    /// Takes a place for a half-open connection, or finds that the SYN is to be answered with a cookie. Where lanes have filled the
    /// bound and this shard has nothing to evict, a shard without cookies exceeds it by one.
    ///
    /// # Errors
    /// Why the SYN is dropped.
    fn place(
        &mut self,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) -> Result<Answer, DropReason> {
        let (budget, mode) = (&self.shared.budget, self.shared.limits().syn_cookies);
        budget.check(connections.memory()).map_err(|refused| self.reason(refused))?;
        if mode == SynCookieMode::Always {
            return Ok(Answer::Cookie);
        }
        if budget.has_room_for_half_open() {
            budget.open();
            return Ok(Answer::HalfOpen);
        }
        let is_off = mode == SynCookieMode::Off;
        match connections.oldest_half_open() {
            Some((slot, oldest)) if is_off || oldest.tcp.was_answered_twice() => {
                // Its place is taken over, in the budget, too.
                connections.take_half_open(slot);
                self.counters.half_open_evicted.increment();
                self.counters.handshake_failed.increment();
                if self.noted.is_watched {
                    let words = "takes the place of the oldest half-open connection";
                    self.note_words(words, None, out);
                }
                Ok(Answer::HalfOpen)
            }
            None if is_off => {
                budget.open();
                Ok(Answer::HalfOpen)
            }
            _ => Ok(Answer::Cookie),
        }
    }

    fn begin_handshake(
        &mut self,
        opening: Opening,
        segment: &Segment<'_>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) {
        let (now, config) = (out.now(), self.settings(&opening));
        let Ends { local, remote } = opening.ends();
        let initial = self.shared.numbers.of(local, remote, now);
        let timeout = self.shared.listeners[usize::from(opening.listener)].handshake_timeout;
        let Some(mut tcp) = HalfOpen::accept(&config, initial, segment, timeout, now) else {
            self.shared.budget.end_handshake();
            self.shared.budget.close();
            return;
        };
        self.counters.passive_opens.increment();
        if self.noted.is_watched {
            let words = "accepts the SYN; listen -> syn-received";
            self.note_words(words, Some(("listen", "syn-received")), out);
        }
        let (answer, reason) = tcp.answer(&config, now);
        let due = tcp.next_deadline(&config);
        self.send_alone(
            (&opening.ends(), opening.device, Some(State::SynReceived)),
            (&answer, reason),
            out,
        );
        let Opening { key, tag, device, listener } = opening;
        let slot =
            connections.insert_half_open(HalfOpenEntry::new((key, tag), tcp, listener, device));
        connections.arm(slot, due);
        self.around.due.note(connections.shard(), due);
    }

    fn answer_with_cookie(&mut self, opening: &Opening, syn: &Header, out: &mut Output) {
        let (now, config) = (out.now(), self.settings(opening));
        let ends = opening.ends();
        let offset = self.stamp_offset(&ends, out);
        let answer = self.cookies.answer(syn, (ends.local, ends.remote), offset, &config, now);
        self.shared.cookies.note(now);
        self.counters.syn_cookies_sent.increment();
        if self.noted.is_watched {
            self.note_words("answers with a SYN cookie; listen", Some(("listen", "listen")), out);
        }
        self.send_alone(
            (&ends, opening.device, Some(State::SynReceived)),
            (&answer, SendReason::SynCookie),
            out,
        );
    }

    /// The handshake that a segment completes by a cookie. Where none can be under way, nothing is computed.
    fn check_cookie(
        &mut self,
        opening: &Opening,
        segment: &Segment<'_>,
        out: &Output,
    ) -> Option<HalfOpen> {
        let header = &segment.header;
        let (now, may_be) = (out.now(), header.ack.is_some() && !header.syn && !header.rst);
        if !may_be || !self.shared.cookies.are_under_way(now) {
            return None;
        }
        let (config, ends) = (self.settings(opening), opening.ends());
        let offset = self.stamp_offset(&ends, out);
        let found = self.cookies.check(segment, (ends.local, ends.remote), offset, &config, now);
        if found.is_none() {
            self.counters.syn_cookies_refused.increment();
        }
        found
    }

    fn accept_by_cookie(
        &mut self,
        opening: Opening,
        half_open: &HalfOpen,
        segment: &Segment<'_>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        let opened = self.shared.budget.open_at_once(connections.memory());
        opened.map_err(|refused| self.reason(refused))?;
        self.counters.passive_opens.increment();
        self.counters.syn_cookies_accepted.increment();
        if self.noted.is_watched {
            let words = "accepts the SYN cookie; listen -> syn-received";
            self.note_words(words, Some(("listen", "syn-received")), out);
        }
        self.establish(opening, half_open, segment, connections, out);
        Ok(())
    }

    /// Makes the connection whose handshake a segment completes, and passes it the segment.
    pub(super) fn establish(
        &mut self,
        opening: Opening,
        half_open: &HalfOpen,
        segment: &Segment<'_>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) {
        let (now, config) = (out.now(), self.settings(&opening));
        let mut tcp = half_open.establish(config, now);
        tcp.set_memory(Some(connections.memory().clone()));
        let Opening { key, tag, device, listener } = opening;
        let route = self.around.egress.route(Ends::of(&key).remote, device, now);
        tcp.set_path_mss(route.mss);
        let slot = connections.insert(Entry {
            key,
            device,
            listener: Some(listener),
            tcp,
            route,
            phase: Phase::Opening,
            peer_finished: false,
            stream: D::accept(),
            active: now,
            charged: 0,
            retransmitted: 0,
            tag,
        });
        self.advance(slot, Some(segment), connections, out);
    }

    /// What the stamps of a connection between these ends start from.
    fn stamp_offset(&self, ends: &Ends, out: &Output) -> u32 {
        self.shared.numbers.of(ends.local, ends.remote, out.now()).stamp_offset
    }

    /// Sends a reset, at the rate at which errors may be sent.
    pub(super) fn refuse(
        &mut self,
        ends: &Ends,
        packet: &Mbuf,
        segment: &Segment<'_>,
        out: &mut Output,
    ) {
        if let Some(reset) = Header::reset_for(segment)
            && self.around.egress.stack.may_report(out.now())
        {
            self.counters.resets_sent.increment();
            self.counters.segments_reset.increment();
            self.send_alone((ends, packet.device(), None), (&reset, SendReason::Reset), out);
        } else if self.noted.is_watched {
            let words = if segment.header.rst { "a reset is not answered" } else { NO_RESET };
            self.note_words(words, None, out);
        }
    }

    /// Why a SYN is dropped for which there is no place. A refusal for lack of memory has shards look for memory to reclaim.
    fn reason(&self, refused: Refused) -> DropReason {
        match refused {
            Refused::Connections => DropReason::ConnectionLimit,
            Refused::Memory => {
                self.shared.note_scarcity();
                DropReason::ConnectionMemory
            }
        }
    }
}
