//! Everything that comes with rheostat, for configurations to name.

use rheostat_control::Registry;

pub(crate) fn all() -> Registry {
    Registry::new()
        .with_functions(rheostat_functions::ALL)
        .with_applications(rheostat_serve::registry::applications())
}
