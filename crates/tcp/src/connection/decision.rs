//! What a connection did with a segment, for traces: the difference between where it stood before and after.

use std::fmt;

use super::{Challenge, Connection, Ignored, State};
use crate::sequence::SequenceNumber;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The state.
    pub state: State,
    /// The first number that the peer has not acknowledged (SND.UNA).
    pub unacknowledged: SequenceNumber,
    /// The next number expected from the peer (RCV.NXT).
    pub expected: SequenceNumber,
    /// Bytes held beyond gaps.
    pub held: u32,
    /// Duplicate acknowledgements since the last that was not one.
    pub duplicate_acks: u32,
    /// Whether a loss is being repaired.
    pub repairs: bool,
}

/// What a connection did with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The state before.
    pub was: State,
    /// The state after.
    pub state: State,
    /// Numbers that are in order now and were not before: bytes, and the peer's FIN.
    pub in_order: u32,
    /// Bytes held beyond gaps now; `None` if as many as before.
    pub held: Option<u32>,
    /// Numbers acknowledged: bytes, and SYN and FIN of this end.
    pub acknowledged: u32,
    /// Which duplicate acknowledgement in a row it is, if it is one.
    pub duplicate_ack: Option<u32>,
    /// Whether a repair of a loss has begun, or ended.
    pub repair: Option<bool>,
    /// Why it, or a part of it, was ignored.
    pub ignored: Option<Ignored>,
    /// What came of the wish to challenge the peer.
    pub challenge: Option<Challenge>,
}

impl Connection {
    /// Where the connection stands.
    pub fn numbers(&self) -> Numbers {
        let (duplicate_acks, repairs) = self.sender.repairs();
        Numbers {
            state: self.state,
            unacknowledged: self.sender.una(),
            expected: self.receiver.next(),
            held: self.receiver.held(),
            duplicate_acks,
            repairs,
        }
    }

    /// Forgets what came of the last wish to challenge the peer, so that [`Connection::decision`] is about the next segment.
    pub fn forget_challenge(&mut self) {
        self.challenge = None;
    }

    /// What was done with the segment handled last, if the connection stood at `before` until then. `ignored` is what
    /// [`Connection::take_ignored`] has returned for it. To be asked before anything is sent.
    pub fn decision(&self, before: &Numbers, ignored: Option<Ignored>) -> Decision {
        let now = self.numbers();
        // The first segment of the peer tells where its numbers start.
        let in_order = match before.state {
            State::SynSent => 0,
            _ => now.expected.since(before.expected),
        };
        let counted = now.duplicate_acks > before.duplicate_acks;
        Decision {
            was: before.state,
            state: now.state,
            in_order,
            held: Some(now.held).filter(|held| *held != before.held),
            acknowledged: now.unacknowledged.since(before.unacknowledged),
            duplicate_ack: counted.then_some(now.duplicate_acks),
            repair: Some(now.repairs).filter(|repairs| *repairs != before.repairs),
            ignored,
            challenge: self.challenge,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.in_order > 0 {
            parts.push(format!("accepts {} in order", self.in_order));
        }
        match self.held {
            Some(0) => parts.push("nothing held beyond a gap any more".to_owned()),
            Some(held) => parts.push(format!("holds {held} bytes beyond a gap")),
            None => {}
        }
        if self.acknowledged > 0 {
            parts.push(format!("{} acknowledged", self.acknowledged));
        }
        if let Some(count) = self.duplicate_ack {
            parts.push(format!("duplicate ACK {count}"));
        }
        match self.repair {
            Some(true) => parts.push("repair of a loss begins".to_owned()),
            Some(false) => parts.push("repair of a loss ends".to_owned()),
            None => {}
        }
        if let Some(why) = self.ignored {
            let what = if self.is_partial() { "a part ignored" } else { "ignored" };
            parts.push(format!("{what}: {}", why.name()));
        }
        match self.challenge {
            Some(Challenge::Sent) => parts.push("challenge ACK".to_owned()),
            Some(Challenge::Withheld) => {
                parts.push("no challenge ACK: one was sent less than a second ago".to_owned());
            }
            None => {}
        }
        let has_moved = self.was != self.state;
        if parts.is_empty() && !has_moved {
            parts.push("nothing new".to_owned());
        }
        f.write_str(&parts.join(", "))?;
        f.write_str(if parts.is_empty() { "" } else { "; " })?;
        match has_moved {
            true => write!(f, "{} -> {}", self.was.name(), self.state.name()),
            false => f.write_str(self.state.name()),
        }
    }
}

impl Decision {
    /// What a half-open connection did with a segment, which neither brings data in order nor acknowledges anything.
    pub fn of_half_open(
        (was, state): (State, State),
        ignored: Option<Ignored>,
        challenge: Option<Challenge>,
    ) -> Decision {
        Decision {
            was,
            state,
            in_order: 0,
            held: None,
            acknowledged: 0,
            duplicate_ack: None,
            repair: None,
            ignored,
            challenge,
        }
    }

    /// Whether a part of the segment counted although another was ignored.
    fn is_partial(&self) -> bool {
        self.in_order > 0 || self.held.is_some() || self.acknowledged > 0
    }
}
