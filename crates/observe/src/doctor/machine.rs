//! A machine that is made up, for tests.

use std::collections::BTreeMap;

use super::{InterfaceFacts, Machine, SleepFacts};

/// A machine without fault, unless something is changed.
#[derive(Clone, Default)]
pub(super) struct MadeUp {
    pub(super) files: BTreeMap<String, String>,
    pub(super) interfaces: BTreeMap<String, InterfaceFacts>,
    pub(super) sleeps: Option<SleepFacts>,
}

impl MadeUp {
    pub(super) fn sound() -> MadeUp {
        let mut machine = MadeUp::default();
        for (path, text) in [
            ("/proc/sys/kernel/osrelease", "6.18.0-rc1+"),
            ("/sys/kernel/btf/vmlinux", ""),
            ("/proc/sys/net/core/bpf_jit_enable", "1"),
            ("/proc/sys/kernel/unprivileged_bpf_disabled", "2"),
            ("/dev/net/tun", ""),
            ("/proc/self/status", "Name:\trheo\nCapEff:\t000001ffffffffff\n"),
            (
                "/proc/self/limits",
                "Max open files 20000 20000 files\nMax locked memory unlimited unlimited bytes",
            ),
            ("/proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 500"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
            ("/sys/devices/system/cpu/isolated", "2-7"),
            ("/sys/devices/system/cpu/smt/active", "0"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
            ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("/proc/1/comm", "systemd"),
            ("/proc/self/cgroup", "0::/system.slice/rheo.service"),
            ("/sys/fs/cgroup/system.slice/rheo.service/cpu.max", "max 100000"),
        ] {
            machine = machine.with(path, text);
        }
        machine
    }

    /// The same machine with another text in a file.
    pub(super) fn with(mut self, path: &str, text: &str) -> MadeUp {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// The same machine without a file.
    pub(super) fn without(mut self, path: &str) -> MadeUp {
        assert!(self.files.remove(path).is_some(), "{path} was not there");
        self
    }

    /// The same machine with another interface.
    pub(super) fn and(self, name: &str, facts: InterfaceFacts) -> MadeUp {
        let mut machine = self
            .with(&format!("/sys/class/net/{name}/mtu"), "1500")
            .with(&format!("/sys/class/net/{name}/operstate"), "up");
        machine.interfaces.insert(name.to_owned(), facts);
        machine
    }
}

impl Machine for MadeUp {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }

    fn list(&self, path: &str) -> Vec<String> {
        let inside = self.files.keys().filter_map(|file| file.strip_prefix(path));
        let first = |rest: &str| rest.strip_prefix('/')?.split('/').next().map(str::to_owned);
        let mut names: Vec<_> = inside.filter_map(first).collect();
        names.dedup();
        names
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn interface(&self, name: &str) -> InterfaceFacts {
        self.interfaces.get(name).cloned().unwrap_or_default()
    }
    fn sleeps(&self) -> Option<SleepFacts> {
        self.sleeps.clone()
    }
}
