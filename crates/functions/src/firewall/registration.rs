//! The firewall as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{FunctionFacts, FunctionSettings, Registration, is_same};
use rheostat_settings::findings::Findings;

use super::FirewallConfig;
use super::settings::{describe, read, shadow};

/// The firewall.
pub const FIREWALL: Registration = Registration {
    name: "firewall",
    summary: "lets flows through that its rules allow",
    read: Some(|table, devices, findings| Some(Arc::new(read(table, devices, findings)))),
    default: |_| Ok(Arc::new(FirewallConfig::default())),
};

impl FunctionSettings for FirewallConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts::default()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::describe(self, f)
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }

    fn check(&self, findings: &mut Findings) {
        shadow::check(self, findings);
    }
}
