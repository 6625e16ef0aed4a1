//! Neighbours of the network layer, as the control socket shows them.

use std::net::IpAddr;

use rheostat_base::Time;
use rheostat_ip::{KnownNeighbour, NeighbourState};
use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourLine {
    /// The device whose link it is on.
    pub device: String,
    /// Its address.
    pub address: IpAddr,
    /// Its link address, such as `02:00:00:00:00:01`; none before it has answered.
    pub mac: Option<String>,
    /// How sure it is that it is there.
    pub state: NeighbourWord,
    /// Seconds since its state was confirmed or changed, or since the last question; none for one that was configured.
    pub age: Option<f64>,
}

/// How sure it is that a neighbour is there (RFC 4861, section 7.3.2), by the words of `ip neighbour`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the states of RFC 4861")]
pub enum NeighbourWord {
    Incomplete,
    Reachable,
    Stale,
    Delay,
    Probe,
    Permanent,
}

impl NeighbourWord {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            NeighbourWord::Incomplete => "incomplete",
            NeighbourWord::Reachable => "reachable",
            NeighbourWord::Stale => "stale",
            NeighbourWord::Delay => "delay",
            NeighbourWord::Probe => "probe",
            NeighbourWord::Permanent => "permanent",
        }
    }
}

impl From<NeighbourState> for NeighbourWord {
    fn from(state: NeighbourState) -> NeighbourWord {
        match state {
            NeighbourState::Incomplete => NeighbourWord::Incomplete,
            NeighbourState::Reachable => NeighbourWord::Reachable,
            NeighbourState::Stale => NeighbourWord::Stale,
            NeighbourState::Delay => NeighbourWord::Delay,
            NeighbourState::Probe => NeighbourWord::Probe,
            NeighbourState::Permanent => NeighbourWord::Permanent,
        }
    }
}

impl NeighbourLine {
    /// A neighbour at a moment; `devices` are the names of the run's.
    pub fn of(known: &KnownNeighbour, devices: &[String], now: Time) -> NeighbourLine {
        let KnownNeighbour { device, address, state, mac, since } = *known;
        NeighbourLine {
            device: devices.get(device.index()).cloned().unwrap_or_else(|| device.to_string()),
            address,
            mac: mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":")),
            state: state.into(),
            age: since.map(|since| now.max(since).since(since).as_secs_f64()),
        }
    }
}

impl ListingRow for NeighbourLine {
    const COLUMNS: &'static [Column<NeighbourLine>] = &[
        Column::left(
            "address",
            |line| line.address.to_string(),
            |line| SortKey::address(line.address),
        ),
        Column::left("device", |line| line.device.clone(), |line| SortKey::text(&line.device)),
        Column::left(
            "mac",
            |line| line.mac.clone().unwrap_or_else(|| "-".to_owned()),
            |line| line.mac.as_deref().map_or_else(SortKey::none, SortKey::text),
        ),
        Column::left(
            "state",
            |line| line.state.name().to_owned(),
            |line| SortKey::text(line.state.name()),
        ),
        Column::right(
            "age",
            |line| line.age.map_or_else(|| "-".to_owned(), |age| format!("{age:.1}s")),
            |line| line.age.map_or_else(SortKey::none, SortKey::real),
        ),
    ];

    fn id(&self) -> SortKey {
        SortKey::address(self.address).and(SortKey::text(&self.device))
    }
}
