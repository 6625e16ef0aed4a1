//! The NAT as configurations know it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::registry::{
    FlowPlace, FunctionFacts, FunctionSettings, Missing, Registration, is_same,
};

use super::settings::{EXAMPLE, NatFunction, describe, read};

/// The NAT.
pub const NAT: Registration = Registration {
    name: "nat",
    summary: "translates addresses and ports",
    read: Some(|table, devices, findings| Some(Arc::new(read(table, devices, findings)?))),
    default: |_| {
        let message = "the NAT has no external address";
        Err(Missing { noun: "NAT", message, help: format!("add\n{EXAMPLE}") })
    },
};

impl FunctionSettings for NatFunction {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts {
            flows: match self.sharing {
                Some(_) => FlowPlace::Objects,
                None => FlowPlace::Shards,
            },
            second_key: true,
            translated: Some(self.nat.inside.clone()),
            ports: Some(self.nat.ports.clone()),
            served: self.nat.external.iter().map(|address| (*address).into()).collect(),
            ..FunctionFacts::default()
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}
