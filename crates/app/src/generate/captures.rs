//! The captures that traffic is written to: one for all of it, or one for each side.

use std::path::PathBuf;

use rheostat_io::{CaptureWriter, Sink, WriteError, is_standard};
use rheostat_packet::mbuf::PoolError;
use rheostat_packet::{Headers, Mempool, MempoolConfig, PoolCache, tuple};
use rheostat_steer::PrefixList;
use rheostat_traffic::Arrival;

/// Buffers of a size at which the longest record of a capture (256 KiB) has fewer segments than a packet may
/// have, and more of them than it needs.
const POOL: MempoolConfig = MempoolConfig { buffers: 64, data_room: 8_192, headroom: 0 };
/// Addresses that count as inside: private and link-local ones (RFC 1918, RFC 3927, RFC 4193, RFC 4291).
const INSIDE: [&str; 6] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"];

/// Open captures. Every frame goes to one of them, or to none if there are none.
pub(super) struct Captures {
    pool: PoolCache,
    writers: Vec<(CaptureWriter, Box<dyn Sink>)>,
    inside: PrefixList,
}

/// Why captures cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl Captures {
    /// Makes these files: none, one for every frame, or one for frames from inside and one for all others.
    pub(super) fn create(files: &[PathBuf]) -> Result<Captures, CaptureError> {
        let create = |file: &PathBuf| {
            let writer = match is_standard(file) {
                true => CaptureWriter::standard_output(),
                false => CaptureWriter::create(file),
            }?;
            let sink = writer.sink();
            Ok::<_, WriteError>((writer, sink))
        };
        let writers = files.iter().map(create).collect::<Result<_, _>>()?;
        let inside = INSIDE.iter().filter_map(|prefix| prefix.parse().ok()).collect();
        Ok(Captures { pool: PoolCache::new(Mempool::new(&POOL)?), writers, inside })
    }

    /// Writes a frame to the capture of its side.
    pub(super) fn write(&mut self, frame: &[u8], arrival: &Arrival) {
        let number = usize::from(self.writers.len() > 1 && !self.is_from_inside(frame, arrival));
        let Some((_, sink)) = self.writers.get_mut(number) else { return };
        let mut packet = self.pool.alloc_from(frame).expect("the longest record fits the pool");
        packet.set_timestamp(arrival.time);
        packet.set_wire_len(arrival.wire_len);
        packet.set_link(arrival.link);
        sink.take(std::slice::from_ref(&packet));
        self.pool.free(packet);
    }

    /// Whether there are captures and none of them can be written any more.
    pub(super) fn have_failed(&self) -> bool {
        let mut writers = self.writers.iter().peekable();
        writers.peek().is_some() && writers.all(|(writer, _)| writer.failure().is_some())
    }

    /// Completes all files, and returns the first error.
    pub(super) fn close(self) -> Result<(), WriteError> {
        let closed: Vec<_> = self.writers.iter().map(|(writer, _)| writer.close()).collect();
        closed.into_iter().try_for_each(|closed| closed.map(drop))
    }

    /// Whether the sender has an address of the networks inside. What is not IP has none.
    fn is_from_inside(&self, frame: &[u8], arrival: &Arrival) -> bool {
        let headers = Headers::parse_bytes(frame, arrival.wire_len as usize, arrival.link);
        let ends = headers.ok().and_then(|headers| tuple::addresses(frame, &headers));
        ends.is_some_and(|ends| self.inside.contains(ends.first()))
    }
}
