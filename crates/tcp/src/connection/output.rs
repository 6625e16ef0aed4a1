//! What a connection sends, and when it wants to be called.

use rheostat_base::Time;

use super::handshake::Handshake;
use super::{Challenge, CloseReason, Connection, Event, State};
use crate::deadline::Deadline;
use crate::options::{MAX_BLOCKS, Options};
use crate::receive::Stamps;
use crate::segment::{Header, SendReason, Transmit};

impl Connection {
    /// The next segment to send, if there is one. It counts as sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        if let Some(reset) = self.reset.take() {
            return Some(Transmit::without_data(*reset, SendReason::Reset));
        }
        match self.state {
            State::Closed => None,
            State::TimeWait => {
                let header = self.time_wait.as_mut()?.poll_transmit(now)?;
                Some(Transmit::without_data(header, SendReason::Acknowledgement))
            }
            State::SynSent => self.poll_syn(now),
            State::SynReceived => self.poll_syn(now).or_else(|| self.poll_ack(now)),
            _ => self.poll_data(now),
        }
    }

    fn poll_syn<'a>(&mut self, now: Time) -> Option<Transmit<'a>> {
        if !self.handshake.must_send() {
            return None;
        }
        let reason = match self.handshake.is_first() {
            true => SendReason::Handshake,
            false => SendReason::HandshakeAgain,
        };
        self.handshake.on_sent(&self.config, now);
        let ack = (self.state == State::SynReceived).then(|| self.receiver.acknowledge().0);
        let clock = Stamps::clock(self.initial.stamp_offset, now);
        let timestamps = self.stamps.as_mut().map(|stamps| stamps.stamp(now));
        let options = Handshake::options(&self.config, self.agreement.as_ref(), timestamps, clock);
        let window = self.config.window_of_syn();
        let header = Header {
            seq: self.initial.sequence,
            ack,
            syn: true,
            window,
            options,
            ..Header::default()
        };
        Some(Transmit::without_data(header, reason))
    }

    fn poll_ack<'a>(&mut self, now: Time) -> Option<Transmit<'a>> {
        self.receiver.is_ack_due().then(|| {
            let options = self.options(now);
            let reason = self.reason_to_acknowledge();
            Transmit::without_data(self.acknowledging(options), reason)
        })
    }

    /// Why an acknowledgement without data leaves.
    fn reason_to_acknowledge(&self) -> SendReason {
        match self.challenge {
            Some(Challenge::Sent) => SendReason::Challenge,
            _ => SendReason::Acknowledgement,
        }
    }

    fn poll_data(&mut self, now: Time) -> Option<Transmit<'_>> {
        let options = self.options(now);
        if let Some(piece) = self.sender.next_piece(options.len(), &self.config, now) {
            let reason = self.sender.reason(piece);
            self.sender.on_sent(piece, &self.config, now);
            let header = self.acknowledging(options);
            let urgent = self.sender.urgent().pointer(piece.seq);
            let (payload, is_last) = self.sender.payload(piece);
            let header = Header { seq: piece.seq, fin: piece.fin, psh: is_last, urgent, ..header };
            return Some(Transmit { header, payload, reason });
        }
        if self.receiver.is_ack_due() || self.sender.urgent().must_tell() {
            let reason = self.reason_to_acknowledge();
            return Some(Transmit::without_data(self.acknowledging(options), reason));
        }
        if self.keep_alive.take_due() {
            // Before the window, so that it is answered.
            let header = self.acknowledging(options);
            let header = Header { seq: header.seq - 1, ..header };
            return Some(Transmit::without_data(header, SendReason::KeepAlive));
        }
        None
    }

    /// The options of a segment after the handshake.
    fn options(&mut self, now: Time) -> Options {
        let timestamps = self.stamps.as_mut().map(|stamps| stamps.stamp(now));
        let has_sack = self.agreement.is_some_and(|agreement| agreement.sack);
        let room = if timestamps.is_some() { MAX_BLOCKS - 1 } else { MAX_BLOCKS };
        let sack = self.receiver.blocks(if has_sack { room } else { 0 });
        Options { timestamps, sack, ..Options::default() }
    }

    /// A segment without data. What is due to be acknowledged is.
    fn acknowledging(&mut self, options: Options) -> Header {
        let (ack, window) = self.receiver.acknowledge();
        self.challenge = None;
        let seq = self.sender.next_in_window();
        let urgent = self.sender.urgent().pointer(seq);
        self.sender.urgent().on_sent();
        Header { seq, ack: Some(ack), window, urgent, options, ..Header::default() }
    }

    /// When to call [`Connection::handle_timeout`] next; never while there is something to transmit that has not been polled.
    pub fn next_deadline(&self) -> Option<Time> {
        let deadline = match self.state {
            State::Closed => Deadline::NONE,
            State::TimeWait => {
                return self.time_wait.as_ref().map(|time_wait| time_wait.deadline());
            }
            State::SynSent | State::SynReceived => {
                self.linger_deadline().min(self.handshake.deadline())
            }
            _ => self
                .sender
                .deadline(&self.config)
                .min(self.receiver.ack_deadline())
                .min(self.keep_alive_deadline())
                .min(self.closing.fin_wait)
                .min(self.linger_deadline())
                .min(self.write_retry),
        };
        deadline.time()
    }

    /// The peer is probed while it owes us nothing but its presence.
    fn keep_alive_deadline(&self) -> Deadline {
        match &self.config.keep_alive {
            Some(settings) if self.sender.is_idle() => {
                Deadline::at(self.keep_alive.deadline(settings))
            }
            _ => Deadline::NONE,
        }
    }

    /// Does what is due now. Calls before the deadline do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.handle_linger(now) {
            return;
        }
        match self.state {
            State::Closed => {}
            State::TimeWait => {
                if self.time_wait.as_ref().is_some_and(|time_wait| time_wait.deadline() <= now) {
                    self.time_wait = None;
                    self.state = State::Closed;
                }
            }
            State::SynSent | State::SynReceived => {
                if self.handshake.handle_timeout(now).is_err() {
                    self.end(CloseReason::ConnectTimeout);
                }
            }
            _ => self.handle_timers(now),
        }
    }

    fn handle_timers(&mut self, now: Time) {
        self.receiver.acknowledgement().handle_timeout(now);
        if self.write_retry.has_come(now) {
            self.write_retry = Deadline::NONE;
            if std::mem::take(&mut self.is_write_blocked) {
                self.events.push(Event::Writable);
            }
        }
        if self.sender.handle_timeout(&self.config, now).is_err() {
            self.reset_peer();
            self.end(CloseReason::UserTimeout);
        } else if self.closing.fin_wait.has_come(now) {
            self.reset_peer();
            self.end(CloseReason::FinWaitTimeout);
        } else if let Some(settings) =
            self.config.keep_alive.as_ref().filter(|_| self.sender.is_idle())
            && self.keep_alive.handle_timeout(settings, now).is_err()
        {
            self.reset_peer();
            self.end(CloseReason::KeepAliveTimeout);
        }
    }
}
