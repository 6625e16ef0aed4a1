use std::sync::{Arc, Mutex, PoisonError};

use rheostat_packet::{Mempool, MempoolConfig};

use super::*;

/// Takes everything; what becomes of it afterwards is the test's to say.
struct Taker(Arc<Mutex<Unsent>>);

impl TxQueue for Taker {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        burst.drain(..).for_each(|packet| pool.free(packet));
        count
    }

    fn unsent(&mut self) -> Unsent {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&mut self, _: &mut PoolCache) {
        let unsent = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unsent.refused += std::mem::take(&mut unsent.waiting);
    }
}

#[test]
fn a_packet_counts_as_sent_when_it_is_and_as_dropped_when_the_kernel_refuses_it() {
    let config = MempoolConfig { buffers: 64, ..MempoolConfig::default() };
    let pool = PoolCache::new(Mempool::new(&config).unwrap());
    let unsent: [Arc<Mutex<Unsent>>; 2] = Default::default();
    let queues = unsent.iter().map(|unsent| Box::new(Taker(unsent.clone())) as _).collect();
    let mut output = Output::new(LaneId(0), queues, pool);
    let counters = output.shared_counters();
    let send = |output: &mut Output, device: u8, count: usize| {
        for _ in 0..count {
            let packet = output.pool().alloc_from(&[0; 100]).unwrap();
            output.send(DeviceId(device), packet);
        }
        output.flush();
    };
    let state = || {
        let now = counters.sample();
        let refused = now.dropped[DropReason::TransmitRefused as usize];
        (now.sent, now.transmitting, refused)
    };
    let set = |device: usize, waiting, refused| {
        let refused_bytes = refused * 100;
        *unsent[device].lock().unwrap() =
            Unsent { waiting, refused, refused_bytes, ..Unsent::default() };
    };
    send(&mut output, 0, 10);
    assert_eq!(state(), (10, 0, 0));
    // Of 10 more, 3 are refused at once and 4 wait; likewise for 2 of another device.
    set(0, 4, 3);
    send(&mut output, 0, 10);
    set(1, 2, 0);
    send(&mut output, 1, 5);
    assert_eq!(state(), (10 + 3 + 3, 6, 3));
    assert_eq!(counters.sent_bytes.get(), 100 * (10 + 7 + 5));
    // Later, one of the 4 is refused as well, 2 get out, and nothing else is sent.
    set(0, 1, 4);
    send(&mut output, 0, 0);
    assert_eq!(state(), (18, 3, 4));
    // What still waits at the end is not sent.
    output.finish();
    assert_eq!(state(), (18, 0, 7));
}
