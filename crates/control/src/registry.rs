//! What configurations can name.

use rheostat_nf::registry::Registration;

/// The kinds of things that a configuration can name. A name stands for the first of its kind that was registered.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The functions that a chain can have.
    pub functions: Vec<Registration>,
}

impl Registry {
    /// An empty registry: a chain has no function.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds functions.
    #[must_use]
    pub fn with_functions(mut self, functions: &[Registration]) -> Registry {
        self.functions.extend_from_slice(functions);
        self
    }
}
