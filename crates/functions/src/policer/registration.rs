//! The policer as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{FunctionFacts, FunctionSettings, Missing, Registration, is_same};

use super::PolicerConfig;
use super::settings::{EXAMPLE, describe, read};

/// The policer.
pub const POLICER: Registration = Registration {
    name: "policer",
    summary: "limits the rate of each subscriber",
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)?))),
    default: |_| {
        let message = "the policer has no rate";
        Err(Missing { noun: "policer", message, help: format!("add\n{EXAMPLE}") })
    },
};

impl FunctionSettings for PolicerConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts::default()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}
