//! Tests that need root and a kernel to load programs into.

/// Whether such tests are wanted, as `RHEO_ROOT_TESTS=1` says. Says so if not.
pub(crate) fn wanted() -> bool {
    let wanted = std::env::var_os("RHEO_ROOT_TESTS").is_some_and(|value| value == "1");
    if !wanted {
        println!("not run: needs root, and RHEO_ROOT_TESTS=1 to say that it may use it");
    }
    wanted
}
