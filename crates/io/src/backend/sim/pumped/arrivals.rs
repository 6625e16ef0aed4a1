//! Arrivals drawn ahead, in compact form: a record of 16 bytes that placing reads, and apart from it what the
//! buffer is written from once a lane receives the packet.

use rheostat_base::{DeviceId, Time};
use rheostat_packet::build::Payload;
use rheostat_packet::{AllocError, HashKind, Headers, LinkType, Mbuf, PoolCache};

/// An arrival as placing sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Nanoseconds from the start of the source; never less than in the record before.
    pub(super) due: u64,
    /// Where the head of the frame starts among those of the chunk.
    head: u32,
    /// Bytes on the wire; [`WIDE`] if there are more than fit.
    wire_len: u16,
    /// The entry of the indirection table.
    pub(super) bucket: u16,
}

const _: () = assert!(size_of::<Record>() == 16);

/// In [`Record::wire_len`]: see [`Wide`].
const WIDE: u16 = u16::MAX;

/// What a frame has beside its bytes, and how many of these are kept.
#[derive(Clone, Copy, Debug)]
struct Frame {
    hash: u32,
    stamp: u32,
    /// Bytes kept.
    head: u16,
    /// Bytes of [`Payload::Pattern`] behind them.
    payload: u16,
    kind: HashKind,
    link: LinkType,
    /// Whether some of this does not fit, or is not as usual: see [`Wide`].
    is_wide: bool,
}

const _: () = assert!(size_of::<Frame>() == 16);

/// The rare remainder of a record: a frame that was cut short or is very long, or one that keeps the stamp of a
/// capture.
#[derive(Clone, Copy, Debug)]
struct Wide {
    record: u32,
    wire_len: u32,
    head: u32,
    /// The stamp, where it is not when the frame is due.
    timestamp: Option<Time>,
    /// Whether no chain of buffers is long enough.
    is_oversize: bool,
}

/// An arrival as its source gives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulled<'a> {
    pub(super) due: u64,
    pub(super) timestamp: Option<Time>,
    pub(super) stamp: u32,
    pub(super) bytes: &'a [u8],
    pub(super) wire_len: u32,
    pub(super) link: LinkType,
    pub(super) hash: (u32, HashKind),
    pub(super) bucket: u16,
    pub(super) is_oversize: bool,
}

/// Consecutive arrivals.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    records: Vec<Record>,
    frames: Vec<Frame>,
    heads: Vec<u8>,
    wide: Vec<Wide>,
}

impl Record {
    /// Whether something of it does not fit.
    #[inline]
    pub(super) fn is_wide(&self) -> bool {
        self.wire_len == WIDE
    }
}

impl Chunk {
    /// Room for `records` arrivals.
    pub(super) fn with_capacity(records: usize) -> Chunk {
        Chunk {
            records: Vec::with_capacity(records),
            frames: Vec::with_capacity(records),
            ..Chunk::default()
        }
    }

    #[inline]
    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Bytes of memory taken.
    pub(super) fn bytes(&self) -> usize {
        self.records.capacity() * (size_of::<Record>() + size_of::<Frame>())
            + self.heads.capacity()
            + self.wide.capacity() * size_of::<Wide>()
    }

    /// Adds an arrival. Of an oversize frame, no bytes are kept.
    pub(super) fn push(&mut self, arrival: Pulled<'_>) {
        let Pulled { due, timestamp, stamp, bytes, wire_len, link, hash, bucket, is_oversize } =
            arrival;
        let payload = if is_oversize { bytes.len() } else { pattern_at_end(bytes, link) };
        let payload = payload.min(u16::MAX.into());
        let kept = if is_oversize { &[] } else { &bytes[..bytes.len() - payload] };
        let is_wide = timestamp.is_some()
            || is_oversize
            || wire_len >= WIDE.into()
            || kept.len() > u16::MAX.into()
            || wire_len as usize != bytes.len();
        let record = self.records.len() as u32;
        if is_wide {
            let head = kept.len() as u32;
            self.wide.push(Wide { record, wire_len, head, timestamp, is_oversize });
        }
        let narrow = if is_wide { WIDE } else { wire_len as u16 };
        let head = self.heads.len() as u32;
        self.records.push(Record { due, head, wire_len: narrow, bucket });
        self.frames.push(Frame {
            hash: hash.0,
            stamp,
            head: kept.len() as u16,
            payload: if is_oversize { 0 } else { payload as u16 },
            kind: hash.1,
            link,
            is_wide,
        });
        self.heads.extend_from_slice(kept);
    }

    /// Adds an arrival of another chunk.
    pub(super) fn push_copy(&mut self, other: &Chunk, index: u32) {
        let (old, frame) = (other.records[index as usize], other.frames[index as usize]);
        let (record, head) = (self.records.len() as u32, self.heads.len() as u32);
        let kept = other.head(index);
        self.wide.extend(other.wide(index).map(|wide| Wide { record, ..*wide }));
        self.records.push(Record { head, ..old });
        self.frames.push(frame);
        self.heads.extend_from_slice(kept);
    }

    /// Bytes of an arrival on the wire; `record` is the one at `index`.
    #[inline]
    pub(super) fn wire_len_of(&self, record: &Record, index: usize) -> u32 {
        match record.wire_len {
            WIDE => self.wide(index as u32).map_or(WIDE.into(), |wide| wide.wire_len),
            len => len.into(),
        }
    }

    /// Whether a frame fits into no chain of buffers.
    pub(super) fn is_oversize(&self, index: usize) -> bool {
        self.wide(index as u32).is_some_and(|wide| wide.is_oversize)
    }

    /// Writes an arrival into a buffer, as the DMA of a NIC does. `origin` is the start of the source.
    ///
    /// # Errors
    /// [`AllocError::Empty`] without buffers.
    pub(super) fn packet(
        &self,
        index: u32,
        origin: u64,
        device: DeviceId,
        pool: &mut PoolCache,
    ) -> Result<Mbuf, AllocError> {
        let (record, frame) = (self.records[index as usize], self.frames[index as usize]);
        let (head, payload) = (self.head(index), usize::from(frame.payload));
        let mut packet = match pool.alloc(head.len() + payload) {
            Ok(mut packet) => {
                write(head, packet.data_mut());
                packet
            }
            Err(AllocError::Oversize) => {
                let mut bytes = vec![0; head.len() + payload];
                write(head, &mut bytes);
                pool.alloc_from(&bytes)?
            }
            Err(error) => return Err(error),
        };
        let stamped = frame.is_wide.then(|| self.wide(index)?.timestamp).flatten();
        let due = Time::from_nanos(origin.saturating_add(record.due));
        packet.set_timestamp(stamped.unwrap_or(due));
        packet.set_wire_len(self.wire_len_of(&record, index as usize));
        packet.set_stamp(frame.stamp);
        packet.set_device(device);
        packet.set_link(frame.link);
        packet.set_hash(frame.hash, frame.kind);
        Ok(packet)
    }

    fn head(&self, index: u32) -> &[u8] {
        let (record, frame) = (&self.records[index as usize], &self.frames[index as usize]);
        let wide = frame.is_wide.then(|| self.wide(index)).flatten();
        let len = wide.map_or(frame.head.into(), |wide| wide.head as usize);
        &self.heads[record.head as usize..][..len]
    }

    fn wide(&self, index: u32) -> Option<&Wide> {
        let place = self.wide.binary_search_by_key(&index, |wide| wide.record).ok()?;
        self.wide.get(place)
    }
}

/// Writes what was kept, and the pattern behind it.
#[inline]
fn write(head: &[u8], out: &mut [u8]) {
    let (front, rest) = out.split_at_mut(head.len());
    front.copy_from_slice(head);
    Payload::Pattern(rest.len()).write(rest);
}

/// How many bytes at the end of a frame are a payload that states nothing: those of generated traffic are.
fn pattern_at_end(bytes: &[u8], link: LinkType) -> usize {
    let Ok(headers) = Headers::parse_bytes(bytes, bytes.len(), link) else { return 0 };
    let l4 = usize::from(headers.l4);
    let header = match headers.protocol {
        6 => bytes.get(l4 + 12).map_or(0, |offset| usize::from(offset >> 4) * 4),
        1 | 17 | 58 => 8,
        _ => return 0,
    };
    let payload = bytes.get(l4 + header..).unwrap_or_default();
    if Payload::is_pattern(payload) { payload.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rheostat_packet::build::{Ethernet, FrameBuilder, TcpHeader, Transport};
    use rheostat_packet::{Mempool, MempoolConfig};

    use super::*;

    const ETHERNET: Ethernet =
        Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan: None };

    fn pulled(bytes: &[u8], wire_len: u32, timestamp: Option<Time>) -> Pulled<'_> {
        let hash = (7, HashKind::Ports);
        let link = LinkType::Ethernet;
        let is_oversize = bytes.len() > 512 * 40;
        Pulled { due: 5, timestamp, stamp: 9, bytes, wire_len, link, hash, bucket: 3, is_oversize }
    }

    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let generated =
            (0_usize..2_000, any::<bool>(), any::<u32>()).prop_map(|(len, tcp, seq)| {
                let ports = (1_024, 443);
                let tcp_header =
                    TcpHeader { ports, seq, ack: 1, flags: 16, window: 9, urgent: 0, options: &[] };
                let transport =
                    if tcp { Transport::Tcp(tcp_header) } else { Transport::Udp { ports } };
                let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
                let payload = Payload::Pattern(len);
                FrameBuilder::new(from, to, transport, payload).with_ethernet(ETHERNET).to_vec()
            });
        prop_oneof![generated, proptest::collection::vec(any::<u8>(), 0..3_000)]
    }

    proptest! {
        /// Whatever a source gives comes out of the buffers as it went in, from a copy as well.
        #[test]
        fn a_frame_is_written_as_it_was_drawn(
            frames in proptest::collection::vec((frames(), 0_u32..3, any::<Option<u64>>()), 1..20),
        ) {
            let config = MempoolConfig { buffers: 256, data_room: 512, headroom: 0 };
            let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
            let mut chunk = Chunk::default();
            for (bytes, cut, stamp) in &frames {
                let stamp = stamp.map(Time::from_nanos);
                chunk.push(pulled(bytes, bytes.len() as u32 + 70_000 * cut, stamp));
            }
            let mut copy = Chunk::default();
            for index in 0..frames.len() as u32 {
                copy.push_copy(&chunk, index);
            }
            for chunk in [&chunk, &copy] {
                for (index, (bytes, cut, stamp)) in frames.iter().enumerate() {
                    let packet = chunk.packet(index as u32, 100, DeviceId(4), &mut pool).unwrap();
                    prop_assert_eq!(&packet.to_vec(), bytes);
                    let wire_len = bytes.len() as u32 + 70_000 * cut;
                    prop_assert_eq!(packet.wire_len(), wire_len);
                    prop_assert_eq!(chunk.wire_len_of(&chunk.records[index], index), wire_len);
                    prop_assert_eq!(packet.timestamp().as_nanos(), stamp.unwrap_or(105));
                    let described =
                        (packet.stamp(), packet.device(), packet.hash(), packet.hash_kind());
                    prop_assert_eq!(described, (9, DeviceId(4), 7, HashKind::Ports));
                    pool.free(packet);
                }
            }
        }
    }

    #[test]
    fn generated_payloads_take_no_memory_and_oversize_frames_neither() {
        let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let udp = Transport::Udp { ports: (1, 2) };
        let frame = FrameBuilder::new(from, to, udp, Payload::Pattern(1_400));
        let frame = frame.with_ethernet(ETHERNET).to_vec();
        let mut chunk = Chunk::default();
        chunk.push(pulled(&frame, frame.len() as u32, None));
        assert_eq!(chunk.heads.len(), 14 + 20 + 8);
        let long = vec![0; 512 * 41];
        chunk.push(pulled(&long, long.len() as u32, None));
        assert_eq!(chunk.heads.len(), 14 + 20 + 8);
        assert!(!chunk.is_oversize(0) && chunk.is_oversize(1));
        assert_eq!(chunk.wire_len_of(&chunk.records[1], 1), 512 * 41);
    }
}
