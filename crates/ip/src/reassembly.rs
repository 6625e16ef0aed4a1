//! Datagrams for this machine that arrive in fragments (RFC 1122, section 3.3.2; RFC 8200, section 4.5).
//!
//! Fragments are copied to where they belong in their datagram; when nothing is missing, the datagram comes out whole. What no
//! honest sender makes is refused, and the whole datagram with it: fragments that overlap with other bytes (RFC 5722), that
//! disagree about the end, run past the longest datagram, or have a length that is no multiple of eight before the end. The same
//! fragment twice is no harm. A packet that is all of its datagram is no fragment (RFC 6946).
//!
//! Bounded in datagrams, in allocated bytes and in time. Where there is no room the oldest datagram goes, so that a flood of
//! fragments costs its own datagrams first. A fragment is compared with all datagrams and all pieces of its own.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_packet::wire::ipv4;
use rheostat_packet::{Fragment, Headers, Network, checksum, tuple};

const IPV6_HEADER: usize = 40;
const FRAGMENT_HEADER: usize = 8;
const FRAGMENT: u8 = 44;

/// What a reassembler keeps, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyConfig {
    /// Datagrams at a time. Each fragment is compared with all of them.
    pub datagrams: usize,
    /// Fragments of a datagram.
    pub pieces: usize,
    /// Bytes that are allocated for datagrams.
    pub bytes: usize,
    /// How long a datagram may take from its first fragment to arrive on (RFC 1122: 60 to 120 s; RFC 8200: 60 s).
    pub timeout: Duration,
}

impl Default for ReassemblyConfig {
    fn default() -> ReassemblyConfig {
        ReassemblyConfig {
            datagrams: 16,
            pieces: 64,
            bytes: 256 << 10,
            timeout: Duration::from_secs(60),
        }
    }
}

/// What has become of datagrams and fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyCounts {
    /// Fragments that arrived.
    pub fragments: u64,
    /// Fragments that came twice.
    pub duplicates: u64,
    /// Datagrams that became whole.
    pub whole: u64,
    /// Datagrams that were given up because fragments contradict each other.
    pub invalid: u64,
    /// Datagrams of which something was missing in the end.
    pub timed_out: u64,
    /// Datagrams that had to make room.
    pub evicted: u64,
}

/// A datagram that was given up after its time, and whose sender is to be told so: its first fragment has come (RFC 792; RFC 8200,
/// section 4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Where it arrived.
    pub device: DeviceId,
    /// The first fragment from its IP header on.
    pub first: Vec<u8>,
}

/// What becomes of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reassembled {
    /// It is kept, as a copy.
    Held,
    /// It was the last one missing: the datagram from its IP header on, as if it had never been in fragments.
    Whole(Vec<u8>),
    /// It is to be dropped.
    Refused(DropReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DatagramId {
    source: IpAddr,
    destination: IpAddr,
    /// Zero for IPv6, where it does not count.
    protocol: u8,
    id: u32,
}

/// A datagram of which something is missing.
#[derive(Debug)]
struct Partial {
    id: DatagramId,
    device: DeviceId,
    deadline: Time,
    /// What stands before the data in the first fragment; known once that has come.
    header: Vec<u8>,
    /// Bytes of data in the first fragment.
    first: usize,
    data: Vec<u8>,
    /// What has come: disjoint, in order.
    pieces: Vec<(usize, usize)>,
    end: Option<usize>,
    /// Nothing is kept of it, and nothing more is taken.
    is_poisoned: bool,
}

impl Partial {
    fn allocated(&self) -> usize {
        self.header.capacity() + self.data.capacity()
    }

    fn poison(&mut self) {
        (self.header, self.data, self.pieces) = (Vec::new(), Vec::new(), Vec::new());
        self.is_poisoned = true;
    }

    fn is_whole(&self) -> bool {
        !self.header.is_empty() && self.end.is_some_and(|end| self.pieces == [(0, end)])
    }

    /// Notes that the bytes `start..end` have come, which none of the pieces has.
    fn add(&mut self, start: usize, end: usize) {
        let at = self.pieces.partition_point(|piece| piece.0 < start);
        self.pieces.insert(at, (start, end));
        self.pieces.dedup_by(|next, piece| {
            let touches = piece.1 == next.0;
            if touches {
                piece.1 = next.1;
            }
            touches
        });
    }
}

/// Puts datagrams together, one lane's.
#[derive(Debug, Default)]
pub struct Reassembler {
    config: ReassemblyConfig,
    /// In order of deadlines, as all wait equally long.
    partial: VecDeque<Partial>,
    /// At most as many as there may be datagrams.
    overdue: VecDeque<Overdue>,
    counts: ReassemblyCounts,
}

impl Reassembler {
    /// An empty one.
    pub fn new(config: ReassemblyConfig) -> Reassembler {
        Reassembler { config, ..Reassembler::default() }
    }

    /// What has become of datagrams.
    pub fn counts(&self) -> ReassemblyCounts {
        self.counts
    }

    /// Datagrams of which something is missing.
    pub fn len(&self) -> usize {
        self.partial.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// Bytes that are allocated for datagrams.
    pub fn allocated(&self) -> usize {
        self.partial.iter().map(Partial::allocated).sum()
    }

    /// When [`Reassembler::expire`] has something to do next.
    pub fn next_deadline(&self) -> Option<Time> {
        self.partial.front().map(|partial| partial.deadline)
    }

    /// Gives up datagrams that have waited for too long; [`Reassembler::poll_overdue`] has those whose senders are to be told.
    pub fn expire(&mut self, now: Time) {
        while let Some(late) = self.partial.pop_front_if(|partial| partial.deadline <= now) {
            if late.is_poisoned {
                continue;
            }
            self.counts.timed_out += 1;
            if !late.header.is_empty() && self.overdue.len() < self.config.datagrams {
                let first = [&late.header, &late.data[..late.first]].concat();
                self.overdue.push_back(Overdue { device: late.device, first });
            }
        }
    }

    /// A datagram that was given up because of its time, and of which the first fragment is there.
    pub fn poll_overdue(&mut self) -> Option<Overdue> {
        self.overdue.pop_front()
    }

    /// Takes a fragment: a packet, from its link header on, with these headers, that arrived on `device`.
    pub fn take(
        &mut self,
        bytes: &[u8],
        headers: &Headers,
        device: DeviceId,
        now: Time,
    ) -> Reassembled {
        self.expire(now);
        let parts = headers.fragment.and_then(|fragment| parts(bytes, headers, fragment));
        let Some((id, header, data, fragment)) = parts else {
            return Reassembled::Refused(DropReason::Malformed);
        };
        self.counts.fragments += 1;
        let start = usize::from(fragment.offset);
        let Some(at) = self.find(id, device, now) else {
            return Reassembled::Refused(DropReason::FragmentsFull);
        };
        match fit(&self.partial[at], start, data, fragment.more) {
            Fit::Duplicate => {
                self.counts.duplicates += 1;
                return Reassembled::Held;
            }
            Fit::Contradiction => {
                let partial = &mut self.partial[at];
                self.counts.invalid += u64::from(!partial.is_poisoned);
                partial.poison();
                return Reassembled::Refused(DropReason::FragmentInvalid);
            }
            Fit::New if self.partial[at].pieces.len() >= self.config.pieces => {
                return Reassembled::Refused(DropReason::FragmentsFull);
            }
            Fit::New => {}
        }
        let Some(at) = self.make_room(at, start + data.len(), header.len()) else {
            return Reassembled::Refused(DropReason::FragmentsFull);
        };
        let partial = &mut self.partial[at];
        let end = start + data.len();
        if partial.data.len() < end {
            partial.data.resize(end, 0);
        }
        partial.data[start..end].copy_from_slice(data);
        partial.add(start, end);
        if start == 0 {
            partial.header = header;
            partial.first = data.len();
        }
        if !fragment.more {
            partial.end = Some(end);
        }
        if !partial.is_whole() {
            return Reassembled::Held;
        }
        let Some(partial) = self.partial.remove(at) else { return Reassembled::Held };
        match finish(partial.header, &partial.data) {
            Some(whole) => {
                self.counts.whole += 1;
                Reassembled::Whole(whole)
            }
            None => {
                self.counts.invalid += 1;
                Reassembled::Refused(DropReason::FragmentInvalid)
            }
        }
    }

    /// The place of a datagram, which is made if need be.
    fn find(&mut self, id: DatagramId, device: DeviceId, now: Time) -> Option<usize> {
        if let Some(at) = self.partial.iter().position(|partial| partial.id == id) {
            return Some(at);
        }
        while self.partial.len() >= self.config.datagrams {
            self.evict(0)?;
        }
        self.partial.push_back(Partial {
            id,
            device,
            deadline: now + self.config.timeout,
            header: Vec::new(),
            first: 0,
            data: Vec::new(),
            pieces: Vec::new(),
            end: None,
            is_poisoned: false,
        });
        Some(self.partial.len() - 1)
    }

    fn evict(&mut self, at: usize) -> Option<()> {
        let evicted = self.partial.remove(at)?;
        self.counts.evicted += u64::from(!evicted.is_poisoned);
        Some(())
    }

    /// Allocates for so many bytes of data and header in a datagram, at the cost of the oldest others. Returns where it is then.
    fn make_room(&mut self, mut at: usize, data: usize, header: usize) -> Option<usize> {
        let partial = &self.partial[at];
        let before = partial.allocated();
        let needed =
            before.max(data.max(partial.data.capacity()) + header.max(partial.header.len()));
        while self.allocated() - before + needed > self.config.bytes {
            let oldest = usize::from(at == 0);
            if oldest >= self.partial.len() {
                return None;
            }
            self.evict(oldest)?;
            at -= usize::from(oldest < at);
        }
        let partial = &mut self.partial[at];
        let more = data.saturating_sub(partial.data.len());
        partial.data.reserve_exact(more);
        Some(at)
    }
}

enum Fit {
    New,
    Duplicate,
    Contradiction,
}

/// How a fragment fits in with what has come.
fn fit(partial: &Partial, start: usize, data: &[u8], more: bool) -> Fit {
    let end = start + data.len();
    let last = partial.pieces.last().map_or(0, |piece| piece.1);
    let agrees_on_end = match (partial.end, more) {
        (Some(known), true) => end <= known,
        (Some(known), false) => end == known,
        (None, true) => true,
        (None, false) => last <= end,
    };
    let is_honest =
        !data.is_empty() && (!more || data.len().is_multiple_of(8)) && end <= longest(partial);
    if partial.is_poisoned || !agrees_on_end || !is_honest {
        return Fit::Contradiction;
    }
    match partial.pieces.iter().find(|piece| piece.0 < end && start < piece.1) {
        None => Fit::New,
        Some(piece) if piece.0 <= start && end <= piece.1 && partial.data[start..end] == *data => {
            Fit::Duplicate
        }
        Some(_) => Fit::Contradiction,
    }
}

/// The longest data of a datagram whose header has no options.
fn longest(partial: &Partial) -> usize {
    match partial.id.source {
        IpAddr::V4(_) => usize::from(u16::MAX) - ipv4::MIN_HEADER,
        IpAddr::V6(_) => usize::from(u16::MAX),
    }
}

/// The datagram that a fragment is of, what stands before its data in the packet, and its data.
fn parts<'a>(
    bytes: &'a [u8],
    headers: &Headers,
    fragment: Fragment,
) -> Option<(DatagramId, Vec<u8>, &'a [u8], Fragment)> {
    let (l3, end) = (usize::from(headers.l3), headers.end as usize);
    let at = end.checked_sub(fragment.len.into())?;
    let data = bytes.get(at..end)?;
    let hosts = tuple::addresses(bytes, headers)?;
    let (protocol, header) = match headers.network {
        Network::Ipv4 => (headers.protocol, bytes.get(l3..at)?.to_vec()),
        Network::Ipv6 => {
            let header = bytes.get(l3..at)?;
            without_fragment_header(header)?;
            (0, header.to_vec())
        }
        _ => return None,
    };
    let id = DatagramId {
        source: hosts.first(),
        destination: hosts.second(),
        protocol,
        id: fragment.id,
    };
    Some((id, header, data, fragment))
}

/// The headers of a fragment without the fragment header, which is the last of them: what follows it is named in its place.
fn without_fragment_header(headers: &[u8]) -> Option<Vec<u8>> {
    let (headers, last) = headers.split_at_checked(headers.len().checked_sub(FRAGMENT_HEADER)?)?;
    let (mut headers, next) = (headers.to_vec(), *last.first()?);
    let (mut field, mut behind) = (6, IPV6_HEADER);
    while *headers.get(field)? != FRAGMENT {
        (field, behind) = (behind, behind + 8 * (usize::from(*headers.get(behind + 1)?) + 1));
    }
    headers[field] = next;
    (behind == headers.len()).then_some(headers)
}

/// The whole datagram: lengths, and what says that it is a fragment, are put right.
fn finish(mut header: Vec<u8>, data: &[u8]) -> Option<Vec<u8>> {
    if header.first()? >> 4 == 4 {
        let total = u16::try_from(header.len() + data.len()).ok()?;
        header.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
        header.get_mut(6..8)?.fill(0);
        header.get_mut(10..12)?.fill(0);
        let sum = checksum::of(&header);
        header.get_mut(10..12)?.copy_from_slice(&sum.to_be_bytes());
    } else {
        header = without_fragment_header(&header)?;
        let payload = u16::try_from(header.len().checked_sub(IPV6_HEADER)? + data.len()).ok()?;
        header.get_mut(4..6)?.copy_from_slice(&payload.to_be_bytes());
    }
    header.extend_from_slice(data);
    Some(header)
}

#[cfg(test)]
mod tests;
