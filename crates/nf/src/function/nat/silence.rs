//! Unsolicited SYNs from outside (RFC 5382, REQ-4). For a while they are met with silence, because the
//! host inside may be about to open the same connection from its side; if it has not by then, their
//! sender is told that nobody listens.

use std::collections::VecDeque;
use std::time::Duration;

use rheostat_base::{DeviceId, Time};
use rheostat_ip::{LONGEST_ANSWER, RateLimit, Received, Unreachable, unreachable};
use rheostat_packet::{FlowKey, Headers, LinkType};

use super::shard::NatShard;
use crate::cx::Cx;
use crate::packet::Packet;
use crate::verdict::Outcome;

/// SYNs a shard keeps at a time; those beyond are never answered.
const MOST: usize = 64;
/// Bytes of each that are kept: the headers, which the answer quotes.
const KEPT: usize = 128;

/// The SYNs of a shard that are yet to be answered, in the order of their arrival.
#[derive(Debug)]
pub(super) struct Silence {
    lasts: Option<Duration>,
    waiting: VecDeque<Syn>,
}

#[derive(Debug)]
struct Syn {
    due: Time,
    key: FlowKey,
    device: DeviceId,
    link: LinkType,
    wire_len: usize,
    len: usize,
    start: [u8; KEPT],
}

impl Silence {
    /// Silence that lasts so long; for ever with `None`.
    pub(super) fn new(lasts: Option<Duration>) -> Silence {
        Silence { lasts, waiting: VecDeque::new() }
    }

    /// Notes a SYN that nobody has asked for.
    pub(super) fn note(&mut self, packet: &Packet<'_>, now: Time) {
        let Some(lasts) = self.lasts else { return };
        // Those whose time has come do not count: when the shard gets round to them must not matter.
        if self.waiting.iter().filter(|syn| syn.due > now).count() >= MOST {
            return;
        }
        let data = packet.data();
        let len = data.len().min(KEPT);
        let mut start = [0; KEPT];
        start[..len].copy_from_slice(&data[..len]);
        self.waiting.push_back(Syn {
            due: now + lasts,
            key: *packet.arrival_key(),
            device: packet.device(),
            link: packet.mbuf().meta.link(),
            wire_len: packet.len(),
            len,
            start,
        });
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
        if is_due { self.waiting.pop_front() } else { None }
    }
}

/// Answers the SYNs whose time has come.
pub(super) fn answer_unsolicited(cx: &mut Cx<'_, NatShard>) -> Outcome<()> {
    let now = cx.now();
    while let Some(syn) = cx.local().silence.next(now) {
        if !answers(cx).allow(now) {
            continue;
        }
        let data = &syn.start[..syn.len];
        let Ok(headers) = Headers::parse_bytes(data, syn.wire_len, syn.link) else { continue };
        let received = Received { data, link: syn.link };
        cx.originate(syn.device, syn.link, LONGEST_ANSWER, |out| {
            unreachable(received, &headers, Unreachable::NoPort, out)
        })?;
    }
    Ok(())
}

fn answers<'a>(cx: &'a mut Cx<'_, NatShard>) -> &'a mut RateLimit {
    &mut cx.local().answers
}
