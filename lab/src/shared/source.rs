//! The packets of a queue that refills itself.

use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::sync::prefetch::prefetch_for_write;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{Mbuf, PoolCache};

/// Bytes of the headers in front of the payload, which starts with the packet's number.
pub(super) const HEADERS: usize = 42;

/// The packets of one queue: numbered, all of one flow, and ready at once or when they are due.
pub(super) struct SharedSource {
    frame: Vec<u8>,
    /// When packets are due, in nanoseconds of the clock, by number; always, where there are none.
    due: Vec<u64>,
    /// How many there are.
    count: u64,
    /// What a NIC would read and write: the address of a buffer, or the state of a packet, two words of 8 bytes.
    descriptors: Box<[Descriptor]>,
}

#[derive(Debug, Default)]
#[repr(align(16))]
struct Descriptor {
    address: AtomicU64,
    state: AtomicU64,
}

impl SharedSource {
    /// `count` packets of `size` bytes, due at these times if any are given.
    pub(super) fn new(size: usize, descriptors: u64, count: u64, due: Vec<u64>) -> SharedSource {
        let (from, to) = ("10.0.0.1".parse(), "192.0.2.1".parse());
        let (from, to) = (from.expect("an address"), to.expect("an address"));
        let payload = vec![0; size.max(HEADERS + 8) - HEADERS];
        let udp = Transport::Udp { ports: (1_000, 53) };
        let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        let frame = FrameBuilder::new(from, to, udp, Payload::Bytes(&payload))
            .with_ethernet(ethernet)
            .to_vec();
        let descriptors = (0..descriptors).map(|_| Descriptor::default()).collect();
        SharedSource { frame, due, count, descriptors }
    }

    /// How many descriptors there are.
    pub(super) fn descriptors(&self) -> u64 {
        self.descriptors.len() as u64
    }

    /// How many packets there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn descriptor(&self, number: u64) -> &Descriptor {
        &self.descriptors[(number & (self.descriptors() - 1)) as usize]
    }

    /// Whether packet `number` has arrived by `now`, if its descriptor is free for it.
    #[inline]
    pub(super) fn is_ready(&self, number: u64, now: u64) -> bool {
        // Relaxed: the state publishes nothing, it is read because a driver would read it.
        let state = self.descriptor(number).state.load(Ordering::Relaxed);
        state != u64::MAX
            && number < self.count
            && self.due.get(number as usize).is_none_or(|due| *due <= now)
    }

    /// Asks for the descriptors of these packets, to be taken soon.
    #[inline]
    pub(super) fn prefetch(&self, numbers: impl Iterator<Item = u64>) {
        let in_a_line = 64 / size_of::<Descriptor>();
        for number in numbers.step_by(in_a_line) {
            prefetch_for_write(self.descriptor(number));
        }
    }

    /// When a packet was due.
    pub(super) fn due(&self, number: u64) -> Option<u64> {
        self.due.get(number as usize).copied()
    }

    /// Writes packet `number` into a buffer, and an empty one into its descriptor; `None` where no buffer is free.
    #[inline]
    pub(super) fn take(&self, number: u64, pool: &mut PoolCache) -> Option<Mbuf> {
        let mut packet = pool.alloc_from(&self.frame).ok()?;
        packet.data_mut()[HEADERS..HEADERS + 8].copy_from_slice(&number.to_be_bytes());
        let descriptor = self.descriptor(number);
        descriptor.address.store(number, Ordering::Relaxed);
        descriptor.state.store(number, Ordering::Relaxed);
        Some(packet)
    }
}

/// The number of a packet.
#[inline]
pub(super) fn number_of(packet: &Mbuf) -> u64 {
    let number =
        packet.data()[HEADERS..].first_chunk().expect("packets are as long as their numbers");
    u64::from_be_bytes(*number)
}
