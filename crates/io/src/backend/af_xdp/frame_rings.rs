//! The FILL and COMPLETION rings of one hardware queue, which the lanes that poll it share.
//!
//! Each ring has one end in the process, behind a lock that is only ever tried: a lane that finds it taken goes on, because the
//! lane that holds it does the same work, and tries again at the next poll. Lanes work in bulk, from and to caches of their
//! own.
#![allow(unsafe_code)]

use std::sync::TryLockError;
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::sync::{Mutex, MutexGuard};
use rheostat_packet::{Loans, PoolCache};

use super::ring::{Consumer, Gauge, Producer, RingMemory};

/// Buffers that change hands at once at most, so that the lock is held for a microsecond or so.
const BATCH: usize = 64;

/// The two rings, and the record of all buffers that the kernel holds on this hardware queue.
pub(super) struct FrameRings<M> {
    loans: Loans,
    /// Empty buffers on their way to the kernel.
    fill: Mutex<Producer<M>>,
    /// Buffers whose packets were sent, on their way back.
    completion: Mutex<Consumer<M>>,
    to_fill: Gauge<M>,
    to_reap: Gauge<M>,
    /// Buffers that came back by the COMPLETION ring. Relaxed: written under its lock, and a figure.
    completed: AtomicU64,
    /// Addresses in the COMPLETION ring that cannot be.
    refused: AtomicU64,
}

impl<M: RingMemory<Entry = u64>> FrameRings<M> {
    /// Takes our ends of the two rings.
    ///
    /// # Safety
    /// The other ends belong to the borrower of `loans`, which gives back an address on the COMPLETION ring, or on the RX ring
    /// of a socket of this queue, only when it is done with the buffer.
    pub(super) unsafe fn new(loans: Loans, fill: M, completion: M) -> FrameRings<M> {
        let (fill, completion) = (Producer::new(fill), Consumer::new(completion));
        FrameRings {
            loans,
            to_fill: fill.gauge(),
            to_reap: completion.gauge(),
            fill: Mutex::new(fill),
            completion: Mutex::new(completion),
            completed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The buffers that the kernel holds.
    pub(super) fn loans(&self) -> &Loans {
        &self.loans
    }

    /// Gives the kernel up to `wanted` empty buffers, and returns how many it got: none while another
    /// lane is at it, fewer when the pool or the ring has no more.
    pub(super) fn refill(&self, wanted: usize, cache: &mut PoolCache) -> usize {
        let Some(mut fill) = try_lock(&self.fill) else { return 0 };
        let wanted = wanted.min(BATCH);
        let room = fill.room(wanted as u32) as usize;
        let mut addresses = [0; BATCH];
        let count = self.loans.lend_free(cache, &mut addresses[..wanted.min(room)]);
        if count > 0 {
            addresses[..count].iter().for_each(|address| fill.put(*address));
            fill.publish();
        }
        count
    }

    /// Buffers whose packets were sent, and which can be taken back.
    pub(super) fn completions(&self) -> u32 {
        self.to_reap.waiting()
    }

    /// Takes back buffers whose packets were sent, and returns how many: none while another lane is at
    /// it.
    pub(super) fn reap(&self, cache: &mut PoolCache) -> usize {
        if self.to_reap.waiting() == 0 {
            return 0;
        }
        let Some(mut completion) = try_lock(&self.completion) else { return 0 };
        let mut count = 0;
        while count < BATCH {
            let Some(address) = completion.take() else { break };
            // SAFETY: the kernel has put the address on the COMPLETION ring, so it is done with it.
            if unsafe { self.loans.take_back(address, cache) }.is_err() {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            count += 1;
        }
        completion.release();
        self.completed.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// Buffers that were sent and came back so far.
    pub(super) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Addresses the kernel gave back that cannot be.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether the kernel waits for a notification of buffers in the FILL ring.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.to_fill.needs_wakeup()
    }

    /// Lets go of the rings.
    pub(super) fn close(self) -> Loans {
        self.loans
    }
}

/// The lock, if it is free.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        // A thread that panicked has left entries that it had not published; they are written again.
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rheostat_packet::{Mempool, MempoolConfig};

    use super::super::ring::heap::HeapRing;
    use super::*;

    #[test]
    fn buffers_go_out_and_come_home_and_nonsense_is_refused() {
        let pool = Mempool::new(&MempoolConfig::umem(128)).unwrap();
        let mut cache = PoolCache::new(pool.clone());
        let (fill, completion) = (HeapRing::new(128, 0), HeapRing::new(128, 0));
        // SAFETY: this test is the kernel, and touches no buffer.
        let rings = unsafe { FrameRings::new(Loans::new(&pool), fill.clone(), completion.clone()) };
        assert_eq!(rings.refill(100, &mut cache), 64);
        assert_eq!(rings.refill(100, &mut cache), 64);
        assert_eq!(rings.refill(1, &mut cache), 0, "the pool is empty");
        let (mut kernel_fill, mut kernel_done) = (Consumer::new(fill), Producer::new(completion));
        for _ in 0..80 {
            kernel_done.put(kernel_fill.take().unwrap());
        }
        kernel_done.put(128 * 2_048);
        kernel_done.publish();
        kernel_fill.release();
        assert_eq!(rings.reap(&mut cache), 64);
        assert_eq!(rings.reap(&mut cache), 17);
        assert_eq!(rings.reap(&mut cache), 0);
        assert_eq!((rings.completed(), rings.refused()), (81, 1));
        let loans = rings.close();
        assert_eq!(loans.outstanding(), 48);
        // SAFETY: the kernel of this test is gone.
        unsafe { loans.call_in() };
        drop(cache);
        assert_eq!(pool.available(), 128);
    }

    #[test]
    fn a_lane_that_finds_a_ring_taken_goes_on() {
        let pool = Mempool::new(&MempoolConfig::umem(8)).unwrap();
        let mut cache = PoolCache::new(pool.clone());
        let (fill, completion) = (HeapRing::new(8, 0), HeapRing::new(8, 0));
        // SAFETY: this test is the kernel, and touches no buffer.
        let rings = unsafe { FrameRings::new(Loans::new(&pool), fill.clone(), completion.clone()) };
        let held = rings.fill.lock().unwrap();
        assert_eq!(rings.refill(1, &mut cache), 0);
        drop(held);
        assert_eq!(rings.refill(1, &mut cache), 1);
        let mut kernel = Producer::new(completion);
        kernel.put(Consumer::new(fill).take().unwrap());
        kernel.publish();
        let held = rings.completion.lock().unwrap();
        assert_eq!(rings.reap(&mut cache), 0);
        drop(held);
        assert_eq!(rings.reap(&mut cache), 1);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::thread;
    use rheostat_base::sync::Arc;
    use rheostat_packet::{Mempool, MempoolConfig};

    use super::super::ring::heap::HeapRing;
    use super::*;

    type Ring = HeapRing<u64>;

    fn rings(pool: &Mempool, fill: &Ring, completion: &Ring) -> Arc<FrameRings<Ring>> {
        // SAFETY: the kernel's ends are the model's, which touches no buffer.
        let rings = unsafe { FrameRings::new(Loans::new(pool), fill.clone(), completion.clone()) };
        Arc::new(rings)
    }

    /// Two lanes give the kernel buffers at the same time: it gets each once, and one of them at least
    /// gets through. Fails when the lock does not order what one lane wrote before what the next does.
    #[test]
    fn two_lanes_never_give_the_same_buffer_or_overwrite_each_other() {
        loom::model(|| {
            let pool = Mempool::new(&MempoolConfig::umem(2)).unwrap();
            let (fill, completion) = (Ring::new(2, 0), Ring::new(2, 0));
            let rings = rings(&pool, &fill, &completion);
            let (shared, cache) = (rings.clone(), PoolCache::new(pool.clone()));
            let refill = |rings: &FrameRings<Ring>, mut cache| rings.refill(1, &mut cache);
            let other = thread::spawn(move || refill(&shared, cache));
            let given = refill(&rings, PoolCache::new(pool.clone())) + other.join().unwrap();
            let mut kernel = Consumer::new(fill);
            let mut seen: Vec<_> = std::iter::from_fn(|| kernel.take()).collect();
            seen.sort_unstable();
            seen.dedup();
            assert!(given >= 1 && seen.len() == given, "{given} were given and {seen:?} arrived");
            assert_eq!(pool.available(), 2 - given);
        });
    }

    /// Two lanes take sent buffers back at the same time: each comes home once.
    #[test]
    fn two_lanes_never_take_the_same_buffer_back() {
        loom::model(|| {
            let pool = Mempool::new(&MempoolConfig::umem(2)).unwrap();
            let (fill, completion) = (Ring::new(2, 0), Ring::new(2, 0));
            let rings = rings(&pool, &fill, &completion);
            assert_eq!(rings.refill(2, &mut PoolCache::new(pool.clone())), 2);
            let (mut from, mut to) = (Consumer::new(fill), Producer::new(completion));
            std::iter::from_fn(|| from.take()).for_each(|address| to.put(address));
            to.publish();
            let (shared, cache) = (rings.clone(), PoolCache::new(pool.clone()));
            let reap = |rings: &FrameRings<Ring>, mut cache| rings.reap(&mut cache);
            let other = thread::spawn(move || reap(&shared, cache));
            let reaped = reap(&rings, PoolCache::new(pool.clone())) + other.join().unwrap();
            assert_eq!((reaped, rings.refused(), pool.available()), (2, 0, 2));
        });
    }

    /// A lane gives and takes while the kernel sends what it gets back at once: what comes back was on
    /// loan, and nothing is lost.
    #[test]
    fn a_lane_and_the_kernel_agree_on_the_holder_of_a_buffer() {
        loom::model(|| {
            let pool = Mempool::new(&MempoolConfig::umem(2)).unwrap();
            let (fill, completion) = (Ring::new(2, 0), Ring::new(2, 0));
            let rings = rings(&pool, &fill, &completion);
            let kernel = thread::spawn(move || {
                let (mut from, mut to) = (Consumer::new(fill), Producer::new(completion));
                let Some(address) = from.take() else { return 0 };
                from.release();
                to.put(address);
                to.publish();
                1
            });
            let mut cache = PoolCache::new(pool.clone());
            let given = rings.refill(1, &mut cache);
            let reaped = rings.reap(&mut cache);
            let sent = kernel.join().unwrap();
            assert_eq!(reaped + rings.reap(&mut cache), sent);
            assert_eq!((rings.refused(), rings.loans().outstanding()), (0, given - sent));
        });
    }
}
