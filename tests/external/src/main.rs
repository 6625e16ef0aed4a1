//! A `rheo` with a function of its own, which limits the connections that each host opens, and a service of its own, which counts.

mod counter;
mod synlimit;

use std::process::ExitCode;

fn main() -> ExitCode {
    rheostat::App::new()
        .named(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        .shared_function::<synlimit::SynLimit>("synlimit")
        .application("counter", counter::Counter::new)
        .main()
}
