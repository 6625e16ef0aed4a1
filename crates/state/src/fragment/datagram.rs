//! One datagram in fragments: which parts have come, and what is held.

use rheostat_base::Time;
use rheostat_packet::{Family, FlowKey, Fragment, Mbuf};

use super::DatagramId;

/// The longest data of a datagram: a total length of 65,535 with the shortest header (RFC 791), or a
/// payload length of as much (RFC 8200).
const fn longest(family: Family) -> u32 {
    match family {
        Family::V4 => 65_535 - 20,
        Family::V6 => 65_535,
    }
}

/// How a fragment fits in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fit {
    /// It is new, and this many pieces lie before it.
    New(usize),
    /// The same part came before.
    Duplicate,
}

/// Why a fragment does not fit in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It contradicts the others, or the datagram is poisoned.
    Hostile,
    /// The datagram has as many pieces as it may.
    TooMany,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatagramPiece {
    start: u32,
    end: u32,
}

#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) id: DatagramId,
    pub(super) deadline: Time,
    /// The flow key, once the first fragment has come.
    pub(super) key: Option<FlowKey>,
    /// The fragments that wait for the key, in order of arrival.
    pub(super) held: Vec<Mbuf>,
    /// What has come: disjoint, in order.
    pieces: Vec<DatagramPiece>,
    /// The sum of the pieces.
    covered: u32,
    /// Where the datagram ends, once its last fragment has come.
    end: Option<u32>,
    poisoned: bool,
}

impl Datagram {
    pub(super) fn new(id: DatagramId) -> Datagram {
        Datagram {
            id,
            deadline: Time::NEVER,
            key: None,
            held: Vec::new(),
            pieces: Vec::new(),
            covered: 0,
            end: None,
            poisoned: false,
        }
    }

    /// Makes this a datagram of which nothing has come.
    pub(super) fn restart(&mut self, id: DatagramId, deadline: Time) {
        self.id = id;
        self.deadline = deadline;
        self.poisoned = false;
        self.clear();
    }

    /// Makes every further fragment a hostile one.
    pub(super) fn poison(&mut self) {
        self.poisoned = true;
        self.clear();
    }

    fn clear(&mut self) {
        self.key = None;
        self.held.clear();
        self.pieces.clear();
        self.covered = 0;
        self.end = None;
    }

    /// How `fragment` fits with what has come; `key` as for `FragmentTracker::track`, `most` the
    /// number of pieces allowed.
    pub(super) fn fit(
        &self,
        fragment: &Fragment,
        key: Option<FlowKey>,
        most: usize,
    ) -> Result<Fit, Fault> {
        let start = u32::from(fragment.offset);
        let end = start + u32::from(fragment.len);
        if self.poisoned
            || end > longest(self.id.family())
            || !self.agrees_on_end(end, fragment.more)
        {
            return Err(Fault::Hostile);
        }
        if start == 0 && (key.is_none() || self.key.is_some_and(|known| Some(known) != key)) {
            return Err(Fault::Hostile);
        }
        let before = self.pieces.partition_point(|piece| piece.start < start);
        if self.pieces.get(before) == Some(&DatagramPiece { start, end }) {
            return Ok(Fit::Duplicate);
        }
        let overlaps_next = self.pieces.get(before).is_some_and(|next| next.start < end);
        let overlaps_last = before > 0 && self.pieces[before - 1].end > start;
        if overlaps_next || overlaps_last {
            return Err(Fault::Hostile);
        }
        if self.pieces.len() >= most {
            return Err(Fault::TooMany);
        }
        Ok(Fit::New(before))
    }

    /// Whether a fragment that ends at `end`, the last one or not, agrees with what is known of the
    /// datagram's end.
    fn agrees_on_end(&self, end: u32, more: bool) -> bool {
        match self.end {
            Some(known) if more => end < known,
            Some(known) => end == known,
            None if more => true,
            None => self.pieces.last().is_none_or(|last| last.end < end),
        }
    }

    /// Notes that `fragment` has come, which `fit` as said.
    pub(super) fn record(&mut self, fragment: &Fragment, fit: Fit) {
        let Fit::New(before) = fit else { return };
        let start = u32::from(fragment.offset);
        let end = start + u32::from(fragment.len);
        self.pieces.insert(before, DatagramPiece { start, end });
        self.covered += end - start;
        if !fragment.more {
            self.end = Some(end);
        }
    }

    /// Whether all parts have come: pieces do not overlap, so their sum decides.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.covered)
    }
}
