//! The command `rheo`.

use std::process::ExitCode;

fn main() -> ExitCode {
    rheostat_app::main()
}
