//! Capabilities (capabilities(7)): which the calling thread has, and which are missing for something that was refused.

use std::fmt;

use rustix::thread::{CapabilitySet, capabilities};

/// A capability that opening a device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Opens AF_XDP and packet sockets.
    NetRaw,
    /// Attaches programs to interfaces and makes tap interfaces.
    NetAdmin,
    /// Loads programs and their maps.
    Bpf,
    /// Loads programs that compute with pointers, as all of rheostat's do.
    Perfmon,
    /// Locks more memory than the limit (`ulimit -l`) allows.
    IpcLock,
    /// Opens files whose mode does not allow it.
    DacOverride,
}

impl Capability {
    /// What loading a program for the network takes.
    pub const LOAD: [Capability; 3] = [Capability::Bpf, Capability::Perfmon, Capability::NetAdmin];

    /// All that opening live devices takes.
    pub const DEVICES: [Capability; 5] = [
        Capability::NetAdmin,
        Capability::NetRaw,
        Capability::Bpf,
        Capability::Perfmon,
        Capability::IpcLock,
    ];

    /// Its name, as in capabilities(7).
    pub const fn name(self) -> &'static str {
        match self {
            Capability::NetRaw => "CAP_NET_RAW",
            Capability::NetAdmin => "CAP_NET_ADMIN",
            Capability::Bpf => "CAP_BPF",
            Capability::Perfmon => "CAP_PERFMON",
            Capability::IpcLock => "CAP_IPC_LOCK",
            Capability::DacOverride => "CAP_DAC_OVERRIDE",
        }
    }

    /// The set that holds it alone.
    pub(crate) const fn set(self) -> CapabilitySet {
        match self {
            Capability::NetRaw => CapabilitySet::NET_RAW,
            Capability::NetAdmin => CapabilitySet::NET_ADMIN,
            Capability::Bpf => CapabilitySet::BPF,
            Capability::Perfmon => CapabilitySet::PERFMON,
            Capability::IpcLock => CapabilitySet::IPC_LOCK,
            Capability::DacOverride => CapabilitySet::DAC_OVERRIDE,
        }
    }

    /// Whether a set of effective capabilities allows what this one stands for: CAP_SYS_ADMIN includes
    /// CAP_BPF and CAP_PERFMON.
    fn is_in(self, effective: CapabilitySet) -> bool {
        let is_admin = effective.contains(CapabilitySet::SYS_ADMIN);
        let included = matches!(self, Capability::Bpf | Capability::Perfmon) && is_admin;
        included || effective.contains(self.set())
    }
}

/// Why the kernel has refused something, as far as the effective set of the thread shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    doing: &'static str,
    needed: Vec<Capability>,
    missing: Vec<Capability>,
}

impl Refusal {
    /// The kernel has refused `doing` ("load programs"), which takes the capabilities `needed`. To be called
    /// on the thread that was refused, before it gives up anything.
    pub fn new(doing: &'static str, needed: &[Capability]) -> Refusal {
        // Fails on no kernel that has capabilities.
        let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        Refusal::of(doing, needed, effective)
    }

    fn of(doing: &'static str, needed: &[Capability], effective: CapabilitySet) -> Refusal {
        let missing = needed.iter().copied().filter(|one| !one.is_in(effective)).collect();
        Refusal { doing, needed: needed.to_vec(), missing }
    }

    /// The capabilities that are missing; empty when something else is the reason.
    pub fn missing(&self) -> &[Capability] {
        &self.missing
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |all: &[Capability]| all.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        let doing = self.doing;
        if self.missing.is_empty() {
            let needed = names(&self.needed);
            return write!(
                f,
                "this process may not {doing}, although it has {needed}: a security module, a seccomp \
                 filter or a user namespace forbids it"
            );
        }
        let missing = names(&self.missing);
        write!(f, "this process may not {doing} without {missing}; run it as root, or give it that")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_capability_that_is_missing_is_named() {
        let unit = Capability::NetAdmin.set() | Capability::NetRaw.set() | Capability::Bpf.set();
        let refusal = Refusal::of("load programs", &Capability::LOAD, unit);
        assert_eq!(refusal.missing(), [Capability::Perfmon]);
        let text = refusal.to_string();
        assert!(text.contains("without CAP_PERFMON;"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn the_administrator_of_old_kernels_may_load_programs() {
        let admin = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
        assert!(Refusal::of("load programs", &Capability::LOAD, admin).missing().is_empty());
        let none = Refusal::of("load programs", &Capability::LOAD, CapabilitySet::SYS_ADMIN);
        assert_eq!(none.missing(), [Capability::NetAdmin]);
    }

    #[test]
    fn a_refusal_that_no_capability_explains_says_so() {
        let all = Capability::LOAD.iter().fold(CapabilitySet::empty(), |all, one| all | one.set());
        let text = Refusal::of("load programs", &Capability::LOAD, all).to_string();
        assert!(text.contains("although it has CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN"), "{text}");
    }
}
