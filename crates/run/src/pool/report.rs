//! What the members of a pool have done, and how they ended.

use rheostat_kernel::core_set::CoreError;
use thiserror::Error;

use super::PoolError;

/// What the members of a pool have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    /// Tasks done, those included that panicked, by members that ended when they were told to.
    pub tasks: u64,
    /// Of those, the tasks that panicked.
    pub panicked: u64,
    /// Members that had not come to an end when waiting for them ended: each is still at a task.
    pub running: Vec<usize>,
    /// Members that ended by themselves.
    pub failures: Vec<MemberFailure>,
}

/// Why a member of a pool ended by itself. What it was given and had not done came back as [`Lost::Ended`](super::Lost::Ended).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MemberFailure {
    /// It panicked outside of a task.
    #[error("member {member} of the pool panicked outside of a task: {message}")]
    Panicked {
        /// The member.
        member: usize,
        /// What it said.
        message: String,
    },
    /// It could not be pinned to its core, and has done nothing.
    #[error("member {member} of the pool has done nothing: {error}")]
    Pin {
        /// The member.
        member: usize,
        /// Why not.
        error: CoreError,
    },
}

impl PoolReport {
    /// The report, if all members worked until the pool ended.
    ///
    /// # Errors
    /// [`PoolError::Member`] with the first that did not.
    pub fn into_result(mut self) -> Result<PoolReport, PoolError> {
        match self.failures.is_empty() {
            true => Ok(self),
            false => Err(self.failures.swap_remove(0).into()),
        }
    }
}
