//! Backends of a load balancer, as the control socket shows them.

use std::net::IpAddr;

use rheostat_functions::lb::{BackendUse, CheckKind, HealthBoard, HealthOrigin};
use rheostat_packet::wire::protocol::ProtocolName;
use serde::{Deserialize, Serialize};

use super::HealthWord;
use super::listing::{Column, ListingRow, SortKey};

/// A backend during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendLine {
    /// The place among all backends, counted from 1: in the order of the configuration.
    pub place: u64,
    /// The service it belongs to.
    pub service: String,
    /// Its address, and its port where it has its own.
    pub backend: String,
    /// The service's address.
    pub vip: IpAddr,
    /// The service's IP protocol.
    pub protocol: u8,
    /// The health in force.
    pub health: HealthWord,
    /// The origin of its health.
    pub set_by: OriginWord,
    /// Its share of new flows, compared with the other backends' weights.
    pub weight: u32,
    /// Flows that it got since the start.
    pub flows: u64,
    /// How it is checked; none where it is not.
    pub check: Option<String>,
}

/// The origin of a backend's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginWord {
    /// The configuration.
    Configuration,
    /// A command.
    Operator,
    /// Its checks, which find it dead.
    Check,
}

impl OriginWord {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            OriginWord::Configuration => "configuration",
            OriginWord::Operator => "operator",
            OriginWord::Check => "check",
        }
    }
}

impl BackendLine {
    /// The backends that a board knows.
    pub fn of(board: &HealthBoard) -> Vec<BackendLine> {
        let (config, uses) = board.uses();
        let line = |(place, used): (u64, BackendUse)| {
            let service = &config.services[used.service];
            let backend = &service.backends[used.backend];
            BackendLine {
                place,
                service: service.name.clone(),
                backend: backend.to_string(),
                vip: service.vip,
                protocol: service.protocol,
                health: used.health.into(),
                set_by: match used.origin {
                    HealthOrigin::Configuration => OriginWord::Configuration,
                    HealthOrigin::Operator => OriginWord::Operator,
                    HealthOrigin::Check => OriginWord::Check,
                },
                weight: backend.weight,
                flows: used.count.hits,
                check: service.check.as_ref().map(|check| {
                    let kind = match check.kind {
                        CheckKind::Icmp => "ICMP",
                        CheckKind::Tcp => "TCP",
                        CheckKind::Http(_) => "HTTP",
                    };
                    format!("{kind} every {}s", check.interval.as_secs_f64())
                }),
            }
        };
        (1..).zip(uses).map(line).collect()
    }
}

impl ListingRow for BackendLine {
    const COLUMNS: &'static [Column<BackendLine>] = &[
        Column::hidden("place", |line| SortKey::number(line.place)),
        Column::left("service", |line| line.service.clone(), |line| SortKey::text(&line.service)),
        Column::left("backend", |line| line.backend.clone(), |line| SortKey::text(&line.backend)),
        Column::left("vip", |line| line.vip.to_string(), |line| SortKey::address(line.vip)),
        Column::left(
            "protocol",
            |line| ProtocolName(line.protocol).to_string(),
            |line| SortKey::number(line.protocol),
        ),
        Column::left(
            "health",
            |line| line.health.to_string(),
            |line| SortKey::text(&line.health.to_string()),
        ),
        Column::left(
            "set_by",
            |line| line.set_by.name().to_owned(),
            |line| SortKey::text(line.set_by.name()),
        ),
        Column::right(
            "weight",
            |line| line.weight.to_string(),
            |line| SortKey::number(line.weight),
        ),
        Column::right("flows", |line| line.flows.to_string(), |line| SortKey::number(line.flows)),
        Column::left(
            "check",
            |line| line.check.clone().unwrap_or_else(|| "-".to_owned()),
            |line| line.check.as_deref().map_or_else(SortKey::none, SortKey::text),
        ),
    ];

    fn id(&self) -> SortKey {
        SortKey::number(self.place)
    }
}
