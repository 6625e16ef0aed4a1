//! What the monitor remembers of a flow.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::FlowKey;
use rheostat_packet::wire::tcp::TcpFlags;

use super::record::{EndReason, FlowRecord, WayCounts};
use super::talkers::Volume;
use rheostat_nf::Packet;

/// Packets after which a flow that goes on is added to the rankings.
const TOLD_EVERY: u8 = 64;

/// Packets of a record at most, so that the count cannot overflow.
const MOST_PACKETS: u32 = u32::MAX - 1;

/// Bits of [`FlowState::ends`]: which packets have ended the connection, by direction.
const FIN: [u8; 2] = [1, 2];
const RESET: u8 = 4;

/// A flow since its last record. What every packet writes fills the line that the table's own fields
/// begin; the rest is read with it and rarely written.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FlowState {
    /// From the key's first endpoint to its second, and back.
    ways: [WayCounts; 2],
    last: Time,
    /// When the record begins, and when the flow began.
    since: Time,
    began: Time,
    /// Of the record's packets and bytes, those the rankings know.
    told: Volume,
    errors: u32,
    /// Which record of the flow this will be, from 0.
    part: u32,
    /// Packets since the rankings were told.
    untold: u8,
    ends: u8,
    initiated_forward: bool,
}

const _: () = assert!(size_of::<FlowState>() <= 88);

impl FlowState {
    /// A flow without packets, the first of which comes `now`; `forward` if it travels from the key's
    /// first endpoint.
    pub(super) fn new(now: Time, forward: bool) -> FlowState {
        FlowState {
            ways: [WayCounts::default(); 2],
            last: now,
            since: now,
            began: now,
            told: Volume::default(),
            errors: 0,
            part: 0,
            untold: 0,
            ends: 0,
            initiated_forward: forward,
        }
    }

    /// Counts a packet.
    #[inline]
    pub(super) fn count(&mut self, packet: &Packet<'_>, flags: u8, now: Time) {
        let forward = packet.is_forward();
        let way = &mut self.ways[usize::from(!forward)];
        way.count(packet.network_len(), flags, packet.hop_limit());
        self.last = self.last.max(now);
        self.untold += 1;
        if flags & (TcpFlags::FIN | TcpFlags::RST) != 0 {
            let fin = if flags & TcpFlags::FIN != 0 { FIN[usize::from(!forward)] } else { 0 };
            let reset = if flags & TcpFlags::RST != 0 { RESET } else { 0 };
            self.ends |= fin | reset;
        }
        if now < self.since {
            // A capture went back in time.
            self.since = now;
            self.began = self.began.min(now);
        }
    }

    /// Counts an ICMP error about the flow.
    pub(super) fn count_error(&mut self) {
        self.errors = self.errors.saturating_add(1);
    }

    /// Whether a connection has ended: closed from both ends, or reset.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.ends & RESET != 0 || self.ends & (FIN[0] | FIN[1]) == FIN[0] | FIN[1]
    }

    /// How a connection that is over has ended.
    pub(super) fn end_reason(&self) -> EndReason {
        if self.ends & RESET != 0 { EndReason::Reset } else { EndReason::Closed }
    }

    /// Whether a flow that goes on is to be reported.
    #[inline]
    pub(super) fn is_due(&self, now: Time, active: Duration) -> bool {
        now.since(self.since) >= active
            || self.ways[0].packets >= MOST_PACKETS
            || self.ways[1].packets >= MOST_PACKETS
    }

    /// Begins the flow's next record at `now`.
    pub(super) fn go_on(&mut self, now: Time) {
        *self = FlowState {
            began: self.began,
            part: self.part.saturating_add(1),
            ends: self.ends,
            ..FlowState::new(now, self.initiated_forward)
        };
    }

    /// Whether the rankings should be told.
    #[inline]
    pub(super) fn has_much_to_tell(&self) -> bool {
        self.untold >= TOLD_EVERY
    }

    /// Whether the rankings should be told once another packet has come.
    #[inline]
    pub(super) fn is_about_to_tell(&self) -> bool {
        self.untold + 1 >= TOLD_EVERY
    }

    /// What the rankings have not been told, and no longer.
    pub(super) fn take_untold(&mut self) -> Volume {
        let [there, back] = &self.ways;
        let now = Volume {
            packets: u64::from(there.packets) + u64::from(back.packets),
            bytes: there.bytes + back.bytes,
        };
        let untold =
            Volume { packets: now.packets - self.told.packets, bytes: now.bytes - self.told.bytes };
        self.told = now;
        self.untold = 0;
        untold
    }

    /// The record of the flow since the last one.
    pub(super) fn record(&self, key: FlowKey, reason: EndReason) -> FlowRecord {
        FlowRecord {
            key,
            began: self.began,
            start: self.since,
            end: self.last,
            part: self.part,
            reason,
            initiated_forward: self.initiated_forward,
            ways: self.ways,
            errors: self.errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_goes_on_where_the_last_one_ended() {
        let at = Time::from_secs;
        let mut flow = FlowState::new(at(10), false);
        flow.ways[1].count(60, TcpFlags::SYN, Some(64));
        flow.last = at(12);
        assert!(!flow.is_due(at(19), Duration::from_secs(10)));
        assert!(flow.is_due(at(20), Duration::from_secs(10)));
        assert_eq!(flow.take_untold(), Volume { packets: 1, bytes: 60 });
        flow.ends |= FIN[1];
        flow.go_on(at(20));
        flow.ways[0].count(40, 0, None);
        assert_eq!(flow.take_untold(), Volume { packets: 1, bytes: 40 });
        let key = FlowKey::NONE;
        let record = flow.record(key, EndReason::Idle);
        assert_eq!((record.part, record.began, record.start), (1, at(10), at(20)));
        assert_eq!((record.ways[0].bytes, record.ways[1].packets), (40, 0));
        assert!(!record.initiated_forward);
        flow.ends |= FIN[0];
        assert!(flow.is_over(), "a direction that was closed before the last record is closed");
    }

    #[test]
    fn a_record_is_made_before_a_count_overflows() {
        let mut flow = FlowState::new(Time::ZERO, true);
        flow.ways[1].packets = MOST_PACKETS;
        assert!(flow.is_due(Time::ZERO, Duration::from_secs(10)));
    }

    #[test]
    fn a_connection_is_over_when_both_have_closed_or_one_has_reset() {
        let mut flow = FlowState::new(Time::ZERO, true);
        flow.ends |= FIN[0];
        assert!(!flow.is_over());
        flow.ends |= FIN[1];
        assert!(flow.is_over());
        assert_eq!(flow.end_reason(), EndReason::Closed);
        flow.ends = RESET;
        assert!(flow.is_over());
        assert_eq!(flow.end_reason(), EndReason::Reset);
    }
}
