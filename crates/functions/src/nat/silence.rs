//! Unsolicited SYNs from outside (RFC 5382, REQ-4). For a while they are met with silence, because the
//! host inside may be about to open the same connection from its side; if it has not by then, their
//! sender gets an error.

use std::collections::VecDeque;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::FlowKey;

use super::shard::NatShard;
use super::syn::Syn;
use rheostat_nf::Cx;
use rheostat_nf::Outcome;
use rheostat_nf::Packet;

/// SYNs a shard keeps at a time; those beyond are never answered.
const MOST: usize = 64;

/// The SYNs of a shard that are yet to be answered, in the order of their arrival.
#[derive(Debug)]
pub(super) struct Silence {
    lasts: Option<Duration>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    due: Time,
    key: FlowKey,
    syn: Syn,
}

impl Silence {
    /// Silence that lasts so long; for ever with `None`.
    pub(super) fn new(lasts: Option<Duration>) -> Silence {
        Silence { lasts, waiting: VecDeque::new() }
    }

    /// Lasts so long from the next SYN on; for ever with `None`.
    pub(super) fn set(&mut self, lasts: Option<Duration>) {
        self.lasts = lasts;
    }

    /// Notes an unsolicited SYN.
    pub(super) fn note(&mut self, packet: &Packet<'_>, now: Time) {
        let Some(lasts) = self.lasts else { return };
        // Those whose time has come do not count: when the shard gets round to them must not matter.
        if self.waiting.iter().filter(|syn| syn.due > now).count() >= MOST {
            return;
        }
        let (key, syn) = (packet.arrival_key(), Syn::of(packet));
        self.waiting.push_back(Waiting { due: now + lasts, key, syn });
    }

    /// Inside opens the connection whose packets from outside have `key`: a SYN that still waits for it is
    /// not answered.
    pub(super) fn forget(&mut self, key: &FlowKey, now: Time) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|syn| syn.key != *key || syn.due <= now);
        }
    }

    /// The first SYN whose time has come.
    fn next(&mut self, now: Time) -> Option<Syn> {
        let is_due = self.waiting.front().is_some_and(|syn| syn.due <= now);
        if is_due { self.waiting.pop_front().map(|waiting| waiting.syn) } else { None }
    }
}

/// Answers the SYNs whose time has come.
pub(super) fn answer_unsolicited(cx: &mut Cx<'_, NatShard>) -> Outcome<()> {
    let now = cx.now();
    while let Some(syn) = cx.shard().silence.next(now) {
        if cx.shard().answers.allow(now) {
            syn.answer(cx)?;
        }
    }
    Ok(())
}
