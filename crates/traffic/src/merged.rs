//! Several sources at once.

use std::mem;

use rheostat_io::{Arrival, Source};

/// The packets of several sources in the order of their arrival. Of packets that arrive at once, those of
/// an earlier source come first.
#[derive(Debug)]
pub struct Merged<S> {
    parts: Vec<MergedPart<S>>,
}

/// A source, and the packet it has next.
#[derive(Debug)]
struct MergedPart<S> {
    source: S,
    frame: Vec<u8>,
    next: Option<Arrival>,
}

impl<S: Source> Merged<S> {
    /// Merges `sources`. The first packet of each is drawn.
    pub fn new(sources: impl IntoIterator<Item = S>) -> Merged<S> {
        let part = |mut source: S| {
            let mut frame = Vec::new();
            let next = source.next(&mut frame);
            MergedPart { source, frame, next }
        };
        Merged { parts: sources.into_iter().map(part).collect() }
    }
}

impl<S: Source> Source for Merged<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        // A handful of parts: looking at each is faster than keeping them sorted.
        let waiting = self.parts.iter_mut().filter(|part| part.next.is_some());
        let part = waiting.min_by_key(|part| part.next.map(|arrival| arrival.time))?;
        let arrival = part.next;
        mem::swap(frame, &mut part.frame);
        part.next = part.source.next(&mut part.frame);
        arrival
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::Time;
    use rheostat_packet::LinkType;

    use super::*;

    /// Frames of one byte at these milliseconds.
    struct At(u8, Vec<u64>);

    impl Source for At {
        fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
            frame.clear();
            frame.push(self.0);
            let time =
                Time::from_millis(if self.1.is_empty() { return None } else { self.1.remove(0) });
            Some(Arrival { time, len: 1, wire_len: 1, link: LinkType::Raw })
        }
    }

    #[test]
    fn packets_come_in_the_order_of_their_times() {
        let mut merged = Merged::new([At(1, vec![1, 5, 5]), At(2, vec![0, 5, 9]), At(3, vec![])]);
        let mut frame = Vec::new();
        let mut seen = Vec::new();
        while let Some(arrival) = merged.next(&mut frame) {
            seen.push((arrival.time.as_nanos() / 1_000_000, frame[0]));
        }
        assert_eq!(seen, [(0, 2), (1, 1), (5, 1), (5, 1), (5, 2), (9, 2)]);
    }
}
