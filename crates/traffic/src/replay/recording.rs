//! Packets held in memory.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::LinkType;

use super::Reel;
use rheostat_io::{Arrival, Source};

/// The packets of a source, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    held: Arc<RecordedBytes>,
}

#[derive(Debug, Default)]
struct RecordedBytes {
    bytes: Vec<u8>,
    packets: Vec<RecordedPacket>,
}

#[derive(Clone, Copy, Debug)]
struct RecordedPacket {
    time: Time,
    /// Where its bytes end; they start where those before it end.
    end: usize,
    wire_len: u32,
    link: LinkType,
}

impl Recording {
    /// Takes all packets of `source`, which must end.
    pub fn of(source: &mut dyn Source) -> Recording {
        let mut held = RecordedBytes::default();
        let mut frame = Vec::new();
        while let Some(Arrival { time, wire_len, link, .. }) = source.next(&mut frame) {
            held.bytes.extend_from_slice(&frame);
            held.packets.push(RecordedPacket { time, end: held.bytes.len(), wire_len, link });
        }
        Recording { held: Arc::new(held) }
    }

    /// How many packets there are.
    pub fn packets(&self) -> usize {
        self.held.packets.len()
    }
}

impl Reel for Recording {
    fn play(&self) -> Box<dyn Source> {
        Box::new(Player { held: self.held.clone(), at: 0, start: 0 })
    }
}

/// A position in a recording.
struct Player {
    held: Arc<RecordedBytes>,
    at: usize,
    start: usize,
}

impl Source for Player {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let RecordedPacket { time, end, wire_len, link } = *self.held.packets.get(self.at)?;
        let bytes = &self.held.bytes[self.start..end];
        frame.clear();
        frame.extend_from_slice(bytes);
        self.at += 1;
        self.start = end;
        Some(Arrival { time, len: bytes.len(), wire_len, link })
    }

    fn progress(&self) -> Option<f64> {
        Some(self.at as f64 / self.held.packets.len().max(1) as f64)
    }
}
