//! The detector of attacks with many flows as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{FlowPlace, FunctionFacts, FunctionSettings, Registration, is_same};

use super::AntiDdosConfig;
use super::settings::{describe, read};

/// The detector of attacks with many flows.
pub const ANTIDDOS: Registration = Registration {
    name: "antiddos",
    summary: "detects attacks with many flows",
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)))),
    default: |_| Ok(Arc::new(AntiDdosConfig::default())),
};

impl FunctionSettings for AntiDdosConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts { flows: FlowPlace::ObjectsAndShards, ..FunctionFacts::default() }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}
