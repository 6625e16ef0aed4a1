//! The monitor as configurations know it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::registry::{FunctionFacts, FunctionSettings, Registration, is_same};

use super::settings::{MonitorFunction, describe, read};

/// The monitor.
pub const MONITOR: Registration = Registration {
    name: "monitor",
    summary: "reports flows, and the hosts with the most traffic",
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)))),
    default: |_| Ok(Arc::new(MonitorFunction::default())),
};

impl FunctionSettings for MonitorFunction {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts { large_state: true, ..FunctionFacts::default() }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}
