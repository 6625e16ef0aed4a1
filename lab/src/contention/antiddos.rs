//! The paper's Anti-DDoS under attack (NFOS, section 4.8 and listing 2).

use std::time::Duration;

use rheostat_state::bytemuck::{Pod, Zeroable};
use rheostat_state::object::{Distributed, Recipe};
use rheostat_state::txn::{Objects, Outcome, Txn};

use super::Pattern;
use super::pattern::{SEED, drawn};

/// Of so many packets, one opens a flow and one ends it: an attack with flows of a packet or two.
const PACKETS_PER_FLOW: u64 = 2;

/// Counts flows, and those of one packet, and reads both when a flow begins.
#[derive(Debug)]
pub struct AntiDdos {
    objects: Objects,
    counters: Distributed<AntiddosCounters>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
struct AntiddosCounters {
    flows: i64,
    one_packet: i64,
}

impl AntiddosCounters {
    fn add(&mut self, other: &AntiddosCounters) {
        self.flows += other.flows;
        self.one_packet += other.one_packet;
    }

    /// Four of five flows have a single packet.
    fn is_attack(&self) -> bool {
        5 * self.one_packet > 4 * self.flows
    }
}

impl AntiDdos {
    /// Counters that may be read `staleness` late.
    pub fn new(lanes: usize, staleness: Duration) -> AntiDdos {
        let objects = Objects::seeded(lanes, SEED);
        let none = AntiddosCounters::default();
        let counters =
            Distributed::new(&objects, "antiddos.counters", none, AntiddosCounters::add, staleness);
        objects.set_by(counters.id(), Recipe::RaiseStaleness, "staleness");
        AntiDdos { objects, counters }
    }

    /// The first packet of a flow: the flow is counted, and then it is looked whether there is an attack.
    fn first(&self, txn: &mut Txn) -> Outcome<bool> {
        self.counters.update(txn, |counters| {
            counters.flows += 1;
            counters.one_packet += 1;
        })?;
        Ok(self.counters.read(txn)?.is_attack())
    }

    /// The end of a flow of one packet.
    fn expired(&self, txn: &mut Txn) -> Outcome<()> {
        self.counters.update(txn, |counters| {
            counters.flows -= 1;
            counters.one_packet -= 1;
        })
    }
}

impl Pattern for AntiDdos {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(250)
    }

    fn warm_up(&self) -> u64 {
        1_000
    }

    fn packet(&self, txn: &mut Txn, number: u64) -> Outcome<()> {
        if drawn(txn, number).is_multiple_of(PACKETS_PER_FLOW) {
            std::hint::black_box(self.first(txn)?);
            self.expired(txn)?;
        }
        Ok(())
    }
}
