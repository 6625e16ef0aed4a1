//! The controlling terminal of the process, whose end the kernel reports by SIGHUP.

use std::fs;

/// Whether the process has a controlling terminal. `true` where that is not known: then SIGHUP may mean that it was closed.
pub fn has_controlling_terminal() -> bool {
    let stat = fs::read_to_string("/proc/self/stat");
    stat.ok().and_then(|stat| terminal_of(&stat)).is_none_or(|terminal| terminal != 0)
}

/// The device number of the terminal in a line of `/proc/PID/stat`, its seventh field; 0 for none (proc_pid_stat(5)).
fn terminal_of(stat: &str) -> Option<i64> {
    // The name of the program, which may have spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_read_behind_any_name() {
        assert_eq!(terminal_of("7 (rheo) S 1 7 7 34816 7 4194560 0 0"), Some(34_816));
        assert_eq!(terminal_of("7 (a) b (c) S 1 7 7 0 -1 4194560 0 0"), Some(0));
        assert_eq!(terminal_of("7 (rheo) S 1"), None);
    }
}
