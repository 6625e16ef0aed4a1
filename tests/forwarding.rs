//! A chain without functions forwards the packets of a batch by the devices that they arrived on, whatever stands beside them: a
//! batch of packets that other lanes hand over has those of several devices.

use std::sync::{Arc, Mutex};

use rheostat::DynamicChain;
use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_io::TxQueue;
use rheostat_nf::ChainService;
use rheostat_packet::{Burst, Mempool, MempoolConfig, PoolCache};
use rheostat_run::{Batch, HandoffPacket, Output, PacketInfo, Routes, Service, ShardSet};

/// What has left, with the device.
type Sent = Arc<Mutex<Vec<(u8, Vec<u8>)>>>;

/// Keeps what is sent on a device.
struct Kept(u8, Sent);

impl TxQueue for Kept {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        for packet in burst.drain(..) {
            self.1.lock().unwrap().push((self.0, packet.to_vec()));
            pool.free(packet);
        }
        count
    }
}

#[test]
fn each_packet_of_a_batch_leaves_by_the_device_that_its_own_leads_to() {
    let pool = MempoolConfig { buffers: 64, ..MempoolConfig::default() };
    let pool = PoolCache::new(Mempool::new(&pool).unwrap());
    let sent = Sent::default();
    let queues = (0..3).map(|device| Box::new(Kept(device, sent.clone())) as _).collect();
    let mut out = Output::new(LaneId(0), queues, pool);
    let routes = [1, 2, 0].map(DeviceId);
    let arrived = [0_u8, 0, 1, 2, 2, 0, 1, 1, 0];
    let mut batch = Batch::default();
    for (number, device) in (0_u8..).zip(arrived) {
        let mut packet = out.pool().alloc_from(&[number; 60]).unwrap();
        packet.set_device(DeviceId(device));
        let mut info = PacketInfo::default();
        info.set_usual(true);
        batch.push(HandoffPacket { packet, info });
    }
    let mut service = ChainService::new(Arc::new(DynamicChain::default()), Routes(routes.to_vec()));
    service.process(&mut batch, &mut ShardSet::new(1), &mut out);
    out.flush();
    let mut sent = std::mem::take(&mut *sent.lock().unwrap());
    sent.sort_by_key(|(_, frame)| frame[0]);
    let expected: Vec<_> = (0_u8..)
        .zip(arrived)
        .map(|(number, device)| (routes[usize::from(device)].0, vec![number; 60]))
        .collect();
    assert_eq!(sent, expected);
}
