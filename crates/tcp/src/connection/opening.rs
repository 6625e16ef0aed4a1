//! The handshake (RFC 9293, 3.5).

use rheostat_base::Time;

use super::handshake::{Agreement, Handshake};
use super::{CloseReason, Connection, Event, Ignored, State};
use crate::options::TIMESTAMPS_LEN;
use crate::receive::{ReceiveHalf, Stamps};
use crate::segment::{Header, Segment};

impl Connection {
    /// SYN-SENT (RFC 9293, 3.10.7.3). Data beside SYN is left to be sent again.
    pub(super) fn handle_in_syn_sent(&mut self, segment: &Segment<'_>, now: Time) {
        let header = &segment.header;
        if let Some(ack) = header.ack
            && ack != self.sender.una()
        {
            self.reset = Header::reset_for(segment).map(Box::new);
            self.ignore(Ignored::ImplausibleAcknowledgement);
            return;
        }
        if header.rst {
            if header.ack.is_some() {
                self.end(CloseReason::Refused);
            }
            return;
        }
        if !header.syn || header.fin {
            let stray = if header.syn { Ignored::StraySyn } else { Ignored::OutsideWindow };
            self.ignore(stray);
            return;
        }
        self.on_peer_syn(header, now);
        if header.ack.is_some() {
            self.establish(now);
            self.receiver.acknowledgement().on_immediate();
        } else {
            self.state = State::SynReceived;
            self.handshake = Handshake::new(&self.config, now);
        }
    }

    /// SYN-RECEIVED: the peer's SYN again, or with an acknowledgement, as when both open at the same time. Returns whether the
    /// segment was that.
    pub(super) fn handle_repeated_syn(&mut self, header: &Header, now: Time) -> bool {
        if !header.syn || header.rst || header.seq + 1 != self.receiver.next() {
            return false;
        }
        if header.ack == Some(self.sender.una()) {
            self.set_window_by_syn(header);
            self.establish(now);
            self.receiver.acknowledgement().on_immediate();
        } else if header.ack.is_none() {
            self.handshake.resend();
        }
        true
    }

    /// The peer's SYN settles the options and where its numbers start.
    pub(super) fn on_peer_syn(&mut self, header: &Header, now: Time) {
        let agreement = Agreement::new(&self.config, &header.options);
        self.stamps = header
            .options
            .timestamps
            .filter(|_| agreement.timestamps)
            .map(|theirs| Stamps::new(self.initial.stamp_offset, theirs.value, now));
        let (shift, _) = agreement.shifts.unwrap_or_default();
        let options = if agreement.timestamps { TIMESTAMPS_LEN as u16 } else { 0 };
        self.receiver = ReceiveHalf::new(&self.config, header.seq + 1, shift, options);
        self.receiver.set_memory(self.sender.memory().cloned());
        self.receiver.on_unscaled_window(self.config.window_of_syn());
        self.agreement = Some(agreement);
        self.set_window_by_syn(header);
    }

    /// The window of a SYN is not scaled; later ones are.
    fn set_window_by_syn(&mut self, header: &Header) {
        let (_, shift) = self.agreement.and_then(|agreement| agreement.shifts).unwrap_or_default();
        let ack = header.ack.unwrap_or(self.sender.una());
        self.sender.window().on_handshake(header.seq, ack, header.window, shift);
    }

    pub(super) fn establish(&mut self, now: Time) {
        let terms = self.agreement.unwrap_or_default().terms();
        let sample = self.handshake.sample(now);
        self.sender.establish(terms, sample, &self.config, now);
        self.keep_alive.on_heard(now);
        self.events.push(Event::Established);
        self.state = State::Established;
        if self.sender.has_finished() {
            self.state = self.state.after_finish();
        }
        self.settle_timer(now);
    }
}
