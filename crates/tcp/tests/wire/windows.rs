//! Watches the wire: no end sends beyond the window that it was told of.

use rheostat_tcp::{Segment, SequenceNumber};

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// The scale that its SYN offers.
    shift: Option<u8>,
    has_sent_syn: bool,
    /// The number after the last that it may send, as segments that have reached it say.
    edge: Option<SequenceNumber>,
}

/// What both ends have told each other.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    sides: [Side; 2],
}

impl Windows {
    /// A side sends a segment.
    ///
    /// # Panics
    /// When more than the byte of a probe lies beyond the window.
    pub(crate) fn on_sent(&mut self, from: usize, segment: &Segment<'_>) {
        let side = &mut self.sides[from];
        if segment.header.syn {
            side.shift = segment.header.options.window_scale;
            side.has_sent_syn = true;
        } else if let Some(edge) = side.edge
            && !segment.range().is_empty()
        {
            let end = segment.range().end;
            assert!(!end.is_after(edge + 1), "{end:?} lies beyond the window, {edge:?}");
        }
    }

    /// A segment has reached a side.
    pub(crate) fn on_delivered(&mut self, to: usize, segment: &Segment<'_>) {
        let Some(ack) = segment.header.ack else { return };
        let other = self.sides[1 - to];
        let is_scaled = !segment.header.syn && self.sides[to].shift.is_some();
        let shift = other.shift.filter(|_| is_scaled).unwrap_or(0);
        let told = ack + (u32::from(segment.header.window) << shift);
        let edge = &mut self.sides[to].edge;
        *edge = Some(edge.map_or(told, |edge| edge.max(told)));
    }
}
