//! Chains that are compiled as a whole, for functions that are often run together.

use rheostat_state::StateLayout;

use crate::any_chain::AnyChain;
use crate::chain::dynamic::ChainError;
use crate::chain::{Chain2, Shared, Stage};
use crate::function::{NetworkFunction, NoShardState};
use crate::link::Link;

/// A chain that is compiled as a whole. It is built of the functions it was compiled for, in their order; others are given back.
pub type StaticChain =
    fn(Vec<Box<dyn Link>>) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>>;

/// The chain of an `F` alone, with state per flow and per shard.
///
/// # Errors
/// The functions again, when they are not this one.
pub fn alone<F: NetworkFunction>(
    links: Vec<Box<dyn Link>>,
) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>> {
    let function = take_one(links)?.into_function::<F>().map_err(|link| vec![link])?;
    let mut layout = StateLayout::new();
    let stage = Stage::new(function, &mut layout);
    Ok(stage.map(|stage| AnyChain::new(stage, layout)).map_err(ChainError::from))
}

/// The chain of an `F` alone, on shared objects.
///
/// # Errors
/// The functions again, when they are not this one.
pub fn alone_on_objects<F: NetworkFunction<Shard: NoShardState>>(
    links: Vec<Box<dyn Link>>,
) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>>
where
    F::Flow: Clone,
{
    let link = take_one(links)?;
    let Some(objects) = link.objects().cloned() else { return Err(vec![link]) };
    let function = link.into_function::<F>().map_err(|link| vec![link])?;
    let mut layout = StateLayout::new();
    let stage = Shared::new(function, &objects, &mut layout);
    Ok(stage.map(|stage| AnyChain::new(stage, layout)).map_err(ChainError::from))
}

/// The chain of an `A` and a `B` behind it, with state per flow and per shard.
///
/// # Errors
/// The functions again, when they are not these.
pub fn pair<A: NetworkFunction, B: NetworkFunction>(
    mut links: Vec<Box<dyn Link>>,
) -> Result<Result<AnyChain, ChainError>, Vec<Box<dyn Link>>> {
    if links.len() != 2 || !links[0].is::<A>() || !links[1].is::<B>() {
        return Err(links);
    }
    let (second, first) = (links.pop(), links.pop());
    let first = first.and_then(|link| link.into_function::<A>().ok()).expect("compared");
    let second = second.and_then(|link| link.into_function::<B>().ok()).expect("compared");
    let mut layout = StateLayout::new();
    let make = || Ok(Chain2(Stage::new(first, &mut layout)?, Stage::new(second, &mut layout)?));
    let chain = make();
    Ok(chain.map(|chain| AnyChain::new(chain, layout)))
}

/// The only function of a chain.
fn take_one(mut links: Vec<Box<dyn Link>>) -> Result<Box<dyn Link>, Vec<Box<dyn Link>>> {
    match (links.pop(), links.is_empty()) {
        (Some(link), true) => Ok(link),
        (last, _) => {
            links.extend(last);
            Err(links)
        }
    }
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
