//! A program that runs functions and services: what is registered in it, which its commands take by reference.

use rheostat_control::Registry;
use rheostat_nf::registry::Registration;

/// A program that runs functions and services.
#[derive(Clone, Debug)]
pub struct App {
    /// What configurations and flags can name.
    pub(crate) registry: Registry,
}

impl App {
    /// The program with everything that comes with rheostat.
    pub fn new() -> App {
        App { registry: Registry::new() }.functions(rheostat_functions::ALL)
    }

    /// Registers functions, which configurations can name from then on.
    #[must_use]
    pub fn functions(mut self, functions: &[Registration]) -> App {
        self.registry = self.registry.with_functions(functions);
        self
    }
}

impl Default for App {
    fn default() -> App {
        App::new()
    }
}
