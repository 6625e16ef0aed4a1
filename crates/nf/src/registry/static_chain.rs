//! Chains that are compiled as a whole, for functions that are often run together.

use rheostat_state::StateLayout;

use crate::any_chain::AnyChain;
use crate::chain::dynamic::ChainError;
use crate::chain::{Chain2, Mode, Owned};
use crate::function::NetworkFunction;
use crate::link::Link;

/// A chain that is compiled as a whole. It is built of the functions it was compiled for, in their order; others are given back.
pub type StaticChain =
    fn(Vec<Box<dyn Link>>) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>>;

/// The chain of an `F` alone, in this mode.
///
/// # Errors
/// The functions again, when they are not this one.
pub fn alone<F: NetworkFunction, M: Mode<F>>(
    mut links: Vec<Box<dyn Link>>,
) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>> {
    let link = match links.pop_if(|link| link.is::<F, M>()) {
        Some(link) if links.is_empty() => link,
        last => {
            links.extend(last);
            return Err(links);
        }
    };
    let mut layout = StateLayout::new();
    let stage = link.into_stage::<F, M>(&mut layout);
    Ok(stage.map(|stage| AnyChain::new(stage, layout)).map_err(ChainError::from))
}

/// The chain of an `A` and a `B` behind it, with state per flow and per shard.
///
/// # Errors
/// The functions again, when they are not these.
pub fn pair<A: NetworkFunction, B: NetworkFunction>(
    links: Vec<Box<dyn Link>>,
) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>> {
    let [first, second] = <[Box<dyn Link>; 2]>::try_from(links)?;
    if !first.is::<A, Owned>() || !second.is::<B, Owned>() {
        return Err(vec![first, second]);
    }
    let mut layout = StateLayout::new();
    let first = first.into_stage::<A, Owned>(&mut layout);
    let both =
        first.and_then(|first| Ok(Chain2(first, second.into_stage::<B, Owned>(&mut layout)?)));
    Ok(both.map(|chain| AnyChain::new(chain, layout)).map_err(ChainError::from))
}

/// The chain of these functions: the first of `known` that is theirs, otherwise one that is put together at run time.
///
/// # Errors
/// [`ChainError`] when these functions do not make a chain together.
pub fn chain_of(
    mut links: Vec<Box<dyn Link>>,
    known: &[StaticChain],
) -> Result<AnyChain, ChainError> {
    for build in known {
        match build(links) {
            Ok(chain) => return chain,
            Err(others) => links = others,
        }
    }
    AnyChain::of(links)
}
