//! The command `rheo`.

fn main() {}
