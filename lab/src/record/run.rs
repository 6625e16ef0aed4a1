//! One run: one policy, on so many lanes, under one load, with one seed.

use serde::{Deserialize, Serialize};

use super::Series;

/// The figures of a run, those of its warm-up left out. Real and simulated runs have the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedRun {
    /// The scenario's name.
    pub scenario: String,
    /// The policy's name.
    pub policy: String,
    /// Lanes there were.
    pub lanes: u16,
    /// The load offered, as a share of what all lanes can do together.
    pub load: f64,
    /// What was random was drawn from it.
    pub seed: u64,
    /// Whether it was simulated.
    pub simulated: bool,
    /// Seconds measured.
    pub seconds: f64,
    /// What one lane can do, in packets per second: what a load of 1 means.
    pub capacity: f64,
    /// Packets that arrived.
    pub packets: u64,
    /// Packets that left, or that the chain refused.
    pub delivered: u64,
    /// Packets for which there was no room, in receive queues and on the way between lanes.
    pub dropped: u64,
    /// Packets that are missing: they arrived, and neither left nor were dropped or refused.
    pub lost: u64,
    /// Packets that left more than once.
    pub duplicated: u64,
    /// Packets that left after a younger packet of the same direction of their flow.
    pub reordered: u64,
    /// From when a packet was due to arrive until it left: pairs of a share and the microseconds that so
    /// many packets did not exceed. Ascending; the shares are those of [`RecordedRun::SHARES`].
    pub latency_us: Vec<(f64, f64)>,
    /// What the busiest lane did ÷ the mean of the active lanes, by busy time, over intervals of 100 ms,
    /// weighted by their work: 1 is even.
    pub imbalance: f64,
    /// By packets, as the paper has it: what the busiest lane processed beyond the least busy active one,
    /// as a share of the latter. The median of intervals of 100 ms.
    pub spread: Option<f64>,
    /// Packets per second that the lane processed which processed most; on a real lane this cannot be more than
    /// [`capacity`](Self::capacity), unless another lane does part of its work. 0 in files of older builds, and simulated.
    #[serde(default)]
    pub busiest_pps: f64,
    /// Shards that changed lanes.
    pub migrations: u64,
    /// Lanes that owned shards or took flows of others, on average over time.
    pub active: f64,
    /// Packets that were processed away from the lane of their shard. 0 in files of older builds, and simulated; so are the
    /// next figures.
    #[serde(default)]
    pub offloaded: u64,
    /// How often a flow left its lane.
    #[serde(default)]
    pub flows_offloaded: u64,
    /// Latency that 99.5 % of the packets of signalling did not exceed, in microseconds; `null` where there is none.
    #[serde(default)]
    pub priority_us: Option<f64>,
    /// How long the threads of the process were ready and had no core, in milliseconds, all of them together; `null`
    /// for simulated runs and in files of older builds.
    #[serde(default)]
    pub run_delay_ms: Option<f64>,
    /// How long the hypervisor ran something else in place of a core, in milliseconds, all cores together.
    #[serde(default)]
    pub steal_ms: Option<f64>,
    /// Plans, where there was a controller.
    pub plans: Option<Plans>,
    /// How it went on.
    pub series: Series,
}

/// What a controller did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plans {
    /// How often it planned.
    pub count: u64,
    /// How many plans moved shards.
    pub moving: u64,
    /// Of those that looked for moves, how many ended with their first attempt; `null` where the policy
    /// makes no attempts.
    pub first_attempt: Option<u64>,
    /// Of those that looked for moves.
    pub searched: Option<u64>,
    /// How long a plan took, in microseconds of this machine's time: the median.
    pub solve_us_p50: f64,
    /// All but one in a hundred.
    pub solve_us_p99: f64,
}

impl RecordedRun {
    /// The shares of packets for which latencies are kept.
    pub const SHARES: [f64; 18] = [
        0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999,
        0.9999, 1.0,
    ];

    /// The microseconds that a share of the packets did not exceed; `None` if that share is not kept, or no
    /// packet left.
    pub fn latency(&self, share: f64) -> Option<f64> {
        self.latency_us.iter().find(|(kept, _)| *kept == share).map(|(_, us)| *us)
    }

    /// What the busiest lane processed, as a share of what a lane can do.
    pub fn busiest_share(&self) -> f64 {
        if self.capacity > 0.0 { self.busiest_pps / self.capacity } else { 0.0 }
    }

    /// The share of the packets that left which was processed away from home.
    pub fn offloaded_share(&self) -> f64 {
        self.offloaded as f64 / self.delivered.max(1) as f64
    }

    /// The share of the packets that was dropped.
    pub fn drop_share(&self) -> f64 {
        self.dropped as f64 / self.packets.max(1) as f64
    }
}
