//! The detector of attacks with many flows as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FlowPlace, FunctionFacts, FunctionSettings, Registration, RuleList,
};
use rheostat_nf::shared_link;

use super::settings::{describe, keys, read};
use super::{AntiDdos, AntiDdosConfig};

/// The detector of attacks with many flows.
pub const ANTIDDOS: Registration = Registration {
    name: "antiddos",
    summary: "detects attacks with many flows",
    keys,
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)))),
    default: |_| Ok(Arc::new(AntiDdosConfig::default())),
};

impl FunctionSettings for AntiDdosConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts { flows: FlowPlace::ObjectsAndShards, ..FunctionFacts::default() }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let link = shared_link(AntiDdos::new(self.clone(), cx.objects), cx.objects);
        let rules: Option<Arc<dyn RuleList>> = Some(Arc::new(self.clone()));
        Ok(Built { rules, ..Built::of(link.listing::<AntiDdos>()) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}
