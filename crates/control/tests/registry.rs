//! All functions there are, for configurations to name.

use rheostat_control::Registry;

pub(crate) fn all() -> Registry {
    Registry::new().with_functions(rheostat_functions::ALL)
}
