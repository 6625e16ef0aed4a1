//! The segments of a session as lines to read, for sessions that went wrong.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use rheostat_base::Time;
use rheostat_tcp::{Segment, SequenceNumber};
use rheostat_traffic::wire::Passage;

/// Lines that are kept.
const LINES: usize = 60;

/// The last segments of a session: time, direction, numbers from the SYNs on, and what the link did. `A` is the client.
#[derive(Default)]
pub(crate) struct Transcript {
    lines: VecDeque<String>,
    /// The number of each end's SYN.
    first: [Option<SequenceNumber>; 2],
}

impl Transcript {
    pub(crate) fn on_sent(
        &mut self,
        from: usize,
        segment: &Segment<'_>,
        passage: Passage,
        now: Time,
    ) {
        if segment.header.syn {
            self.first[from] = Some(segment.header.seq);
        }
        let fate = match passage {
            Passage::Dropped => "queue full",
            Passage::Lost => "lost",
            Passage::Passes { is_corrupted: true, .. } => "corrupted",
            Passage::Passes { arrivals: [_, Some(_)], .. } => "twice",
            Passage::Passes { .. } => "",
        };
        self.push(["A >", "B >"][from], from, segment, fate, now);
    }

    pub(crate) fn on_delivered(&mut self, to: usize, segment: &Segment<'_>, now: Time) {
        self.push(["> A", "> B"][to], 1 - to, segment, "", now);
    }

    fn push(&mut self, way: &str, from: usize, segment: &Segment<'_>, fate: &str, now: Time) {
        let header = &segment.header;
        let number = |of: usize, n: SequenceNumber| n.since(self.first[of].unwrap_or_default());
        let mut line = format!("{:>12.6} {way} ", now.as_nanos() as f64 / 1e9);
        for (is_set, name) in
            [(header.syn, 'S'), (header.fin, 'F'), (header.rst, 'R'), (header.psh, 'P')]
        {
            line.push(if is_set { name } else { '.' });
        }
        let range = segment.range();
        let _ = write!(line, " {:>7}..{:<7}", number(from, range.start), number(from, range.end));
        if let Some(ack) = header.ack {
            let _ = write!(line, " ack {:<7}", number(1 - from, ack));
        }
        let _ = write!(line, " win {:<5}", header.window);
        for block in &header.options.sack {
            let _ = write!(
                line,
                " [{}..{}]",
                number(1 - from, block.start),
                number(1 - from, block.end)
            );
        }
        let _ = write!(line, " {fate}");
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{}", line.trim_end()))
    }
}
