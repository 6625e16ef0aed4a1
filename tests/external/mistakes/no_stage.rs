//! A function in place of a chain. The compiler says:
//! - `Quota` is not a chain
//! - a function becomes a chain by `Stage::new(function, &mut layout)?`

mod quota;

use quota::Quota;
use rheostat::{Harness, StateLayout};

fn main() {
    let harness = Harness::new(Quota, StateLayout::new());
    drop(harness);
}
