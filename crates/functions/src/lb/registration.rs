//! The load balancer as configurations know it.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::link;
use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FunctionFacts, FunctionSettings, Handed, Missing,
    Registration, RuleList,
};

use rheostat_steer::PacketSet;

use super::settings::{describe, keys, read};
use super::{Lb, LbConfig, Mode, RunningLb};
use crate::fixed_keys::fixed_keys;

/// The load balancer.
pub const LB: Registration = Registration {
    name: "lb",
    summary: "spreads flows over the backends of services",
    keys,
    read: Some(|table, devices, findings| Some(Arc::new(read(table, devices, findings)))),
    default: |_| {
        let message = "the load balancer has no service";
        let help = "add its services; configs/lb.toml is an example".to_owned();
        Err(Missing { noun: "load balancer", message, help })
    },
};

impl FunctionSettings for LbConfig {
    fn facts(&self) -> FunctionFacts {
        let translates = self.services.iter().any(|service| service.mode == Mode::Nat);
        FunctionFacts {
            steering: translates.then(PacketSet::outer_endpoint),
            second_key: translates,
            served: self.services.iter().map(|service| service.vip).collect(),
            ..FunctionFacts::default()
        }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let lb = match cx.predecessor::<RunningLb>() {
            Some(running) => Lb::next(self.clone(), running)?,
            None => Lb::new(self.clone()),
        };
        let lb = lb.limited_by(cx.errors.clone());
        let control: Option<Arc<dyn Any + Send + Sync>> = Some(lb.board());
        let handed: Option<Handed> = Some(Arc::new(lb.running()));
        let rules: Option<Arc<dyn RuleList>> = Some(lb.board());
        Ok(Built { control, handed, rules, ..Built::of(link(lb).listing::<Lb>()) })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let Some(next) = next.downcast_ref::<LbConfig>() else { return Vec::new() };
        let translates =
            |config: &LbConfig| config.services.iter().any(|service| service.mode == Mode::Nat);
        let reason = "flows are named otherwise if a service translates addresses";
        fixed_keys([("service", translates(self) != translates(next), reason)])
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}
