//! The NAT as configurations know it.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FlowPlace, FunctionFacts, FunctionSettings, Handed,
    Lines, Missing, PortShares, Registration, RuleList,
};
use rheostat_nf::{link, shared_link};

use rheostat_steer::PacketSet;

use super::settings::{EXAMPLE, NatFunction, describe, fixed, keys, read};
use super::{Mapping, MappingLog, Nat, PortUsage, RunningNat, RunningSharedNat, SharedNat};

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

/// What a NAT goes on with that takes the place of another, and where that one logs.
#[derive(Debug)]
struct HandedNat {
    nat: RunningNat,
    log: Option<(PathBuf, MappingLog)>,
}

impl HandedNat {
    /// The log to this file.
    fn log_to(&self, path: &Path) -> Option<&MappingLog> {
        self.log.as_ref().filter(|(known, _)| known == path).map(|(_, log)| log)
    }
}

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
            let nat = match cx.predecessor::<RunningSharedNat>() {
                Some(running) => SharedNat::next(config, sharing, running)?,
                None => SharedNat::new(config, sharing, cx.objects, &mut cx.rng())?,
            };
            let handed: Option<Handed> = Some(Arc::new(nat.running()));
            let link = shared_link(nat.limited_by(cx.errors.clone()), cx.objects);
            return Ok(Built { handed, ..Built::of(link) });
        }
        if !cx.runs {
            let nat = Nat::new(config, None)?.limited_by(cx.errors.clone());
            return Ok(Built::of(link(nat).listing::<Nat>()));
        }
        let running = cx.predecessor::<HandedNat>();
        let log = self.log.as_ref().map(|path| {
            let same = running.and_then(|running| running.log_to(path));
            (path.clone(), same.cloned().unwrap_or_default())
        });
        let own = log.as_ref().map(|(_, log)| log.clone());
        let nat = match running {
            Some(running) => Nat::next(config, own, &running.nat)?,
            None => Nat::new(config.clone(), own)?.with_usage(PortUsage::new(&config)),
        };
        let nat = nat.limited_by(cx.errors.clone());
        let handed = HandedNat { nat: nat.running(), log: log.clone() };
        let is_new = |(path, _): &(PathBuf, MappingLog)| {
            running.is_none_or(|running| running.log_to(path).is_none())
        };
        let usage = nat.usage().cloned();
        let rules: Arc<dyn RuleList> = nat.forward_counters();
        Ok(Built {
            log: log.filter(is_new).map(|(path, log)| (path, Box::new(log) as Box<dyn Lines>)),
            ports: usage.map(|usage| Arc::new(usage) as Arc<dyn PortShares>),
            handed: Some(Arc::new(handed)),
            rules: Some(rules),
            ..Built::of(link(nat).listing::<Nat>())
        })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        next.downcast_ref().map_or_else(Vec::new, |next| fixed::keys(self, next))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}
