//! One poll of a receive queue: where frames go.

use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};
use rheostat_traffic::clients::frame::Sent;

use super::client::RigClient;
use super::population::{Population, QueueShare};
use super::request_frame::{FRAME, Varying};

/// What frames are put into.
pub(super) struct Poll<'a> {
    pub(super) all: &'a Population,
    pub(super) share: &'a QueueShare,
    pub(super) burst: &'a mut Burst,
    pub(super) pool: &'a mut PoolCache,
    pub(super) now: Time,
    /// The stamp of the next frame.
    pub(super) stamp: &'a mut u32,
}

impl Poll<'_> {
    /// A request of `client`.
    pub(super) fn put_request(&mut self, client: &RigClient, varying: &Varying) {
        self.share.receiving.requests.increment();
        if let Some(mut packet) = self.alloc(FRAME) {
            self.all.frame.write(varying, packet.data_mut());
            // It has been in the queue since then.
            self.put(packet, client.hash, Time::from_nanos(varying.number));
        }
    }

    /// An acknowledgement of `client` by itself.
    pub(super) fn put_acknowledgement(&mut self, client: &RigClient, sent: Sent) {
        self.share.receiving.acknowledgements.increment();
        self.put_sent(client, sent);
    }

    /// Any other segment of `client`.
    pub(super) fn put_sent(&mut self, client: &RigClient, sent: Sent) {
        if let Some(mut packet) = self.alloc(sent.frame_len()) {
            sent.write(&self.all.ends(client.port), packet.data_mut(), |_| {});
            self.put(packet, client.hash, self.now);
        }
    }

    fn alloc(&mut self, len: usize) -> Option<Mbuf> {
        let packet = self.pool.alloc(len).ok();
        if packet.is_none() {
            self.share.receiving.no_buffer.increment();
        }
        packet
    }

    fn put(&mut self, mut packet: Mbuf, hash: u32, arrived: Time) {
        let counters = &self.share.receiving;
        counters.received.increment();
        counters.received_bytes.add(packet.len() as u64);
        packet.set_wire_len(packet.len() as u32);
        packet.set_timestamp(arrived);
        packet.set_device(self.all.config.device);
        packet.set_hash(hash, self.all.covered);
        packet.set_stamp(*self.stamp);
        *self.stamp = self.stamp.wrapping_add(1);
        self.burst.push(packet);
    }
}

/// Time stamps of clients count milliseconds.
pub(super) fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
