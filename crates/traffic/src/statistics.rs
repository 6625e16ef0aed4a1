//! What traffic is like: sizes of flows and packets, how long flows last and how many there are at once, how
//! bursty packets come, protocols.

mod burstiness;
mod distribution;
mod flows;
mod protocols;
mod sizes;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::{Headers, LinkType, Tuple};

pub use burstiness::Burstiness;
pub use distribution::{Curve, Quantiles};
pub use flows::TopShares;
pub use sizes::Histogram;
pub use summary::{Series, Summary};
pub use timeline::OverTime;

use crate::stamps::Stamps;
use burstiness::Windows;
use flows::FlowStatistics;
use protocols::Protocols;
use sizes::Sizes;
use timeline::Timeline;

/// Counts over a stream of frames. Stamps that go back count as the same moment as the one before.
#[derive(Debug)]
pub struct Statistics {
    clock: Stamps,
    last: Time,
    sizes: Sizes,
    protocols: Protocols,
    flows: FlowStatistics,
    timeline: Timeline,
    windows: Windows,
}

impl Default for Statistics {
    /// Gaps of more than an hour count as an hour.
    fn default() -> Statistics {
        Statistics::with_longest_gap(Duration::from_secs(3_600))
    }
}

impl Statistics {
    /// Statistics in which longer gaps between packets count as this long.
    pub fn with_longest_gap(longest_gap: Duration) -> Statistics {
        Statistics {
            clock: Stamps::new(longest_gap),
            last: Time::ZERO,
            sizes: Sizes::default(),
            protocols: Protocols::default(),
            flows: FlowStatistics::default(),
            timeline: Timeline::default(),
            windows: Windows::default(),
        }
    }

    /// Counts a frame of which `frame` was captured.
    pub fn count(&mut self, time: Time, frame: &[u8], wire_len: u32, link: LinkType) {
        let now = self.clock.read(time);
        self.last = now;
        self.sizes.count(wire_len);
        self.timeline.count(now);
        self.windows.count(now);
        let Ok(headers) = Headers::parse_bytes(frame, wire_len as usize, link) else {
            self.protocols.count_unparsed();
            return;
        };
        self.protocols.count(&headers);
        if let Tuple::Flow(key) = Tuple::of_bytes(frame, &headers) {
            self.flows.count(key, now, wire_len);
        }
    }
}
