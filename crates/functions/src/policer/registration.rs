//! The policer as configurations know it.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FlowPlace, FunctionFacts, FunctionSettings, Missing, Registration,
    is_same,
};
use rheostat_nf::{link, shared_link};
use rheostat_settings::quantity::Count;
use rheostat_steer::Whose;

use super::settings::{EXAMPLE, describe, read};
use super::{Policer, PolicerConfig, SharedPolicer};

/// The policer.
pub const POLICER: Registration = Registration {
    name: "policer",
    summary: "limits the rate of each subscriber",
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

    /// A flow of the policer is many flows of a function that knows single ones.
    fn among(&self, others: &[&FunctionFacts]) -> Option<Arc<dyn FunctionSettings>> {
        let is_shared = others.iter().any(|facts| facts.knows_flows());
        is_shared.then(|| Arc::new(SharedPolicerConfig(self.clone())) as Arc<dyn FunctionSettings>)
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        Ok(Built::of(link(Policer::new(self.clone()))))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}

/// The settings of a policer whose buckets are in objects that all lanes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPolicerConfig(pub PolicerConfig);

impl FunctionSettings for SharedPolicerConfig {
    fn facts(&self) -> FunctionFacts {
        facts(&self.0, FlowPlace::Objects)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let policer = SharedPolicer::new(self.0.clone(), cx.objects);
        Ok(Built::of(shared_link(policer, cx.objects)))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(&self.0, f)?;
        let subscribers = Count(self.0.subscribers as u64);
        writeln!(f, "          buckets shared by all lanes, for {subscribers} addresses at a time")
    }

    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        is_same(self, other)
    }
}

fn facts(config: &PolicerConfig, flows: FlowPlace) -> FunctionFacts {
    let by_inner_address = config.subject.whose != Whose::Outer;
    FunctionFacts { flows, by_inner_address, ..FunctionFacts::default() }
}
