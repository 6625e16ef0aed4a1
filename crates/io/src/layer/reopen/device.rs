//! The device, and the opener that opens it anew.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rheostat_base::{DeviceId, QueueId};
use rheostat_steer::IndirectionTable;

use super::exchange::{Exchange, Offer};
use super::monitor::{Behind, ReopenableMonitor};
use super::table::ReopenableTable;
use super::vacancy::Vacancy;
use crate::device::{Device, DeviceMonitor, QueuePair};
use crate::error::OpenError;
use crate::lock::lock;

/// How long lanes may take to receive what is left and take new queues. One that takes longer takes them later,
/// and its old ones are closed by the next [`Reopener::reopen`], or with the device.
const EXCHANGE: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const GLANCE: Duration = Duration::from_millis(1);

/// Opens the device with its buckets placed so.
type Open = dyn Fn(Option<Vec<QueueId>>) -> Result<Box<dyn Device>, OpenError> + Send + Sync;

/// A device that can be opened anew while its lanes run.
pub struct ReopenableDevice {
    name: String,
    id: DeviceId,
    queues: Vec<QueuePair>,
    shared: Arc<Shared>,
}

/// Lets go of a device's interface, and opens it anew. Holds nothing of the device when that is dropped.
#[derive(Clone)]
pub struct Reopener(Arc<Shared>);

pub(super) struct Shared {
    open: Box<Open>,
    lanes: Vec<Arc<Exchange>>,
    /// What the queues lead to.
    pub(super) behind: Mutex<Behind>,
    was_reopened: AtomicBool,
}

impl ReopenableDevice {
    /// Opens a device by `open`, which is called with the placement of the buckets whenever it is opened anew.
    ///
    /// # Errors
    /// Those of `open`, and [`OpenError::Event`] when the process has too many files open.
    pub fn open(
        open: impl Fn(Option<Vec<QueueId>>) -> Result<Box<dyn Device>, OpenError>
        + Send
        + Sync
        + 'static,
    ) -> Result<ReopenableDevice, OpenError> {
        let mut device = open(None)?;
        let (name, id) = (device.name().to_owned(), device.id());
        let exchanges = device.queues().into_iter().map(Exchange::new);
        let exchanges = exchanges.collect::<io::Result<Vec<_>>>();
        let fails = |source| OpenError::Event { device: name.clone(), source };
        let (lanes, queues) = exchanges.map_err(fails)?.into_iter().unzip();
        let shared = Arc::new(Shared {
            open: Box::new(open),
            lanes,
            behind: Mutex::new(Behind::new(device)),
            was_reopened: AtomicBool::new(false),
        });
        Ok(ReopenableDevice { name, id, queues, shared })
    }

    /// What opens it anew.
    pub fn reopener(&self) -> Reopener {
        Reopener(self.shared.clone())
    }
}

impl Reopener {
    /// The interface is gone: nothing arrives any more, and what is sent is left to the lanes. A device that would be in the way
    /// of the next one is closed, for which lanes first receive what is left in its queues: that may take seconds.
    pub fn let_go(&self) {
        let monitor = lock(&self.0.behind).monitor.clone();
        self.0.lanes.iter().for_each(|lane| lane.let_go());
        match monitor.interface() {
            Some(interface) => interface.let_go(),
            None => monitor.stop(),
        }
        let vacancy = match lock(&self.0.behind).device.as_deref() {
            Some(device) if device.is_exclusive() => Vacancy::after(device, self.0.lanes.len()),
            _ => return,
        };
        self.exchange(Box::new(vacancy), true);
    }

    /// Opens the device anew, and gives lanes the new queues; `false` when the run is about to end. Takes as
    /// long as opening does, and then until lanes have received what is left in the old queues.
    ///
    /// # Errors
    /// [`OpenError`] when it cannot be opened; then everything is as it was.
    pub fn reopen(&self) -> Result<bool, OpenError> {
        // Of lanes that were late: they keep their device.
        self.0.lanes.iter().for_each(|lane| drop(lane.take_old()));
        let placement = lock(&self.0.behind).table.as_ref().map(|table| table.read());
        let device = (self.0.open)(placement)?;
        Ok(self.exchange(device, false))
    }

    /// Puts a device behind the queues and closes the one before; `false` when the run is about to end.
    fn exchange(&self, mut device: Box<dyn Device>, is_vacant: bool) -> bool {
        let queues = device.queues();
        let Some(old) = lock(&self.0.behind).replace(device) else { return false };
        // Relaxed: read when the run is over.
        self.0.was_reopened.store(true, Ordering::Relaxed);
        let lanes = &self.0.lanes;
        let offer = |(lane, pair): (&Arc<Exchange>, _)| lane.offer(Offer { pair, is_vacant });
        let untaken: Vec<_> = lanes.iter().zip(queues).filter_map(offer).collect();
        drop(untaken);
        let start = Instant::now();
        let mut is_taken = false;
        while !is_taken && start.elapsed() < EXCHANGE {
            std::thread::sleep(GLANCE);
            is_taken = lanes.iter().all(|lane| lane.is_taken());
        }
        lanes.iter().for_each(|lane| drop(lane.take_old()));
        drop(old);
        if is_taken {
            lock(&self.0.behind).settle();
        }
        true
    }
}

impl Device for ReopenableDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        let table = lock(&self.shared.behind).table.clone()?;
        Some(Arc::new(ReopenableTable { shared: self.shared.clone(), entries: table.len() }))
    }

    /// A table that is rewritten while the device is opened anew leads to the old lanes for a moment.
    fn may_place_late(&self) -> bool {
        let behind = lock(&self.shared.behind);
        let device = behind.device.as_ref();
        self.shared.was_reopened.load(Ordering::Relaxed)
            || device.is_some_and(|device| device.may_place_late())
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(ReopenableMonitor(self.shared.clone()))
    }
}

impl Drop for ReopenableDevice {
    fn drop(&mut self) {
        self.queues.clear();
        self.shared.lanes.iter().for_each(|lane| lane.close());
        let device = lock(&self.shared.behind).close();
        drop(device);
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use std::sync::atomic::AtomicUsize;

    use crate::{Arrival, Source};
    use rheostat_base::{DropReason, Time};
    use rheostat_packet::build::{FrameBuilder, Payload, Transport};
    use rheostat_packet::{Burst, LinkType, Mempool, MempoolConfig, PoolCache};
    use rheostat_steer::{HashKey, Orientation, Steering};

    use super::*;
    use crate::RxQueue;
    use crate::backend::sim::{Pacing, SimConfig, SimNic};
    use crate::sink::NullSink;

    /// Packets that each opening of the device brings.
    const COUNT: usize = 5;

    struct Datagrams(usize);

    impl Source for Datagrams {
        fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
            self.0 = self.0.checked_sub(1)?;
            let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
            let udp = Transport::Udp { ports: (1_000, 53) };
            *frame = FrameBuilder::new(from, to, udp, Payload::Pattern(8)).to_vec();
            let len = frame.len();
            Some(Arrival { time: Time::ZERO, len, wire_len: len as u32, link: LinkType::Raw })
        }
    }

    /// A device that is the only one while it is open.
    struct Exclusive(SimNic, Arc<AtomicUsize>);

    impl Device for Exclusive {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn id(&self) -> DeviceId {
            self.0.id()
        }

        fn queues(&mut self) -> Vec<QueuePair> {
            self.0.queues()
        }

        fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
            self.0.table()
        }

        fn is_exclusive(&self) -> bool {
            true
        }

        fn monitor(&self) -> Arc<dyn DeviceMonitor> {
            self.0.monitor()
        }
    }

    impl Drop for Exclusive {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_device_that_would_be_in_the_way_is_closed_before_the_next_is_opened() {
        let pool = MempoolConfig { buffers: 256, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).unwrap();
        let steering = Steering::new(&HashKey::MICROSOFT, 4, 4, vec![Orientation::Inside]).unwrap();
        let (steering, buffers) = (Arc::new(steering), pool.clone());
        let open = Arc::new(AtomicUsize::new(0));
        let is_open = open.clone();
        let mut device = ReopenableDevice::open(move |_| {
            assert_eq!(open.fetch_add(1, Ordering::Relaxed), 0, "another one is open");
            let mut nic = SimConfig::new("nic", 1, steering.clone());
            nic.pacing = Pacing::Lossless;
            let nic =
                SimNic::open(nic, Box::new(Datagrams(COUNT)), |_| Box::new(NullSink), &buffers);
            Ok(Box::new(Exclusive(nic?, open.clone())))
        })
        .unwrap();
        let (reopener, monitor) = (device.reopener(), device.monitor());
        let table = device.table().unwrap();
        let mut cache = PoolCache::new(pool.clone());
        let QueuePair { mut rx, mut tx } = device.queues().remove(0);
        let mut burst = Burst::new();
        while rx.recv(&mut burst, &mut cache, Time::ZERO) > 0 {}
        let mut poll_while = |rx: &mut Box<dyn RxQueue>, work: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                let worked = scope.spawn(work);
                while !worked.is_finished() {
                    rx.recv(&mut burst, &mut cache, Time::ZERO);
                    std::thread::yield_now();
                }
                worked.join().unwrap();
            });
            burst.drain(..).for_each(|packet| cache.free(packet));
        };
        poll_while(&mut rx, &|| reopener.let_go());
        assert_eq!(is_open.load(Ordering::Relaxed), 0);
        assert_eq!(monitor.counters().arrived, COUNT as u64);
        let entries = [QueueId(0); 4];
        table.rewrite(&entries).unwrap();
        let outside = table.rewrite(&[QueueId(0), QueueId(1), QueueId(0), QueueId(0)]);
        assert!(outside.is_err() && table.rewrite(&entries[1..]).is_err());
        assert_eq!((table.read(), rx.backlog()), (entries.to_vec(), 0));
        assert!(rx.wait_fd().is_some(), "a lane is woken when the next one is open");
        poll_while(&mut rx, &|| assert!(reopener.reopen().unwrap()));
        let mut burst = Burst::new();
        while rx.recv(&mut burst, &mut cache, Time::ZERO) > 0 {}
        assert_eq!(monitor.counters().arrived, 2 * COUNT as u64);
        burst.drain(..).for_each(|packet| cache.free(packet));
        burst.push(cache.alloc_from(&[0; 64]).unwrap());
        assert_eq!(tx.send(&mut burst, &mut cache, Time::ZERO), 1);
        drop((rx, tx, device, cache));
        assert_eq!((is_open.load(Ordering::Relaxed), pool.available()), (0, 256));
    }

    #[test]
    fn queues_and_counters_go_on_and_the_placement_stays() {
        let pool = MempoolConfig { buffers: 256, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).unwrap();
        let steering = Steering::new(&HashKey::MICROSOFT, 4, 4, vec![Orientation::Inside]).unwrap();
        let steering = Arc::new(steering);
        let placements: Arc<Mutex<Vec<Option<Vec<QueueId>>>>> = Arc::default();
        let (asked, buffers) = (placements.clone(), pool.clone());
        let mut device = ReopenableDevice::open(move |placement| {
            lock(&asked).push(placement);
            let mut nic = SimConfig::new("nic", 1, steering.clone());
            nic.pacing = Pacing::Lossless;
            let source = Box::new(Datagrams(COUNT));
            Ok(Box::new(SimNic::open(nic, source, |_| Box::new(NullSink), &buffers)?))
        })
        .unwrap();
        let (reopener, monitor) = (device.reopener(), device.monitor());
        let mut cache = PoolCache::new(pool.clone());
        let QueuePair { mut rx, mut tx } = device.queues().remove(0);
        let entries = [QueueId(0); 4];
        device.table().unwrap().rewrite(&entries).unwrap();

        let mut burst = Burst::new();
        while rx.recv(&mut burst, &mut cache, Time::ZERO) > 0 {}
        assert_eq!(burst.len(), COUNT);
        reopener.let_go();
        assert_eq!(tx.send(&mut burst, &mut cache, Time::ZERO), 0);
        let why = tx.why_left(0, &burst[0]);
        assert_eq!((burst.len(), why), (COUNT, DropReason::LinkDown));
        burst.drain(..).for_each(|packet| cache.free(packet));

        std::thread::scope(|scope| {
            let reopened = scope.spawn(|| reopener.reopen().unwrap());
            while !reopened.is_finished() {
                rx.recv(&mut burst, &mut cache, Time::ZERO);
                std::thread::yield_now();
            }
            assert!(reopened.join().unwrap());
        });
        // A lane that did not come round to its new queues in time takes them now.
        for _ in 0..COUNT {
            rx.recv(&mut burst, &mut cache, Time::ZERO);
        }
        assert_eq!(*lock(&placements), [None, Some(entries.to_vec())]);
        assert_eq!(tx.send(&mut burst, &mut cache, Time::ZERO), COUNT);
        let counters = monitor.counters();
        assert_eq!((counters.arrived, counters.sent), (2 * COUNT as u64, COUNT as u64));

        assert!(!monitor.is_exhausted(), "the interface may return once more");
        monitor.stop();
        assert!(monitor.is_exhausted());
        assert!(!reopener.reopen().unwrap(), "the run ends");
        drop((rx, tx, device, cache));
        assert_eq!(pool.available(), 256);
    }
}
