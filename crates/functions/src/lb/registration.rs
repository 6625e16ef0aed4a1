//! The load balancer as configurations know it.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::link;
use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FunctionFacts, FunctionSettings, Missing, Registration, RuleList,
};

use rheostat_steer::PacketSet;

use super::settings::{describe, keys, read};
use super::{Lb, LbConfig, Mode};

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
        let lb = Lb::new(self.clone()).limited_by(cx.errors.clone());
        let control: Option<Arc<dyn Any + Send + Sync>> = Some(lb.board());
        let rules: Option<Arc<dyn RuleList>> = Some(lb.board());
        Ok(Built { control, rules, ..Built::of(link(lb).listing::<Lb>()) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}
