//! How many connections the kernel may track: one setting for the whole machine.

use std::fs;

use crate::testbed::TestbedError;

const MOST: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
/// Writable here, and only read-only below `/proc/sys` in newer kernels.
const BUCKETS: &str = "/sys/module/nf_conntrack/parameters/hashsize";

/// Limits raised for as long as this lives, and then put back.
#[derive(Debug)]
pub(super) struct ConntrackLimits {
    before: Vec<(&'static str, String)>,
}

impl ConntrackLimits {
    /// Makes room for twice as many connections, and a bucket for each: the kernel shall not be slow
    /// because it was set up for less.
    pub(super) fn raise_for(flows: u32) -> Result<ConntrackLimits, TestbedError> {
        let mut limits = ConntrackLimits { before: Vec::new() };
        for (path, least) in [(MOST, 2 * flows), (BUCKETS, flows)] {
            // Where connections are not tracked, there is no limit.
            let Ok(text) = fs::read_to_string(path) else { continue };
            let before = text.trim().to_owned();
            if before.parse::<u32>().is_ok_and(|now| now < least) {
                let raised = fs::write(path, least.to_string());
                raised.map_err(|error| TestbedError::file(path, error))?;
                limits.before.push((path, before));
            }
        }
        Ok(limits)
    }
}

impl Drop for ConntrackLimits {
    fn drop(&mut self) {
        for (path, before) in self.before.drain(..).rev() {
            if let Err(error) = fs::write(path, &before) {
                eprintln!("{path} stays raised, it was {before}: {error}");
            }
        }
    }
}
