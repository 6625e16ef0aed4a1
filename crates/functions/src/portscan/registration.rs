//! The detector of port scans as configurations know it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FlowPlace, FunctionFacts, FunctionSettings, Handed,
    Registration,
};
use rheostat_nf::shared_link;

use super::settings::{describe, keys, read};
use super::{Portscan, PortscanConfig};
use crate::fixed_keys::{SIZED, fixed_keys};

/// The detector of port scans.
pub const PORTSCAN: Registration = Registration {
    name: "portscan",
    summary: "detects hosts that scan ports",
    keys,
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)))),
    default: |_| Ok(Arc::new(PortscanConfig::default())),
};

impl FunctionSettings for PortscanConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts { flows: FlowPlace::ObjectsAndShards, ..FunctionFacts::default() }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let function = match cx.predecessor::<Portscan>() {
            Some(running) => Portscan::next(self.clone(), running),
            None => Portscan::new(self.clone(), cx.objects),
        };
        let handed: Option<Handed> = Some(Arc::new(function.clone()));
        Ok(Built { handed, ..Built::of(shared_link(function, cx.objects).listing::<Portscan>()) })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let Some(next) = next.downcast_ref::<PortscanConfig>() else { return Vec::new() };
        fixed_keys([
            ("hosts", self.hosts != next.hosts, SIZED),
            ("pairs", self.pairs != next.pairs, SIZED),
        ])
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}
