//! State per shard in functions on shared objects, by each way to make one. The compiler says:
//! - a function on shared objects keeps nothing per shard, but this one has `type Shard = u64`
//! - write `type Shard = ();` and keep the state in an object that all lanes share

mod quota;

use quota::Quota;
use rheostat::{Objects, Stage, StateLayout, shared_link};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (objects, mut layout) = (Objects::new(1), StateLayout::new());
    drop(Stage::on_objects(Quota, &objects, &mut layout)?);
    drop(shared_link(Quota, &objects));
    Ok(())
}
