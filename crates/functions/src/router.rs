//! The router: what every chain is whose devices have addresses, as a name for a chain that does nothing else.

use std::fmt;
use std::sync::Arc;

use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FlowPlace, FunctionFacts, FunctionSettings, Registration,
};

/// The router.
pub const ROUTER: Registration = Registration {
    name: "router",
    summary: "routes between devices with addresses",
    keys: Vec::new,
    read: None,
    default: |_| Ok(Arc::new(RouterConfig)),
};

/// The settings of a router: it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterConfig;

impl FunctionSettings for RouterConfig {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts {
            flows: FlowPlace::Nowhere,
            without_sides: true,
            needs_addresses: true,
            ..FunctionFacts::default()
        }
    }

    fn build(&self, _: &BuildCx<'_>) -> Result<Built, BuildError> {
        Ok(Built::default())
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "routes between the devices")
    }
}
