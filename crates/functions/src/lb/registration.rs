//! The load balancer as configurations know it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::registry::{FunctionFacts, FunctionSettings, Missing, Registration, is_same};

use super::LbConfig;
use super::settings::{describe, read};

/// The load balancer.
pub const LB: Registration = Registration {
    name: "lb",
    summary: "spreads flows over the backends of services",
    read: Some(|table, devices, findings| Some(Arc::new(read(table, devices, findings)))),
    default: |_| {
        let message = "the load balancer has no service";
        let help = "add its services; configs/lb.toml is an example".to_owned();
        Err(Missing { noun: "load balancer", message, help })
    },
};

impl FunctionSettings for LbConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts {
            second_key: true,
            served: self.services.iter().map(|service| service.vip).collect(),
            ..FunctionFacts::default()
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}
