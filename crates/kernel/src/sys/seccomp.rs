//! A system call filter as containers have one, for tests.
#![allow(unsafe_code)]

/// From here on the kernel answers prctl(PR_SET_TIMERSLACK) of the calling thread, and of all that it starts, with EPERM.
///
/// # Panics
/// When the kernel takes no filter.
pub fn refuse_timer_slack() {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // `seccomp_data`: the call's number at 0, its first argument at 16.
    let mut steps = [
        step(LOAD, 0, 0, 0),
        step(EQUAL, 0, 3, libc::SYS_prctl as u32),
        step(LOAD, 0, 0, 16),
        step(EQUAL, 0, 1, libc::PR_SET_TIMERSLACK as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: sets a flag of the thread.
    let flag = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: `program` and the steps it points to live until the call returns; the kernel copies them.
    let filter =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!((flag, filter), (0, 0), "{}", std::io::Error::last_os_error());
}
