//! Fields of files in `/proc`, which have a line for each: its name, a colon, and its value (proc_pid_status(5), proc_meminfo(5)).

use std::fs;
use std::path::Path;

/// The text of such a file. A field that it does not have is `None`.
#[derive(Clone, Debug, Default)]
pub struct ProcFields(String);

impl ProcFields {
    /// The state of this process: `/proc/self/status`.
    pub fn of_this_process() -> ProcFields {
        ProcFields::read(Path::new("/proc/self/status"))
    }

    /// Reads a file. One that cannot be read has no fields.
    pub fn read(path: &Path) -> ProcFields {
        ProcFields(fs::read_to_string(path).unwrap_or_default())
    }

    /// The fields of `text`.
    pub fn new(text: String) -> ProcFields {
        ProcFields(text)
    }

    /// A field by its name, which stands before a colon.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// A field that is a set of bits: of capabilities or signals.
    pub fn set(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?, 16).ok()
    }

    /// A field that is an amount of memory, in bytes.
    pub fn memory(&self, name: &str) -> Option<u64> {
        let kilobytes: u64 = self.field(name)?.strip_suffix("kB")?.trim_end().parse().ok()?;
        kilobytes.checked_mul(1_024)
    }

    /// Whether the process may use the capability of this number (`linux/capability.h`).
    pub fn has_capability(&self, number: u32) -> bool {
        self.set("CapEff").is_some_and(|set| set >> number & 1 == 1)
    }

    /// Whether the process ignores the signal of this number, which is 1 at least.
    pub fn ignores(&self, signal: u32) -> bool {
        self.set("SigIgn").is_some_and(|set| set >> (signal - 1) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_whole_names() {
        let text = "Name:\trheo\nVmSize:\t    2048 kB\nVmRSS:\tmany\nCapEff:\t0000000000003000\n\
                    SigBlk:\t0000000000000001\nSigIgn:\t0000000000000001\n";
        let status = ProcFields::new(text.into());
        assert_eq!(status.field("Name"), Some("rheo"));
        assert_eq!((status.field("Na"), status.field("Vm"), status.field("")), (None, None, None));
        assert_eq!((status.memory("VmSize"), status.memory("VmRSS")), (Some(2 << 20), None));
        assert_eq!([12, 13, 14].map(|number| status.has_capability(number)), [true, true, false]);
        assert_eq!([1, 15].map(|signal| status.ignores(signal)), [true, false]);
        let nothing = ProcFields::default();
        assert!(!nothing.ignores(1) && !nothing.has_capability(0));
    }

    #[test]
    fn this_process_has_a_name_and_memory() {
        let own = ProcFields::of_this_process();
        assert!(own.field("Name").is_some_and(|name| !name.is_empty()));
        assert!(own.memory("VmRSS").is_some_and(|bytes| bytes > 0));
    }
}
