//! The policer as configurations know it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FlowPlace, FunctionFacts, FunctionSettings, Handed,
    Missing, Registration, RuleList,
};
use rheostat_nf::{NetworkFunction, link, shared_link};
use rheostat_settings::quantity::Count;
use rheostat_steer::Whose;

use super::settings::{EXAMPLE, describe, keys, read};
use super::{Classes, Policer, PolicerConfig, PolicerInShards, SharedPolicer};
use crate::fixed_keys::{SIZED, fixed_keys};

/// The policer.
pub const POLICER: Registration = Registration {
    name: "policer",
    summary: "limits the rate of each subscriber",
    keys,
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)?))),
    default: |_| {
        let message = "the policer has no rate";
        Err(Missing { noun: "policer", message, help: format!("add\n{EXAMPLE}") })
    },
};

impl FunctionSettings for PolicerConfig {
    fn facts(&self) -> FunctionFacts {
        facts(self, FlowPlace::Shards)
    }

    /// A flow of the policer is many flows of a function that knows single ones, so that it keeps its buckets elsewhere: in the
    /// shard that packets are placed in by the metered address, or shared by all lanes, if others cannot be placed so.
    fn among(&self, others: &[&FunctionFacts]) -> Option<Arc<dyn FunctionSettings>> {
        if !others.iter().any(|facts| facts.knows_flows()) {
            return None;
        }
        let own = Policer::new(self.clone()).spec().packet_set;
        let common = others.iter().fold(own, |common, facts| common.common(&facts.steering()));
        Some(Arc::new(PolicerInChain { policer: self.clone(), is_shared: !common.can_place() }))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let mut config = self.clone();
        if let Some(running) = cx.predecessor::<Classes>() {
            config.classes = config.classes.behind(running);
        }
        let handed: Option<Handed> = Some(Arc::new(config.classes.clone()));
        Ok(Built {
            handed,
            rules: rules(self),
            ..Built::of(link(Policer::new(config)).listing::<Policer>())
        })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        next.downcast_ref().map_or_else(Vec::new, |next| fixed(self, next, false))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}

/// The settings of a policer in a chain with functions that know single flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicerInChain {
    /// Those of the policer.
    pub policer: PolicerConfig,
    /// Whether its buckets are in objects that all lanes share, in place of shards.
    pub is_shared: bool,
}

impl FunctionSettings for PolicerInChain {
    fn facts(&self) -> FunctionFacts {
        facts(&self.policer, if self.is_shared { FlowPlace::Objects } else { FlowPlace::Shards })
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let config = self.policer.clone();
        if !self.is_shared {
            let link = link(PolicerInShards::new(config));
            return Ok(Built { rules: rules(&self.policer), ..Built::of(link) });
        }
        let policer = match cx.predecessor::<SharedPolicer>() {
            Some(running) => SharedPolicer::next(config, running),
            None => SharedPolicer::new(config, cx.objects),
        };
        let handed: Option<Handed> = Some(Arc::new(policer.clone()));
        Ok(Built {
            handed,
            rules: rules(&self.policer),
            ..Built::of(shared_link(policer, cx.objects))
        })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let Some(next) = next.downcast_ref::<PolicerInChain>() else { return Vec::new() };
        fixed(&self.policer, &next.policer, self.is_shared)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(&self.policer, f)?;
        let subscribers = Count(self.policer.subscribers as u64);
        let place = if self.is_shared { "shared by all lanes" } else { "in shards" };
        writeln!(f, "          buckets {place}, for {subscribers} addresses at a time")
    }
}

fn rules(config: &PolicerConfig) -> Option<Arc<dyn RuleList>> {
    Some(Arc::new(config.clone()))
}

fn fixed(running: &PolicerConfig, next: &PolicerConfig, is_shared: bool) -> Vec<FixedKey> {
    const NAMED: &str = "buckets are those of other addresses";
    let (a, b) = (running.subject, next.subject);
    fixed_keys([
        ("per", a.whose != b.whose, NAMED),
        ("ipv4_prefix", a.v4 != b.v4, NAMED),
        ("ipv6_prefix", a.v6 != b.v6, NAMED),
        ("subscribers", is_shared && running.subscribers != next.subscribers, SIZED),
    ])
}

fn facts(config: &PolicerConfig, flows: FlowPlace) -> FunctionFacts {
    FunctionFacts {
        flows,
        steering: Some(Policer::new(config.clone()).spec().packet_set),
        by_inner_address: config.subject.whose != Whose::Outer,
        ..FunctionFacts::default()
    }
}
