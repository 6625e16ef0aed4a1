//! A function that is registered without settings, and a value that is served without being an application. The compiler says:
//! - `Quota` cannot be built from a configuration
//! - implement `FromSettings` for it
//! - does not make an application
//! - write a function without arguments, or of settings declared by `rheostat::settings!`, that returns an `Application`

mod quota;

use quota::Quota;

fn main() -> std::process::ExitCode {
    rheostat::App::new().function::<Quota>("quota").application("quota", || Quota).main()
}
