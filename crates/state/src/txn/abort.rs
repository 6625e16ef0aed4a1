//! How a transaction ends that cannot go on.

use thiserror::Error;

/// A handler could not complete: an access to shared state conflicted with another lane's, or the handler gave up.
/// Carried to the runtime by `?`; keeping it back is of no use, as a transaction that has conflicted cannot commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the handler was aborted")]
pub struct Abort;

/// The result of a handler, and of whatever it does with shared objects.
pub type Outcome<T> = Result<T, Abort>;
