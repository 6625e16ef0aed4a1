//! The detector of port scans as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FlowPlace, FunctionFacts, FunctionSettings, Registration,
};
use rheostat_nf::shared_link;

use super::settings::{describe, keys, read};
use super::{Portscan, PortscanConfig};

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
        let link = shared_link(Portscan::new(self.clone(), cx.objects), cx.objects);
        Ok(Built::of(link.listing::<Portscan>()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}
