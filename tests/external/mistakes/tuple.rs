//! A tuple in place of a chain. The compiler says:
//! - is not a chain
//! - a tuple is no chain: `Chain2(first, second)` joins two chains, `AnyChain::of(vec![link(a), link(b)])?` any functions

mod quota;

use quota::Quota;
use rheostat::{Harness, Stage, StateLayout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut layout = StateLayout::new();
    let chain = (Stage::new(Quota, &mut layout)?, Stage::new(Quota, &mut layout)?);
    let harness = Harness::new(chain, layout);
    drop(harness);
    Ok(())
}
