//! How much memory the process has.

use rheostat_kernel::ProcFields;

/// Bytes of this process that are in memory; 0 where the operating system does not say.
pub(super) fn resident() -> usize {
    ProcFields::of_this_process().memory("VmRSS").unwrap_or(0) as usize
}
