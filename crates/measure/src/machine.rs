//! What a figure was measured on.

use std::{fmt, fs};

use serde::{Deserialize, Serialize};

/// The machine, as far as it decides speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name, as the kernel gives it.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Main memory in GiB, rounded.
    pub memory_gib: u64,
}

impl Machine {
    /// The machine this runs on; what cannot be found out is called unknown.
    pub fn this() -> Machine {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let unknown = || "unknown".to_owned();
        let kib = field("/proc/meminfo", "MemTotal").and_then(|text| {
            text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok())
        });
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: rheostat_kernel::CoreSet::available().map_or(1, |set| set.cores().len()),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            memory_gib: (kib.unwrap_or(0) + (1 << 19)) >> 20,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, cores, kernel, memory_gib } = self;
        write!(f, "{processor}, {cores} cores, {memory_gib} GiB, Linux {kernel}")
    }
}
