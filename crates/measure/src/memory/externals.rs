//! What a chain makes of clients' endpoints, learned from the packets it sends: what the other end then
//! sends goes there. A chain that translates nothing teaches the endpoints as they are.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::{TAG, untagged};

/// Short connections that are distinguished: more than there are at a time.
const BRIEF: usize = 1 << 20;

/// Endpoints by flow, and of short connections by their number.
#[derive(Debug, Default)]
pub(super) struct Externals {
    flows: Vec<AtomicU64>,
    brief: Vec<AtomicU64>,
}

impl Externals {
    /// Room for `flows`; none if nothing is to be learned.
    pub(super) fn new(flows: u32, learns: bool) -> Externals {
        let room = |count: usize| (0..if learns { count } else { 0 }).map(|_| AtomicU64::new(0));
        Externals { flows: room(flows as usize).collect(), brief: room(BRIEF).collect() }
    }

    /// Whether there is anything to learn.
    #[inline]
    pub(super) fn learns(&self) -> bool {
        !self.brief.is_empty()
    }

    /// Learns from the first packet of a flow, as it leaves.
    pub(super) fn learn_flow(&self, frame: &[u8]) {
        if let (Some(place), Some(end)) = (self.flows.get(tag(frame) as usize), sender(frame)) {
            // Relaxed: written and read by the lane alone.
            place.store(end, Ordering::Relaxed);
        }
    }

    /// Learns from the first packet of a short connection.
    pub(super) fn learn_brief(&self, frame: &[u8]) {
        if let (Some(place), Some(end)) =
            (self.brief.get(tag(frame) as usize % BRIEF), sender(frame))
        {
            place.store(end, Ordering::Relaxed);
        }
    }

    /// The endpoint of flow `number`.
    pub(super) fn of_flow(&self, number: u32) -> Option<(Ipv4Addr, u16)> {
        self.flows.get(number as usize).map(|place| endpoint(place.load(Ordering::Relaxed)))
    }

    /// The endpoint of short connection `number`.
    pub(super) fn of_brief(&self, number: u64) -> Option<(Ipv4Addr, u16)> {
        let place = self.brief.get(number as usize % BRIEF)?;
        Some(endpoint(place.load(Ordering::Relaxed)))
    }
}

fn endpoint(packed: u64) -> (Ipv4Addr, u16) {
    (Ipv4Addr::from_bits((packed >> 16) as u32), packed as u16)
}

fn tag(frame: &[u8]) -> u32 {
    frame[TAG..TAG + 4].iter().fold(0, |tag, byte| tag << 8 | u32::from(*byte))
}

/// Source address and port of an IPv4 frame without options.
fn sender(frame: &[u8]) -> Option<u64> {
    let frame = untagged(frame);
    if frame[12..14] != [8, 0] {
        return None;
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    Some(number(&frame[26..30]) << 16 | number(&frame[34..36]))
}
