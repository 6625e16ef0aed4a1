//! The detector of attacks with many flows as configurations know it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FlowPlace, FunctionFacts, FunctionSettings, Handed,
    Registration, RuleList,
};
use rheostat_nf::shared_link;

use super::settings::{describe, keys, read};
use super::{AntiDdos, AntiDdosConfig};
use crate::fixed_keys::fixed_keys;

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
        let function = match cx.predecessor::<AntiDdos>() {
            Some(running) => AntiDdos::next(self.clone(), running),
            None => AntiDdos::new(self.clone(), cx.objects),
        };
        let handed: Option<Handed> = Some(Arc::new(function.clone()));
        let rules: Option<Arc<dyn RuleList>> = Some(Arc::new(self.clone()));
        Ok(Built {
            handed,
            rules,
            ..Built::of(shared_link(function, cx.objects).listing::<AntiDdos>())
        })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let Some(next) = next.downcast_ref::<AntiDdosConfig>() else { return Vec::new() };
        fixed_keys([("udp", self.udp != next.udp, "flows are named by the protocols that count")])
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}
