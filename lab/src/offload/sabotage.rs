//! What may go wrong between lanes, done on purpose where packets leave, to see that it is noticed.

use std::num::NonZeroU32;

use rheostat_io::Sink;
use rheostat_packet::Mbuf;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Every so many packets, one is taken away.
    Lose(NonZeroU32),
    /// Every so many packets, one leaves twice.
    Double(NonZeroU32),
    /// Every so many bursts, one leaves in reverse.
    Reverse(NonZeroU32),
}

/// A sink that packets come to as they would from lanes that do so.
pub(super) struct Sabotaged {
    sink: Box<dyn Sink>,
    sabotage: Sabotage,
    /// Packets, or bursts, so far.
    count: u32,
}

impl Sabotaged {
    pub(super) fn new(sink: Box<dyn Sink>, sabotage: Sabotage) -> Sabotaged {
        Sabotaged { sink, sabotage, count: 0 }
    }

    /// Whether it is the turn of the next one.
    fn is_due(&mut self, every: NonZeroU32) -> bool {
        self.count = self.count.wrapping_add(1);
        self.count.is_multiple_of(every.get())
    }
}

impl Sink for Sabotaged {
    fn take(&mut self, packets: &[Mbuf]) {
        let one_by_one = packets.chunks(1);
        match self.sabotage {
            Sabotage::Reverse(every) => match self.is_due(every) {
                true => one_by_one.rev().for_each(|packet| self.sink.take(packet)),
                false => self.sink.take(packets),
            },
            Sabotage::Lose(every) => {
                for packet in one_by_one {
                    if !self.is_due(every) {
                        self.sink.take(packet);
                    }
                }
            }
            Sabotage::Double(every) => {
                for packet in one_by_one {
                    self.sink.take(packet);
                    if self.is_due(every) {
                        self.sink.take(packet);
                    }
                }
            }
        }
    }
}
