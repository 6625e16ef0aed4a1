//! What flows that left their lanes came to.

use std::fmt;

use rheostat_run::LaneSample;
use serde::{Deserialize, Serialize};

/// Flows that left their lanes for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloaded {
    /// Times that a flow left.
    pub flows: u64,
    /// Flows that are away now.
    pub away: u64,
    /// Packets sent to the lanes that their flows were with.
    pub packets: u64,
    /// Packets that came back, as they could be processed at home only.
    pub home: u64,
}

impl Offloaded {
    /// What the counters of all lanes come to, if any flow has left.
    pub(super) fn of(all: &LaneSample) -> Option<Offloaded> {
        (all.flows_offloaded > 0).then(|| Offloaded::counted(all))
    }

    /// The same, also where none has left.
    pub(super) fn counted(all: &LaneSample) -> Offloaded {
        Offloaded {
            flows: all.flows_offloaded,
            away: all.flows_away,
            packets: all.offloaded,
            home: all.refused,
        }
    }
}

impl fmt::Display for Offloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Offloaded { flows, away, packets, home } = self;
        write!(f, "{packets} packets of {flows} flows, {away} now away, {home} packets came back")
    }
}
