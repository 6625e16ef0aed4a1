//! The NAT as configurations know it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FlowPlace, FunctionFacts, FunctionSettings, Lines, Missing,
    Registration, RuleList,
};
use rheostat_nf::{link, shared_link};

use rheostat_steer::PacketSet;

use super::settings::{EXAMPLE, NatFunction, describe, keys, read};
use super::{Mapping, MappingLog, Nat, PortUsage, SharedNat};

/// The NAT.
pub const NAT: Registration = Registration {
    name: "nat",
    summary: "translates addresses and ports",
    keys,
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
            steering: Some(match self.nat.mapping {
                Mapping::EndpointIndependent => PacketSet::inner_endpoint(),
                Mapping::AddressAndPortDependent => PacketSet::five_tuple(),
            }),
            second_key: self.sharing.is_none(),
            translated: Some(self.nat.inside.clone()),
            ports: Some(self.nat.ports.clone()),
            served: self.nat.external.iter().map(|address| (*address).into()).collect(),
            ..FunctionFacts::default()
        }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let config = self.nat.clone();
        if let Some(sharing) = self.sharing {
            let nat = SharedNat::new(config, sharing, cx.objects, &mut cx.rng())?;
            return Ok(Built::of(shared_link(nat.limited_by(cx.errors.clone()), cx.objects)));
        }
        if !cx.runs {
            let nat = Nat::new(config, None)?.limited_by(cx.errors.clone());
            return Ok(Built::of(link(nat).listing::<Nat>()));
        }
        let log = self.log.as_ref().map(|path| (path.clone(), MappingLog::new()));
        let usage = PortUsage::new(&config);
        let nat = Nat::new(config, log.as_ref().map(|(_, log)| log.clone()))?;
        let nat = nat.limited_by(cx.errors.clone()).with_usage(usage.clone());
        let rules: Arc<dyn RuleList> = nat.forward_counters();
        Ok(Built {
            log: log.map(|(path, log)| (path, Box::new(log) as Box<dyn Lines>)),
            ports: Some(Arc::new(usage)),
            rules: Some(rules),
            ..Built::of(link(nat).listing::<Nat>())
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}
