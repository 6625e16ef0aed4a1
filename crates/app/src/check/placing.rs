//! Whether each device can place packets by the fields of the chain's packet set.

use std::fmt;

use rheostat_control::Config;
use rheostat_control::config::device::DeviceConfig;
use rheostat_steer::{Alternative, HashCapabilities, Infeasible, PacketSet};
use serde_json::{Value, json};

/// What hashes the packets of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HashedBy {
    /// The simulated interface, or the reader of a capture.
    Software,
    /// The program that a live interface is given.
    Program,
    /// The interface by itself, as most do.
    Hardware,
}

/// How one device places packets.
#[derive(Clone, Debug)]
pub(super) struct Placing<'a> {
    device: &'a DeviceConfig,
    by: PacketSet,
    hashed_by: HashedBy,
    feasible: Result<(), Infeasible>,
}

impl HashedBy {
    fn of(device: &DeviceConfig) -> HashedBy {
        if device.facts().is_live { HashedBy::Program } else { HashedBy::Software }
    }

    fn capabilities(self) -> HashCapabilities {
        match self {
            HashedBy::Software => HashCapabilities::software(),
            HashedBy::Program => HashCapabilities::program(),
            HashedBy::Hardware => HashCapabilities::common_hardware(),
        }
    }
}

impl fmt::Display for HashedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HashedBy::Software => "software",
            HashedBy::Program => "program",
            HashedBy::Hardware => "hardware",
        })
    }
}

impl Placing<'_> {
    /// How each device of `config` places packets by `set`; with `hardware`, if it had to do so by itself.
    pub(super) fn of<'a>(config: &'a Config, set: &PacketSet, hardware: bool) -> Vec<Placing<'a>> {
        let placing = |device: &'a DeviceConfig| {
            let hashed_by = if hardware { HashedBy::Hardware } else { HashedBy::of(device) };
            let feasible = set.feasible(&hashed_by.capabilities());
            Placing { device, by: *set, hashed_by, feasible }
        };
        config.devices.iter().map(placing).collect()
    }

    /// Whether the device can do so.
    pub(super) fn is_feasible(&self) -> bool {
        self.feasible.is_ok()
    }

    /// The outcome as a row of the report.
    pub(super) fn to_json(&self) -> Value {
        let error = self.feasible.as_ref().err();
        let alternatives: Vec<_> = error.map(Infeasible::alternatives).unwrap_or_default();
        json!({
            "device": self.device.name,
            "fields": self.by.seen_by(&self.device.orientation),
            "hashed_by": self.hashed_by.to_string(),
            "feasible": self.is_feasible(),
            "reason": error.map(ToString::to_string),
            "cannot_hash": error.map(Infeasible::cannot_hash).unwrap_or_default(),
            "cannot_leave_out": error.map(Infeasible::cannot_leave_out).unwrap_or_default(),
            "alternatives": alternatives.iter().map(Alternative::to_string).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Placing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.device.name;
        match &self.feasible {
            Ok(()) if self.by.is_empty() => {
                write!(f, "  {name}: spread by whatever packets have, hashed by {}", self.hashed_by)
            }
            Ok(()) => {
                let fields = self.by.seen_by(&self.device.orientation);
                write!(f, "  {name}: {fields}, hashed by {}", self.hashed_by)
            }
            Err(infeasible) => {
                write!(f, "error: device `{name}`: {infeasible}; instead:")?;
                let alternatives = infeasible.alternatives();
                alternatives.iter().try_for_each(|alternative| write!(f, "\n  - {alternative}"))
            }
        }
    }
}
