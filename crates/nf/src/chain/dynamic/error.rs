//! Functions that do not make a chain together.

use rheostat_state::LayoutError;
use thiserror::Error;

/// Why functions do not make a chain together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainError {
    /// An entry has no room for the functions' states.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Two functions share objects that were made from different [`Objects`](rheostat_state::txn::Objects), but a lane has one
    /// transaction.
    #[error("{0} and {1} share objects that were not made from one `Objects`")]
    Objects(&'static str, &'static str),
    /// Both functions give flows a second key, and a flow has one at most.
    #[error("{0} and {1} both translate addresses, and a flow has two keys at most")]
    Keys(&'static str, &'static str),
    /// The first translates addresses without giving flows a second key, so that packets from outside do not meet the flows that
    /// the second keeps.
    #[error(
        "{0} on shared objects gives flows no second key, so packets from outside would not find the flows of {1}"
    )]
    OneKey(&'static str, &'static str),
    /// A flow of the first is many flows of the second, and the first cannot keep them in a table of its own: it is on shared
    /// objects, or gives flows second keys.
    #[error(
        "a flow of {0} is many flows of {1}, and a function on shared objects or with second keys has no table of its own"
    )]
    Coarser(&'static str, &'static str),
}
