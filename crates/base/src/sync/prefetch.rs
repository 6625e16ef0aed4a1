//! Asking for a cache line before it is written.
#![allow(unsafe_code)]

/// Asks the processor for the cache line of `value`, to be written, and goes on at once. Where another core has the line,
/// this costs the line's way between the cores while other work is done; without a use soon after, it only takes the line
/// from that core. Has no effect on processors other than x86-64, and under models.
#[inline(always)]
pub fn prefetch_for_write<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom, shuttle))))]
    // SAFETY: a prefetch reads and writes nothing, and processors without the instruction take it for none. (The intrinsic
    // becomes a prefetch for reading where the target's baseline does not include this one.)
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) std::ptr::from_ref(value), options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, loom, shuttle)))))]
    let _ = value;
}
