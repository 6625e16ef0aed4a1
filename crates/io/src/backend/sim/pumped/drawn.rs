//! Arrivals drawn before a run.

use std::sync::Arc;
use std::time::Duration;

use rheostat_packet::Mempool;

use super::chunk_list::Link;
use super::drawer::Drawer;
use crate::backend::sim::{Pacing, SimConfig};
use crate::{OpenError, Source};

/// Memory for arrivals, in bytes.
pub(super) const WINDOW: usize = 64 << 20;

/// Arrivals drawn at once between looks at the memory they take.
const BETWEEN: usize = 4_096;

/// What arrives at a simulated NIC, drawn before it is opened, so that drawing takes no time of the run. Any number of
/// NICs, one after the other or at once, see the same arrivals.
#[derive(Clone, Debug)]
pub struct DrawnArrivals {
    first: Arc<Link>,
    /// When the source has ended, in nanoseconds from its start.
    end: u64,
    /// Whether it would have gone on.
    is_cut: bool,
    count: u64,
}

impl DrawnArrivals {
    /// Memory that arrivals take at most, in bytes, for each device.
    pub const BYTES: usize = WINDOW;

    /// Draws what arrives within `length` of the start of `source`, for NICs of `config` and buffers as in `pool`.
    ///
    /// Takes about a microsecond for each packet, and 32 bytes and the headers of each; for payloads that are not
    /// [`rheostat_packet::build::Payload::Pattern`], these too.
    ///
    /// # Errors
    /// [`OpenError::Lossless`] where packets have no time, [`OpenError::Window`] when they take more than 64 MiB.
    pub fn draw(
        config: &SimConfig,
        source: Box<dyn Source>,
        pool: &Mempool,
        length: Duration,
    ) -> Result<DrawnArrivals, OpenError> {
        DrawnArrivals::draw_within(config, source, pool, (length, WINDOW))
    }

    /// The same in up to so many bytes of memory, for runs at rates of millions a second.
    ///
    /// # Errors
    /// As [`DrawnArrivals::draw`].
    pub fn draw_within(
        config: &SimConfig,
        source: Box<dyn Source>,
        pool: &Mempool,
        (length, memory): (Duration, usize),
    ) -> Result<DrawnArrivals, OpenError> {
        config.check()?;
        if config.pacing == Pacing::Lossless {
            return Err(OpenError::Lossless { device: config.name.clone() });
        }
        let mut drawer = Drawer::new(config, source, pool);
        let first = drawer.tail().clone();
        let end = length.as_nanos() as u64;
        while drawer.complete() < end {
            drawer.draw(end, BETWEEN);
            if drawer.held_bytes() > memory {
                let (device, drawn) =
                    (config.name.clone(), Duration::from_nanos(drawer.complete()));
                return Err(OpenError::Window { device, drawn, length, memory });
            }
        }
        let (count, is_cut) = (drawer.drawn(), !drawer.has_ended());
        let end = if is_cut { end } else { drawer.last_due() };
        drawer.end();
        Ok(DrawnArrivals { first, end, is_cut, count })
    }

    /// How many packets arrive.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn first(&self) -> &Arc<Link> {
        &self.first
    }

    /// When nothing arrives any more, in nanoseconds from the start of the source.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether more would have arrived then.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }
}
