//! What becomes of half-open connections.

use rheostat_packet::Mbuf;
use rheostat_run::Output;
use rheostat_tcp::{
    Challenge, Decision, HalfOpenOutcome, HalfOpenTimeout, Ignored, Segment, SendReason, State,
};

use super::TcpService;
use super::opening::Opening;
use crate::connections::{Connections, Found};
use crate::driver::Driver;
use crate::ends::Ends;
use crate::half_open::HalfOpenEntry;

impl<D: Driver> TcpService<D> {
    /// Handles a segment for the half-open connection in a slot.
    pub(super) fn handle_half_open(
        &mut self,
        slot: u32,
        packet: &Mbuf,
        segment: &Segment<'_>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) {
        let Found::HalfOpen(_, entry) = connections.get(slot) else { return };
        let opening = opening_of(entry);
        let (ends, config) = (Ends::of(&opening.key), self.settings(&opening));
        let outcome = entry.tcp.handle_segment(segment, &config, out.now());
        if self.noted.is_watched && outcome != HalfOpenOutcome::Completes {
            let what = (&segment.header, segment.payload.len());
            self.note_segment(&ends, what, "a connection", out);
        }
        match outcome {
            HalfOpenOutcome::Completes => {
                if let Some(entry) = connections.take_half_open(slot) {
                    self.shared.budget.end_handshake();
                    self.establish(opening, &entry.tcp, segment, connections, out);
                }
            }
            HalfOpenOutcome::Reset => {
                self.note_half_open(State::Closed, (None, None), out);
                self.give_up(slot, connections);
            }
            HalfOpenOutcome::Refuses => {
                let why = Ignored::ImplausibleAcknowledgement;
                self.counters.ignored(why);
                self.note_half_open(State::SynReceived, (Some(why), None), out);
                self.refuse(&ends, packet, segment, out);
            }
            HalfOpenOutcome::Waits { ignored, challenge, answer } => {
                if let Some(why) = ignored {
                    self.counters.ignored(why);
                }
                self.note_half_open(State::SynReceived, (ignored, challenge), out);
                if let Some((header, reason)) = answer {
                    self.send_alone(
                        (&ends, opening.device, Some(State::SynReceived)),
                        (&header, reason),
                        out,
                    );
                }
            }
        }
    }

    fn note_half_open(
        &mut self,
        state: State,
        (ignored, challenge): (Option<Ignored>, Option<Challenge>),
        out: &mut Output,
    ) {
        if self.noted.is_watched {
            let was = State::SynReceived;
            self.note_decision(&Decision::of_half_open((was, state), ignored, challenge), out);
        }
    }

    /// Does what is due for the half-open connection in a slot.
    pub(super) fn tick_half_open(
        &mut self,
        slot: u32,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) {
        let Found::HalfOpen(_, entry) = connections.get(slot) else { return };
        let opening = opening_of(entry);
        let config = self.settings(&opening);
        let timeout = entry.tcp.handle_timeout(&config, out.now());
        let due = entry.tcp.next_deadline(&config);
        match timeout {
            HalfOpenTimeout::Expired => return self.give_up(slot, connections),
            HalfOpenTimeout::Nothing => {}
            HalfOpenTimeout::Resends(header) => {
                let (ends, again) = (Ends::of(&opening.key), SendReason::HandshakeAgain);
                self.send_alone(
                    (&ends, opening.device, Some(State::SynReceived)),
                    (&header, again),
                    out,
                );
            }
        }
        connections.arm(slot, due);
        self.around.due.note(connections.shard(), due);
    }

    /// Resets all half-open connections of a shard: the run is over.
    pub(super) fn reset_half_open(
        &mut self,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) {
        let slots: Vec<_> = connections.half_open_slots().collect();
        for slot in slots {
            let Found::HalfOpen(_, entry) = connections.get(slot) else { continue };
            let (ends, device, reset) = (Ends::of(&entry.key), entry.device, entry.tcp.reset());
            self.counters.segments_reset.increment();
            self.send_alone(
                (&ends, device, Some(State::SynReceived)),
                (&reset, SendReason::Reset),
                out,
            );
            self.give_up(slot, connections);
        }
    }

    /// Forgets a half-open connection.
    fn give_up(&mut self, slot: u32, connections: &mut Connections<D::Stream>) {
        if connections.take_half_open(slot).is_some() {
            self.counters.handshake_failed.increment();
            self.shared.budget.end_handshake();
            self.shared.budget.close();
        }
    }
}

fn opening_of(entry: &HalfOpenEntry) -> Opening {
    let HalfOpenEntry { key, tag, device, listener, .. } = *entry;
    Opening { key, tag, device, listener }
}
