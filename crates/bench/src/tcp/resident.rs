//! How much memory the process has.

/// Bytes of this process that are in memory; 0 where the operating system does not say.
pub(super) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * rustix::param::page_size()
}
