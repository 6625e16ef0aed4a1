//! Functions by name: what a program knows of each before a configuration names it.

/// A function that configurations can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its name in `[chain]`, and that of its settings in `[function]`.
    pub name: &'static str,
    /// What it does, in one sentence without a full stop.
    pub summary: &'static str,
}
