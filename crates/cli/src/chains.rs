//! The chains that a configuration can name. Each is compiled as a whole, so that packets pass it
//! without virtual calls.

use rheostat_control::config::FunctionConfig;
use rheostat_nf::function::Firewall;
use rheostat_nf::{Chain, Empty, Stage};
use rheostat_state::StateLayout;

use crate::failure::Failure;

/// What is to be done with a chain once its type is known.
pub(crate) trait WithChain {
    type Output;

    fn with<C: Chain>(self, chain: C, layout: StateLayout) -> Result<Self::Output, Failure>;
}

/// Builds the chain of these functions, which the configuration has checked, and passes it on.
pub(crate) fn build<W: WithChain>(
    functions: &[FunctionConfig],
    work: W,
) -> Result<W::Output, Failure> {
    let mut layout = StateLayout::new();
    match functions {
        [] => work.with(Empty, layout),
        [FunctionConfig::Firewall(firewall)] => {
            let chain = Stage::new(Firewall::new(firewall.clone()), &mut layout)?;
            work.with(chain, layout)
        }
        _ => unreachable!("the configuration knows the chains there are"),
    }
}
