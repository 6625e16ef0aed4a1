//! A wait for what was read.
#![allow(unsafe_code)]

/// Returns when all instructions before the call have been executed, reads from memory among them: a reading of the time-stamp counter
/// does not wait for those, so that without it work that waits for memory seems to take no time. On other processors than x86-64 it
/// is a fence, behind which nothing is read earlier.
#[inline]
pub fn wait_for_loads() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: LFENCE is part of SSE2, and that of x86-64.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
