//! The bridge as configurations know it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FlowPlace, FunctionFacts, FunctionSettings, Handed,
    Registration,
};
use rheostat_nf::shared_link;

use super::settings::{describe, keys, ports, read};
use super::{Bridge, BridgeConfig};
use crate::fixed_keys::{SIZED, fixed_keys};

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
        let function = match cx.predecessor::<Bridge>() {
            Some(running) => Bridge::next(self.clone(), running),
            None => Bridge::new(self.clone(), cx.objects),
        };
        let handed: Option<Handed> = Some(Arc::new(function.clone()));
        Ok(Built { handed, ..Built::of(shared_link(function, cx.objects)) })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let Some(next) = next.downcast_ref::<BridgeConfig>() else { return Vec::new() };
        fixed_keys([("stations", self.stations != next.stations, SIZED)])
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}
