//! The bridge as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FlowPlace, FunctionFacts, FunctionSettings, Registration,
};
use rheostat_nf::shared_link;

use super::settings::{describe, keys, ports, read};
use super::{Bridge, BridgeConfig};

/// The bridge.
pub const BRIDGE: Registration = Registration {
    name: "bridge",
    summary: "forwards frames between ports, by learned addresses",
    keys,
    read: Some(|table, devices, findings| Some(Arc::new(read(table, devices, findings)))),
    default: |devices| Ok(Arc::new(BridgeConfig::new(ports(devices)))),
};

impl FunctionSettings for BridgeConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts {
            flows: FlowPlace::Objects,
            without_sides: true,
            bridges: true,
            ..FunctionFacts::default()
        }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        Ok(Built::of(shared_link(Bridge::new(self.clone(), cx.objects), cx.objects)))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}
