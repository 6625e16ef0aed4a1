//! Waiting for less than a sleep can do, with the processor slowed down where it knows how (TPAUSE).
#![allow(unsafe_code)]

/// How a thread waits without giving up its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// `TPAUSE` (waitpkg): the core rests in state C0.1 until a given reading of its time-stamp counter.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only x86-64 has it"))]
    Timed,
    /// The hint of a spin loop, some tens of nanoseconds.
    Hint,
}

/// Ticks of one `TPAUSE`: less than half a microsecond, so that a wait ends on time, and the limit that kernels set
/// (100,000) is not met.
#[cfg(target_arch = "x86_64")]
const TICKS: u64 = 1_000;

impl Pause {
    /// What this processor can do.
    pub(crate) fn detect() -> Pause {
        #[cfg(target_arch = "x86_64")]
        if has_waitpkg() {
            return Pause::Timed;
        }
        Pause::Hint
    }

    /// Waits for less than a microsecond.
    #[inline]
    pub(crate) fn once(self) {
        match self {
            Pause::Hint => std::hint::spin_loop(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `detect` makes this variant, on processors that have the instruction.
            Pause::Timed => unsafe { timed_pause(TICKS) },
            #[cfg(not(target_arch = "x86_64"))]
            Pause::Timed => std::hint::spin_loop(),
        }
    }
}

/// Whether the processor has UMONITOR, UMWAIT and TPAUSE: leaf 7, ECX bit 5.
#[cfg(target_arch = "x86_64")]
fn has_waitpkg() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx >> 5 & 1 == 1
}

/// Rests until the counter has advanced by `ticks`, or the kernel's limit for such rests is reached.
///
/// # Safety
/// The processor has `waitpkg`.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn timed_pause(ticks: u64) {
    // SAFETY: reads a counter.
    let until = unsafe { std::arch::x86_64::_rdtsc() }.wrapping_add(ticks);
    // SAFETY: by the contract the instruction exists. It reads three registers, changes flags, and touches no memory.
    unsafe {
        std::arch::asm!(
            "tpause ecx",
            // Bit 0: C0.1, from which waking is faster than from C0.2.
            in("ecx") 1_u32,
            in("edx") (until >> 32) as u32,
            in("eax") until as u32,
            options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timed_pause_is_used_where_the_kernel_shows_waitpkg() {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let shown = processors.split_whitespace().any(|flag| flag == "waitpkg");
        assert_eq!(Pause::detect() == Pause::Timed, shown);
    }

    #[test]
    fn each_pause_that_this_processor_has_comes_back() {
        for pause in [Pause::Hint, Pause::detect()] {
            (0..1_000).for_each(|_| pause.once());
        }
    }
}
