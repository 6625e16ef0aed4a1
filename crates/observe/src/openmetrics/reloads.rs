//! Families of the configuration and its reloads.

use super::family::{Family, Kind};
use crate::control::ReloadResult;

pub(super) const FAMILIES: &[Family] = &[
    Family::new(
        "rheo_reloads",
        Kind::Count,
        &["result"],
        "Reloads of the configuration; `refused` ones have changed nothing",
        |run, to| {
            if let Some(config) = &run.status.config {
                for result in ReloadResult::ALL {
                    let count = config.reloads.get(&result).copied().unwrap_or_default();
                    to.count([&result], count);
                }
            }
        },
    ),
    Family::new(
        "rheo_config_last_reload_successful",
        Kind::Gauge,
        &[],
        "1 if the last reload is in force, and before the first one; 0 if it was refused",
        |run, to| {
            if let Some(config) = &run.status.config {
                to.count([], config.is_current().into());
            }
        },
    ),
    Family::new(
        "rheo_config_last_reload_timestamp_seconds",
        Kind::Gauge,
        &[],
        "When the last reload ended, in seconds since 1970 (UTC)",
        |run, to| {
            for last in run.status.config.iter().filter_map(|config| config.last.as_ref()) {
                to.real([], last.time);
            }
        },
    ),
    Family::new(
        "rheo_config_generation",
        Kind::Gauge,
        &[],
        "How many times the configuration has changed since the start",
        |run, to| {
            if let Some(config) = &run.status.config {
                to.count([], config.generation);
            }
        },
    ),
];
