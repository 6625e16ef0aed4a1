//! Two devices whose packets come from memory, for measuring what lies between them.
//!
//! A lane polls a queue of each: what it forwards from one leaves through the other. The packets are those of a conversation
//! that a stateful function accepts: every flow opens with a handshake, then both ends send data in turn, each with the
//! sequence and acknowledgement numbers that follow from what the other has sent. A source that *converses*
//! ([`SourceKind::Converse`]) writes headers, sequence numbers and checksums of each packet anew, as both ends of a connection
//! have to; one that *replays* copies headers that were prepared, the same in each round. Each buffer goes round: of [`CYCLE`]
//! buffers per queue, twice that per lane, the one that was sent longest ago is used next, so that neither headers nor handles
//! stay in the nearest cache longer than with a real device.

mod conversation;
mod endpoints;
mod externals;
mod frame;
mod frames;
mod line;
mod pick;
mod queue;
mod template;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_base::{Counter, DeviceId};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair};
use rheostat_packet::{FlowKey, HashKind};
use rheostat_steer::Steering;
use rheostat_traffic::Distribution;

use crate::calibration::{Calibrator, TimingSum, Timings};
use conversation::{Conversation, ConversationProgress};
pub use endpoints::{FrameSize, SERVICE, Servers, widened};
use pick::Picks;
use queue::Half;

/// Buffers that each receive queue cycles through.
pub const CYCLE: usize = 2_048;

/// The device that faces the inside.
pub const LAN: DeviceId = DeviceId(0);
/// The device that faces the outside.
pub const WAN: DeviceId = DeviceId(1);

/// Where packets come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// Their headers are written anew: numbers and checksums follow from what was said before.
    #[default]
    Converse,
    /// Their headers are copied from memory. No flows are opened but those that stay.
    Replay,
}

impl SourceKind {
    /// The name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            SourceKind::Converse => "converse",
            SourceKind::Replay => "replay",
        }
    }
}

/// What the packets are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Flows that are open throughout.
    pub flows: u32,
    /// How packets are spread over them.
    pub distribution: Distribution,
    /// How long packets are.
    pub size: FrameSize,
    /// The servers they go to.
    pub servers: Servers,
    /// Whether each lane has flows of all shards, which lanes then own together; else each has those of its own shards.
    pub joint_shards: bool,
    /// Where they come from.
    pub source: SourceKind,
    /// Whether the chain gives clients other endpoints, which servers answer to.
    pub translated: bool,
    /// The share of packets that open a flow of their own, between 0 and 0.2. Such a flow is a TCP
    /// connection of four packets: SYN, SYN-ACK, ACK, and a reset.
    pub new_flow_share: f64,
    /// What everything random is drawn from.
    pub seed: u64,
}

/// One of the two devices.
pub struct MemoryDevice {
    name: &'static str,
    id: DeviceId,
    queues: Vec<QueuePair>,
    monitor: Arc<MemoryMonitor>,
}

/// What a device's queues share with its monitors.
#[derive(Default)]
struct MemoryMonitor {
    stopped: AtomicBool,
    queues: Vec<Arc<QueueCounters>>,
}

/// The counters of one queue pair, written by its lane alone.
#[derive(Debug, Default)]
#[repr(align(128))]
struct QueueCounters {
    arrived: Counter,
    arrived_bytes: Counter,
    no_buffer: Counter,
    sent: Counter,
    sent_bytes: Counter,
}

/// Reports when the flows of all lanes are open, and how fast their processors are.
#[derive(Clone)]
pub struct Opening {
    lanes: Vec<Arc<ConversationProgress>>,
    timings: Vec<Arc<Timings>>,
}

impl Opening {
    /// Flows whose handshake went through.
    pub fn opened(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.opened.get()).sum()
    }

    /// How long the arithmetic took by which the lanes report the speed of their processors.
    pub(crate) fn timings(&self) -> TimingSum {
        let sums = self.timings.iter().map(|timings| timings.sum());
        sums.fold(TimingSum::default(), TimingSum::plus)
    }

    /// Whether every lane has opened its flows and sends data.
    pub fn is_complete(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_ready())
    }
}

/// Makes the two devices, inside first, with a queue for each of `own`, which are some of `lanes` lanes. All packets of a flow come
/// on one queue: that of the lane that owns its shard, or with joint shards any. Flows of other lanes than `own` have no packets.
/// Where packets are `stamped`, they have the time of the poll that receives them, and the device says that it knows arrivals.
pub fn devices(
    load: &Load,
    steering: &Arc<Steering>,
    own: Range<usize>,
    lanes: usize,
    stamped: bool,
) -> (Vec<Box<dyn Device>>, Opening) {
    let monitors = [0, 1].map(|_| {
        let queues = own.clone().map(|_| Arc::default()).collect();
        Arc::new(MemoryMonitor { stopped: AtomicBool::new(false), queues })
    });
    let mut queues = [Vec::new(), Vec::new()];
    let (mut progress, mut timings) = (Vec::new(), Vec::new());
    for (place, lane) in own.enumerate() {
        let share = Share { lane, lanes, joint_shards: load.joint_shards };
        let picks = Picks::draw(load, steering, share);
        let conversation = Conversation::new(load, picks, steering.clone(), share);
        progress.push(conversation.progress());
        let half = |(side, monitor): (_, &Arc<MemoryMonitor>)| {
            let counters = monitor.queues[place].clone();
            Half { side, counters, monitor: monitor.clone(), stamped }
        };
        let [inside, outside] = conversation.into_sides();
        let calibrator = Calibrator::new();
        timings.push(calibrator.timings());
        let halves = [half((inside, &monitors[0])), half((outside, &monitors[1]))];
        let pairs = queue::pairs(halves, calibrator);
        for (queues, pair) in queues.iter_mut().zip(pairs) {
            queues.push(pair);
        }
    }
    let devices = [("lan", LAN), ("wan", WAN)].into_iter().zip(queues).zip(monitors).map(
        |(((name, id), queues), monitor)| {
            Box::new(MemoryDevice { name, id, queues, monitor }) as Box<dyn Device>
        },
    );
    (devices.collect(), Opening { lanes: progress, timings })
}

/// The flows of one lane.
#[derive(Clone, Copy, Debug)]
struct Share {
    lane: usize,
    lanes: usize,
    joint_shards: bool,
}

impl Share {
    /// Whether a flow with this hash is one of them. Shard `n` belongs to lane `n mod lanes`, as at the start of a run; where
    /// lanes own shards together, bits of the hash that no shard depends on decide.
    fn contains(self, steering: &Steering, hash: u32) -> bool {
        let number = match self.joint_shards {
            true => (hash >> 16) as usize,
            false => steering.shard_of_hash(hash).index(),
        };
        number % self.lanes == self.lane
    }
}

/// The hash that a device gives packets of the flow with this key, client first, and what it covers. It
/// is that of both directions, so chains whose packets are placed by their direction cannot be measured.
pub fn device_hash(steering: &Steering, key: FlowKey) -> (u32, HashKind) {
    let key = steering.orient(LAN, key).key;
    let kind = steering.kind_of(&key);
    (steering.hash(&key, kind), kind)
}

impl Device for MemoryDevice {
    fn name(&self) -> &str {
        self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl DeviceMonitor for MemoryMonitor {
    fn counters(&self) -> DeviceCounters {
        let sum = |field: fn(&QueueCounters) -> &Counter| {
            self.queues.iter().map(|queue| field(queue).get()).sum()
        };
        DeviceCounters {
            arrived: sum(|queue| &queue.arrived),
            arrived_bytes: sum(|queue| &queue.arrived_bytes),
            no_buffer: sum(|queue| &queue.no_buffer),
            sent: sum(|queue| &queue.sent),
            sent_bytes: sum(|queue| &queue.sent_bytes),
            copied: 0,
            ..DeviceCounters::default()
        }
    }

    fn is_exhausted(&self) -> bool {
        // Nothing waits in a queue whose packets are made when it is polled.
        self.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        // Relaxed: the flag publishes nothing.
        self.stopped.store(true, Ordering::Relaxed);
    }
}
