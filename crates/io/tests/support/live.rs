//! Polling a live device, and TCP between two hosts through two of them.

use std::io::Read;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::Time;
use rheostat_io::{Device, DeviceMonitor, QueuePair};
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::{Burst, Headers, Mbuf, Mempool, MempoolConfig, PoolCache};

use super::udp;
use rheostat_testkit::veth::Host;

const BUFFERS: u32 = 4_096;
/// How long to wait for what happens within milliseconds on a machine that has nothing else to do.
const LIMIT: Duration = Duration::from_secs(120);
/// Packets under way to a device at most: the kernel's queues on the way hold several times as many and drop, without
/// a word to either device, what comes while they are full and the kernel does not get a core.
pub(crate) const UNDER_WAY: usize = 96;

/// Waits until `condition` holds.
pub(crate) fn await_condition(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Buffers for all devices of a test.
pub(crate) fn pool() -> Mempool {
    Mempool::new(&MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() }).unwrap()
}

/// An open device, and what is needed to poll it.
pub(crate) struct Open<D> {
    pub(crate) device: D,
    pub(crate) queues: Vec<QueuePair>,
    pub(crate) monitor: Arc<dyn DeviceMonitor>,
    pub(crate) cache: PoolCache,
    pub(crate) pool: Mempool,
}

impl<D: Device> Open<D> {
    /// Opens a device with a pool of its own.
    pub(crate) fn new(open: impl FnOnce(&Mempool) -> D) -> Open<D> {
        let pool = pool();
        let device = open(&pool);
        Open::sharing(&pool, device)
    }

    /// A device whose packets lie in buffers of `pool`, as others' do.
    pub(crate) fn sharing(pool: &Mempool, mut device: D) -> Open<D> {
        let (queues, monitor) = (device.queues(), device.monitor());
        Open { device, queues, monitor, cache: PoolCache::new(pool.clone()), pool: pool.clone() }
    }

    /// Polls every lane once.
    pub(crate) fn poll(&mut self, mut each: impl FnMut(usize, &Mbuf)) -> usize {
        let mut count = 0;
        for (lane, queue) in self.queues.iter_mut().enumerate() {
            let mut burst = Burst::new();
            count += queue.rx.recv(&mut burst, &mut self.cache, Time::from_millis(5));
            for packet in burst.drain(..) {
                each(lane, &packet);
                self.cache.free(packet);
            }
        }
        count
    }

    /// Polls until `count` packets have come, or none has for [`LIMIT`].
    pub(crate) fn poll_for(&mut self, count: usize, mut each: impl FnMut(usize, &Mbuf)) -> usize {
        let (mut seen, mut last) = (0, Instant::now());
        while seen < count && last.elapsed() < LIMIT {
            match self.poll(&mut each) {
                0 => std::thread::sleep(Duration::from_millis(1)),
                some => (seen, last) = (seen + some, Instant::now()),
            }
        }
        seen
    }

    /// Sends frames on lane 0, as many as there is room for.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) -> usize {
        let mut burst = Burst::new();
        for frame in frames {
            burst.push(self.cache.alloc_from(frame).unwrap());
        }
        let sent = self.queues[0].tx.send(&mut burst, &mut self.cache, Time::ZERO);
        burst.drain(..).for_each(|packet| self.cache.free(packet));
        sent
    }

    /// Ends, and all buffers are home.
    pub(crate) fn close(self) {
        let Open { device, queues, cache, pool, .. } = self;
        drop((queues, device, cache));
        assert_eq!(pool.available(), BUFFERS as usize);
    }
}

/// Numbered packets of `flows` flows in turn.
pub(crate) fn rounds(flows: u16, from: u32, count: u32) -> Vec<Vec<u8>> {
    (from..from + count).map(|i| udp(i as u16 % flows, i)).collect()
}

/// Sends 20 MB from a client to a server, both in Python, and compares what arrives.
pub(crate) fn transfer(
    client: &Host,
    server: &Host,
    family: &str,
    address: &str,
) -> (Child, Child) {
    let serve = format!(
        "import socket,hashlib\n\
         s=socket.socket(socket.{family});s.bind(('{address}',5201));s.listen(1)\n\
         c,_=s.accept();h=hashlib.sha256();n=0\n\
         while True:\n\
         \x20d=c.recv(1<<16)\n\
         \x20if not d: break\n\
         \x20h.update(d);n+=len(d)\n\
         print(n,h.hexdigest())"
    );
    let send = format!(
        "import socket,hashlib,random,time\n\
         d=random.Random(7).randbytes(20<<20)\n\
         for i in range(1200):\n\
         \x20try:\n\
         \x20\x20s=socket.create_connection(('{address}',5201),timeout=120);break\n\
         \x20except OSError: time.sleep(0.1)\n\
         s.sendall(d);s.shutdown(socket.SHUT_WR);s.recv(1)\n\
         print(len(d),hashlib.sha256(d).hexdigest())"
    );
    (server.python(&serve), client.python(&send))
}

pub(crate) fn output(mut child: Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    text
}

/// Passes packets from one device to the other and back, and checks each.
pub(crate) fn forward<D: Device>(lan: &mut Open<D>, wan: &mut Open<D>, longest: &mut usize) {
    for (from, to) in [(0, 1), (1, 0)] {
        let [from, to] = match (from, to) {
            (0, _) => [&mut *lan, &mut *wan],
            _ => [&mut *wan, &mut *lan],
        };
        for (receive, send) in from.queues.iter_mut().zip(&mut to.queues) {
            let mut burst = Burst::new();
            receive.rx.recv(&mut burst, &mut from.cache, Time::ZERO);
            for packet in &burst {
                let headers = Headers::parse(packet).expect("hosts send sound packets");
                let validity = evaluate_packet(packet, &headers);
                assert!(!matches!(validity, Some(Validity::Invalid | Validity::Partial)));
                *longest = (*longest).max(packet.len());
            }
            while !burst.is_empty() {
                // A full queue makes room soon.
                send.tx.send(&mut burst, &mut from.cache, Time::ZERO);
            }
        }
    }
}
