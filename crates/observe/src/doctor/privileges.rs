//! What the process may do.

use super::{Finding, Machine};

/// Capabilities (`linux/capability.h`) and what they are needed for.
const CAPABILITIES: [(u32, &str, &str); 4] = [
    (13, "CAP_NET_RAW", "sockets of kinds `af_xdp` and `af_packet` cannot be opened"),
    (12, "CAP_NET_ADMIN", "programs cannot be attached to interfaces, nor `tap` devices be made"),
    (39, "CAP_BPF", "programs and their tables cannot be loaded"),
    (38, "CAP_PERFMON", "the kernel refuses programs that compute with pointers, as all here do"),
];
/// Stands for CAP_BPF and CAP_PERFMON, too.
const SYS_ADMIN: u32 = 21;
const SYS_RESOURCE: u32 = 24;
/// What a pool of the usual size, its rings and tables take, with room to spare.
const LOCKED: u64 = 256 << 20;
/// Descriptors of a run with many lanes and devices.
const FILES: u64 = 1_024;

pub(super) fn examine(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let status = machine.status();
    let has = |capability: u32| {
        let admin = matches!(capability, 38 | 39) && status.has_capability(SYS_ADMIN);
        admin || status.has_capability(capability)
    };
    for (number, name, means) in CAPABILITIES {
        findings.push(match has(number) {
            true => Finding::ok(name, "held"),
            false => Finding::error(name, "not held", means).fixed_by(
                "run as root, or: setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon+ep rheo",
            ),
        });
    }
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    if let Some(locked) = limit(&limits, "Max locked memory") {
        let found = match locked {
            u64::MAX => "no limit".to_owned(),
            bytes => format!("{} MiB at most", bytes >> 20),
        };
        let means = "buffers shared with the kernel may be refused (AF_XDP locks them)";
        findings.push(match locked >= LOCKED || has(14) || has(SYS_RESOURCE) {
            true => Finding::ok("locked memory", found),
            false => Finding::error("locked memory", found, means).fixed_by("ulimit -l unlimited"),
        });
    }
    if let Some(files) = limit(&limits, "Max open files") {
        let found = format!("{files} at most");
        let means = "with many lanes and devices, sockets cannot be opened";
        findings.push(match files >= FILES {
            true => Finding::ok("open files", found),
            false => Finding::warning("open files", found, means).fixed_by("ulimit -n 4096"),
        });
    }
}

/// The soft limit of this name; `u64::MAX` without one.
fn limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}
