//! From frames as the kernel hands them over to packets in buffers: tags put back, checksums completed,
//! offloaded frames cut. Shared by devices that copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rheostat_base::{Counter, DeviceId, Time};
use rheostat_packet::wire::vlan;
use rheostat_packet::{AllocError, Burst, PoolCache};

use crate::segmentation::{Offload, OffloadError, Segmentation};

/// Bytes in front of the ethertype.
const ADDRESSES: usize = 12;

/// What a receive queue counts. Written by the lane that holds the queue.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Arrivals {
    /// Packets, those dropped below included.
    pub(super) packets: Counter,
    pub(super) bytes: Counter,
    pub(super) no_buffer: Counter,
    pub(super) oversize: Counter,
    /// Frames for whose ends there was no room.
    pub(super) no_room: Counter,
    pub(super) malformed: Counter,
}

/// A frame of the kernel's, in its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// From the Ethernet header on.
    pub(super) bytes: &'a [u8],
    /// Why its end is missing, if it is.
    pub(super) lost: Option<FrameLoss>,
    /// What is left to do with it.
    pub(super) offload: Result<Offload, OffloadError>,
    /// The VLAN tag that was taken out, as it stood there.
    pub(super) tag: Option<[u8; vlan::TAG]>,
}

/// Why the end of a frame is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameLoss {
    /// It is longer than any that can be received.
    TooLong,
    /// There was no room for all of it.
    NoRoom,
}

/// Whether a frame is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is.
    Whole,
    /// The burst is full before its last packet: offer the same frame again.
    Part,
}

/// Makes packets of the frames of one queue.
pub(super) struct Intake {
    device: DeviceId,
    /// Arrivals at the device so far.
    stamps: Arc<AtomicU32>,
    arrivals: Arc<Arrivals>,
    /// Segments of the frame at hand that are done.
    done: usize,
    /// The frame with its tag.
    tagged: Vec<u8>,
    /// The packet under construction.
    packet: Vec<u8>,
}

impl Intake {
    pub(super) fn new(device: DeviceId, stamps: Arc<AtomicU32>, arrivals: Arc<Arrivals>) -> Intake {
        // Room for the longest frame, so that nothing is allocated later.
        let room = || Vec::with_capacity(65_536 + 64);
        Intake { device, stamps, arrivals, done: 0, tagged: room(), packet: room() }
    }

    /// The counter of which packets get their stamps.
    pub(super) fn stamps(&self) -> &AtomicU32 {
        &self.stamps
    }

    /// Appends the packets that `frame` consists of to `burst`, which is not full.
    pub(super) fn take(
        &mut self,
        frame: &Frame<'_>,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: Time,
    ) -> Taken {
        let Frame { bytes, lost, offload, tag } = *frame;
        if let Some(loss) = lost {
            let counter: fn(&Arrivals) -> &Counter = match loss {
                FrameLoss::TooLong => |arrivals| &arrivals.oversize,
                FrameLoss::NoRoom => |arrivals| &arrivals.no_room,
            };
            self.count(bytes.len(), Some(counter));
            return Taken::Whole;
        }
        let mut tagged = std::mem::take(&mut self.tagged);
        let (bytes, offload) = match tag.filter(|_| bytes.len() >= ADDRESSES) {
            None => (bytes, offload),
            Some(tag) => {
                tagged.clear();
                tagged.extend_from_slice(&bytes[..ADDRESSES]);
                tagged.extend_from_slice(&tag);
                tagged.extend_from_slice(&bytes[ADDRESSES..]);
                (&tagged[..], offload.map(|offload| offload.shifted(vlan::TAG as u16)))
            }
        };
        let planned = offload
            .and_then(|offload| Segmentation::plan(bytes, &offload).map(|plan| (offload, plan)));
        let taken = match planned {
            Err(_) => {
                self.count(bytes.len(), Some(|arrivals| &arrivals.malformed));
                Taken::Whole
            }
            Ok((offload, None)) => self.take_whole(bytes, &offload, burst, pool, now),
            Ok((_, Some(plan))) => self.take_segments(bytes, &plan, burst, pool, now),
        };
        self.tagged = tagged;
        taken
    }

    fn take_whole(
        &mut self,
        bytes: &[u8],
        offload: &Offload,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: Time,
    ) -> Taken {
        if offload.checksum.is_none() {
            self.deliver(bytes, burst, pool, now);
            return Taken::Whole;
        }
        let mut packet = std::mem::take(&mut self.packet);
        packet.clear();
        packet.extend_from_slice(bytes);
        match offload.complete(&mut packet) {
            Ok(()) => self.deliver(&packet, burst, pool, now),
            Err(_) => self.count(bytes.len(), Some(|arrivals| &arrivals.malformed)),
        }
        self.packet = packet;
        Taken::Whole
    }

    fn take_segments(
        &mut self,
        bytes: &[u8],
        plan: &Segmentation,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: Time,
    ) -> Taken {
        let mut packet = std::mem::take(&mut self.packet);
        while self.done < plan.count() && !burst.is_full() {
            plan.write(bytes, self.done, &mut packet);
            self.deliver(&packet, burst, pool, now);
            self.done += 1;
        }
        self.packet = packet;
        if self.done < plan.count() {
            return Taken::Part;
        }
        self.done = 0;
        Taken::Whole
    }

    /// Copies a finished packet into buffers.
    fn deliver(&mut self, bytes: &[u8], burst: &mut Burst, pool: &mut PoolCache, now: Time) {
        let mut packet = match pool.alloc_from(bytes) {
            Ok(packet) => packet,
            Err(AllocError::Empty) => {
                return self.count(bytes.len(), Some(|arrivals| &arrivals.no_buffer));
            }
            Err(AllocError::Oversize) => {
                return self.count(bytes.len(), Some(|arrivals| &arrivals.oversize));
            }
        };
        packet.set_timestamp(now);
        // Relaxed: the order of what one queue receives is all there is to it.
        packet.set_stamp(self.stamps.fetch_add(1, Ordering::Relaxed));
        packet.set_device(self.device);
        self.count(bytes.len(), None);
        burst.push(packet);
    }

    fn count(&self, bytes: usize, dropped: Option<fn(&Arrivals) -> &Counter>) {
        self.arrivals.packets.increment();
        self.arrivals.bytes.add(bytes as u64);
        if let Some(dropped) = dropped {
            dropped(&self.arrivals).increment();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::segmentation::Transport;
    use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport as Built};
    use rheostat_packet::{BURST, Headers, Mempool, MempoolConfig};

    fn segment(payload: usize) -> Vec<u8> {
        let (from, to) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let tcp = Built::Tcp(TcpHeader { ports: (5, 6), ..TcpHeader::default() });
        FrameBuilder::new(from, to, tcp, Payload::Bytes(&vec![7; payload]))
            .with_ethernet(rheostat_packet::build::Ethernet {
                source: [2; 6],
                destination: [4; 6],
                vlan: None,
            })
            .to_vec()
    }

    fn intake(buffers: u32) -> (Intake, Arc<Arrivals>, PoolCache) {
        let arrivals = Arc::new(Arrivals::default());
        let pool = MempoolConfig { buffers, ..MempoolConfig::default() };
        let pool = PoolCache::new(Mempool::new(&pool).unwrap());
        (Intake::new(DeviceId(3), Arc::default(), arrivals.clone()), arrivals, pool)
    }

    #[test]
    fn a_long_frame_fills_several_bursts_and_keeps_its_tag() {
        let (mut intake, arrivals, mut pool) = intake(256);
        let bytes = segment(40_000);
        let offload = Offload { checksum: Some((34, 16)), segments: Some((Transport::Tcp, 1_000)) };
        let tag = Some([0x81, 0, 0x20, 0x05]);
        let frame = Frame { bytes: &bytes, lost: None, offload: Ok(offload), tag };
        let mut lens = Vec::new();
        for expected in [Taken::Part, Taken::Whole] {
            let mut burst = Burst::new();
            assert_eq!(intake.take(&frame, &mut burst, &mut pool, Time::ZERO), expected);
            for packet in burst.drain(..) {
                let headers = Headers::parse(&packet).unwrap();
                assert_eq!((headers.zone, packet.device()), (5, DeviceId(3)));
                assert_eq!(packet.stamp(), lens.len() as u32);
                lens.push(packet.len());
                pool.free(packet);
            }
        }
        assert_eq!(lens, [1_000 + 58; 40]);
        assert!(lens.len() > BURST);
        assert_eq!(arrivals.packets.get(), 40);
    }

    #[test]
    fn whatever_is_not_delivered_is_counted_once() {
        let (mut intake, arrivals, mut pool) = intake(1);
        let bytes = segment(100);
        let plain = Frame { bytes: &bytes, lost: None, offload: Ok(Offload::default()), tag: None };
        let wrong = Offload { checksum: Some((900, 0)), segments: None };
        let mut burst = Burst::new();
        for frame in [
            plain,
            plain,
            Frame { lost: Some(FrameLoss::TooLong), ..plain },
            Frame { lost: Some(FrameLoss::NoRoom), ..plain },
            Frame { offload: Err(OffloadError::Layout), ..plain },
            Frame { offload: Ok(wrong), ..plain },
        ] {
            assert_eq!(intake.take(&frame, &mut burst, &mut pool, Time::ZERO), Taken::Whole);
        }
        assert_eq!(burst.len(), 1);
        let counted =
            [&arrivals.packets, &arrivals.no_buffer, &arrivals.oversize, &arrivals.malformed];
        assert_eq!(counted.map(Counter::get), [6, 1, 1, 2]);
        assert_eq!(arrivals.no_room.get(), 1);
        burst.drain(..).for_each(|packet| pool.free(packet));
    }
}
