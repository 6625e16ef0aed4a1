//! The firewall as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::link;
use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FunctionFacts, FunctionSettings, Handed, Registration,
    RuleCounters, RuleList,
};
use rheostat_settings::findings::Findings;

use super::settings::{describe, keys, read, shadow};
use super::{Firewall, FirewallConfig};

/// The firewall.
pub const FIREWALL: Registration = Registration {
    name: "firewall",
    summary: "lets flows through that its rules allow",
    keys,
    read: Some(|table, devices, findings| Some(Arc::new(read(table, devices, findings)))),
    default: |_| Ok(Arc::new(FirewallConfig::default())),
};

impl FunctionSettings for FirewallConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts::default()
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let firewall = Firewall::new(self.clone())
            .limited_by(cx.errors.clone())
            .counting_after(cx.predecessor::<RuleCounters>());
        let handed: Option<Handed> = Some(firewall.rule_counters());
        let rules: Option<Arc<dyn RuleList>> = Some(firewall.rule_counters());
        Ok(Built { rules, handed, ..Built::of(link(firewall).listing::<Firewall>()) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::describe(self, f)
    }

    fn check(&self, findings: &mut Findings) {
        shadow::check(self, findings);
    }
}
