use std::time::Duration;

use rheostat_kernel::NapiSettings;
use rheostat_kernel::sleep::{SleepPoint, SleepProfile};

use super::machine::MadeUp;
use super::*;

/// What is found amiss on a machine: check, level and command.
fn amiss(machine: &MadeUp) -> Vec<(&'static str, Level, String)> {
    let Diagnosis { findings, .. } = examine(machine, &[]);
    let amiss = findings.into_iter().filter(|finding| finding.level != Level::Ok);
    amiss
        .map(|finding| {
            assert!(finding.means.is_some(), "{finding} says nothing about rheostat");
            (finding.check, finding.level, finding.fix.unwrap_or_default())
        })
        .collect()
}

/// The one thing that is amiss.
fn only(machine: &MadeUp) -> (&'static str, Level, String) {
    let amiss = amiss(machine);
    assert_eq!(amiss.len(), 1, "{amiss:?}");
    amiss.into_iter().next().unwrap()
}

fn fast_nic() -> InterfaceFacts {
    InterfaceFacts {
        driver: Some("ice".into()),
        channels: Some(Channels { now: 8, most: 64 }),
        rings: Some(Rings { now: 2_048, most: 8_160 }),
        spreading: Some(Spreading { entries: 512, key: 52 }),
        offloads: Some(vec!["rx-gro".into(), "tx-checksum-ip-generic".into()]),
        xdp: Some(XdpFeatures { native: true, zero_copy: true, segments: true }),
        napis: Some(vec![Napi {
            id: 8_193,
            queue: Some(0),
            settings: Some(NapiSettings::default()),
        }]),
        probe: None,
    }
}

#[test]
fn whether_lanes_can_poll_the_driver_is_reported_and_no_lack() {
    let reported = |napis| {
        let machine = MadeUp::sound().and("eth1", InterfaceFacts { napis, ..fast_nic() });
        assert_eq!(amiss(&machine), []);
        let findings = examine(&machine, &[]).findings;
        findings.into_iter().find(|finding| finding.check == "busy polling").unwrap().found
    };
    assert_eq!(reported(fast_nic().napis), "possible by `busy_poll`, 1 NAPI instance(s)");
    let old = Napi { id: 8_193, queue: Some(0), settings: None };
    let veth = Napi { queue: None, settings: Some(NapiSettings::default()), ..old };
    for not_possible in [None, Some(vec![old]), Some(vec![veth])] {
        assert!(reported(not_possible).starts_with("not possible"));
    }
    assert!(reported(Some(Vec::new())).starts_with("no NAPI instance"));
}

#[test]
fn placements_that_the_machine_has_are_listed_with_what_it_cannot_show() {
    let found = |machine: &MadeUp, check: &str| {
        let findings = examine(machine, &[]).findings;
        findings.into_iter().find(|finding| finding.check == check).map(|finding| finding.found)
    };
    let cpu = "/sys/devices/system/cpu";
    assert_eq!(found(&MadeUp::sound(), "placements"), None);
    let plain = MadeUp::sound().with(&format!("{cpu}/online"), "0-1");
    assert!(found(&plain, "cores").unwrap().starts_with("2 cores of 1 threads, 1 nodes"));
    let placements = found(&plain, "placements").unwrap();
    assert!(placements.starts_with("idle-siblings,any-node idle-siblings,device-node;"));
    assert!(placements.contains("sharing a core do not arise"), "{placements}");
    assert!(placements.contains("far memory do not arise"), "{placements}");
    let mut large = plain.with(&format!("{cpu}/online"), "0-3");
    for (id, node) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        let topology = format!("{cpu}/cpu{id}/topology");
        large = large
            .with(&format!("{topology}/physical_package_id"), &node.to_string())
            .with(&format!("{topology}/core_id"), "0");
    }
    large = large
        .with("/sys/devices/system/node/online", "0-1")
        .with("/sys/devices/system/node/node0/cpulist", "0,2")
        .with("/sys/devices/system/node/node1/cpulist", "1,3");
    let placements = found(&large, "placements").unwrap();
    assert!(placements.ends_with("split-siblings,half-half"), "{placements}");
}

#[test]
fn a_sound_machine_has_nothing_amiss() {
    let machine = MadeUp::sound().and("eth1", fast_nic());
    assert_eq!(amiss(&machine), []);
    let diagnosis = examine(&machine, &[]);
    assert!(!diagnosis.has_errors());
    let text = diagnosis.to_string();
    assert!(
        text.contains("\ninterface eth1\n") && text.ends_with("0 warnings, 0 errors"),
        "{text}"
    );
}

#[test]
fn each_fault_is_found_alone_with_the_command_that_fixes_it() {
    use Level::{Error, Warning};
    let cpu = "/sys/devices/system/cpu";
    let sound = MadeUp::sound;
    let cases = [
        (
            sound().with("/proc/sys/kernel/osrelease", "5.10.0-30-amd64"),
            "kernel",
            Error,
            "apt install",
        ),
        (sound().with("/proc/sys/kernel/osrelease", "6.1.0"), "kernel", Warning, ""),
        (sound().with("/proc/sys/kernel/osrelease", "custom"), "kernel", Warning, ""),
        (sound().without("/sys/kernel/btf/vmlinux"), "BTF", Warning, ""),
        (
            sound().with("/proc/sys/net/core/bpf_jit_enable", "0"),
            "BPF compiler",
            Warning,
            "sysctl -w net.core.bpf_jit_enable=1",
        ),
        (
            sound().with("/proc/sys/kernel/unprivileged_bpf_disabled", "0"),
            "unprivileged BPF",
            Warning,
            "sysctl -w kernel.unprivileged_bpf_disabled=1",
        ),
        (sound().without("/dev/net/tun"), "tun device", Warning, "modprobe tun"),
        (
            // All but CAP_NET_RAW.
            sound().with("/proc/self/status", "CapEff:\t000001ffffffdfff"),
            "CAP_NET_RAW",
            Error,
            "run as root",
        ),
        (
            // All but those that let a process lock what it likes.
            sound()
                .with("/proc/self/status", "CapEff:\t000001fffeffbfff")
                .with("/proc/self/limits", "Max locked memory 8388608 8388608 bytes"),
            "locked memory",
            Error,
            "ulimit -l unlimited",
        ),
        (
            sound().with("/proc/self/limits", "Max open files            256  4096 files"),
            "open files",
            Warning,
            "ulimit -n 4096",
        ),
        (
            sound().with("/proc/meminfo", "HugePages_Total: 64\nHugePages_Free: 0"),
            "huge pages",
            Warning,
            "sysctl -w vm.nr_hugepages=576",
        ),
        (
            sound().with("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
            "transparent pages",
            Warning,
            "echo madvise >",
        ),
        (sound().with(&format!("{cpu}/isolated"), ""), "isolated cores", Warning, "add isolcpus"),
        (sound().with(&format!("{cpu}/smt/active"), "1"), "hyperthreads", Warning, "grep ."),
        (
            sound().with(&format!("{cpu}/cpu1/cpufreq/scaling_governor"), "powersave"),
            "frequency",
            Warning,
            "cpupower",
        ),
        (
            sound()
                .with("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
            "clock",
            Warning,
            "echo tsc >",
        ),
        (sound().with("/proc/812/comm", "irqbalance"), "irqbalance", Warning, "systemctl disable"),
        (
            sound().with("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000"),
            "processor quota",
            Warning,
            "echo max > /sys/fs/cgroup/system.slice/cpu.max",
        ),
        (
            sound()
                .with("/proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/a/b")
                .with("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1")
                .with("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000")
                .with("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000")
                .with("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000"),
            "processor quota",
            Warning,
            "echo -1 > /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us",
        ),
    ];
    for (machine, check, level, fix) in cases {
        let (found, as_level, command) = only(&machine);
        assert_eq!((found, as_level), (check, level));
        assert!(command.starts_with(fix) && command.is_empty() == fix.is_empty(), "{command}");
    }
}

#[test]
fn each_capability_that_a_process_does_not_hold_is_a_fault_and_admin_includes_some() {
    let unprivileged = MadeUp::sound().with("/proc/self/status", "CapEff:\t0000000000000000");
    let faults: Vec<_> = amiss(&unprivileged).into_iter().map(|(check, ..)| check).collect();
    assert_eq!(faults, ["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "priority"]);
    assert!(examine(&unprivileged, &[]).has_errors());
    // CAP_SYS_NICE, CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW.
    let old = MadeUp::sound().with("/proc/self/status", "CapEff:\t0000000000a03000");
    assert_eq!(amiss(&old), []);
}

#[test]
fn each_fault_of_an_interface_is_found() {
    use Level::{Error, Warning};
    let nic = fast_nic;
    let with = |facts: InterfaceFacts| MadeUp::sound().and("eth1", facts);
    let veth = || InterfaceFacts { driver: Some("veth".into()), ..nic() };
    let none = XdpFeatures::default();
    let one_page = XdpFeatures { native: true, ..none };
    let mtu = "/sys/class/net/eth1/mtu";
    let cases = [
        (
            with(nic()).with("/sys/class/net/eth1/operstate", "down"),
            "link",
            Warning,
            "ip link set eth1 up",
        ),
        (with(InterfaceFacts { xdp: Some(none), ..nic() }), "XDP", Warning, ""),
        (with(InterfaceFacts { xdp: None, ..nic() }), "XDP", Warning, ""),
        (
            with(InterfaceFacts { probe: Some(Err("Operation not supported".into())), ..nic() }),
            "XDP",
            Warning,
            "",
        ),
        (
            with(InterfaceFacts { xdp: Some(one_page), ..nic() }).with(mtu, "9000"),
            "MTU",
            Warning,
            "ip link set eth1 mtu 3498",
        ),
        (with(InterfaceFacts { spreading: None, ..nic() }), "spreading", Warning, ""),
        (
            with(InterfaceFacts { rings: Some(Rings { now: 256, most: 8_160 }), ..nic() }),
            "receive ring",
            Warning,
            "ethtool -G eth1 rx 4096",
        ),
        (
            with(InterfaceFacts { offloads: Some(vec!["rx-lro".into()]), ..nic() }),
            "joined packets",
            Error,
            "ethtool -K eth1 lro off rx-gro-hw off",
        ),
        (with(veth()), "offloads of a veth", Warning, "ethtool -K PEER tx off"),
    ];
    for (machine, check, level, fix) in cases {
        let (found, as_level, command) = only(&machine);
        assert_eq!((found, as_level), (check, level));
        assert!(command.starts_with(fix) && command.is_empty() == fix.is_empty(), "{command}");
    }
    let jumbo = with(InterfaceFacts { ..nic() }).with(mtu, "9000");
    assert_eq!(amiss(&jumbo), [], "this one takes packets in several buffers");
    let tried = with(InterfaceFacts { xdp: None, probe: Some(Ok(())), ..nic() });
    assert_eq!(amiss(&tried), []);
}

#[test]
fn an_interface_that_does_not_exist_is_an_error() {
    let Diagnosis { findings, .. } = examine(&MadeUp::sound(), &["eth9".to_owned()]);
    let last = findings.last().unwrap();
    assert_eq!((last.level, last.interface.as_deref()), (Level::Error, Some("eth9")));
}

#[test]
fn a_machine_that_shows_nothing_is_examined_all_the_same() {
    let diagnosis = examine(&MadeUp::default().and("eth0", InterfaceFacts::default()), &[]);
    assert!(diagnosis.has_errors());
    let json = serde_json::to_value(&diagnosis).unwrap();
    assert_eq!(json["findings"][0]["check"], "kernel");
    assert_eq!(json["findings"][0]["level"], "warning");
}

#[test]
fn the_offloads_of_the_far_end_of_a_pair_count() {
    let on = || Some(vec!["tx-checksum-ip-generic".to_owned()]);
    let veth = |offloads| InterfaceFacts {
        driver: Some("veth".into()),
        offloads,
        ..InterfaceFacts::default()
    };
    let pair = |near, far| {
        MadeUp::default()
            .and("va", veth(near))
            .and("vb", veth(far))
            .with("/sys/class/net/va/ifindex", "4")
            .with("/sys/class/net/va/iflink", "3")
            .with("/sys/class/net/vb/ifindex", "3")
            .with("/sys/class/net/vb/iflink", "4")
    };
    assert_eq!(lossy_offloads(&pair(on(), Some(vec![])), "va"), []);
    let of_far = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let found = lossy_offloads(&pair(Some(vec![]), Some(names)), "va");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].fix.as_deref(), Some("ethtool -K vb tx off tso off gso off"));
        found[0].found.clone()
    };
    let (checksums, segments) = ("tx-checksum-ip-generic", "tx-tcp-segmentation");
    assert_eq!(of_far(&[checksums]), "its peer `vb` leaves checksums to it");
    assert_eq!(of_far(&[segments]), "its peer `vb` leaves segmentation to it");
    let both = "its peer `vb` leaves checksums and segmentation to it";
    assert_eq!(of_far(&[checksums, segments]), both);
}

#[test]
fn offloads_of_a_peer_in_another_namespace_are_not_stated() {
    let near = |offloads| InterfaceFacts {
        driver: Some("veth".into()),
        offloads: Some(offloads),
        ..InterfaceFacts::default()
    };
    // The near end's offloads say nothing about those of the far one.
    for offloads in [vec![], vec!["tx-checksum-ip-generic".to_owned()]] {
        let machine = MadeUp::default()
            .and("va", near(offloads))
            .with("/sys/class/net/va/ifindex", "4")
            .with("/sys/class/net/va/iflink", "9");
        let found = lossy_offloads(&machine, "va");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].found.ends_with("were not read"), "{found:?}");
        assert!(found[0].fix.as_deref().is_some_and(|fix| fix.contains("PEER")), "{found:?}");
    }
}

/// Sleeps that take `late` microseconds more than asked, one of 500 of them `tail` microseconds.
fn sleeps(late: u64, tail: u64) -> SleepProfile {
    let us = Duration::from_micros;
    let point = |asked| {
        let taken = (0..500).map(|n| us(if n == 0 { tail } else { asked + late })).collect();
        SleepPoint::new(us(asked), taken, us(4)).unwrap()
    };
    SleepProfile::new([1, 10, 100].map(point).into())
}

fn sleeping(usual: SleepProfile, fifo: Option<SleepProfile>) -> MadeUp {
    MadeUp { sleeps: Some(SleepFacts { usual, slack: Ok(()), fifo }), ..MadeUp::sound() }
}

#[test]
fn sleeps_are_shown_with_their_cost_and_the_vacations_they_allow() {
    let machine = sleeping(sleeps(4, 150), None);
    assert_eq!(amiss(&machine), []);
    let diagnosis = examine(&machine, &[]);
    let text = diagnosis.to_string();
    assert!(text.contains("asked 1.0/10/100 us: p50 5.0/14/104, p99 5.0/14/104"), "{text}");
    assert!(text.contains("from 5.0 us on; 10 us: 41 % of a core while idle"), "{text}");
    let json = serde_json::to_value(&diagnosis).unwrap();
    let usual = &json["sleep"][0];
    assert_eq!((&usual["priority"], &usual["shortest_us"]), (&"usual".into(), &5.0.into()));
    assert_eq!(usual["sleeps"][1]["p50_us"], 14.0);
    assert_eq!(usual["sleeps"][1]["cpu_us"], 4.0);
    assert_eq!(usual["targets"][3]["cpu_share"], 0.041);
    let wait = usual["targets"][3]["wait_p99_us"].as_f64().unwrap();
    assert!(wait > 98.0 && wait < 103.0, "{wait}");
    assert!(json["sleep"][1].is_null());
    assert!(serde_json::to_value(examine(&MadeUp::sound(), &[])).unwrap()["sleep"].is_null());
}

#[test]
fn late_sleeps_have_the_fix_of_their_cause() {
    let (check, level, fix) = only(&sleeping(sleeps(60, 160), None));
    assert_eq!((check, level), ("sleep", Level::Warning));
    assert!(fix.starts_with("cpupower idle-set"), "{fix}");
    let (_, _, fix) = only(&sleeping(sleeps(4, 9_000), Some(sleeps(4, 150))));
    assert!(fix.contains("priority = \"fifo:10\""), "{fix}");
    let (_, _, fix) = only(&sleeping(sleeps(4, 9_000), Some(sleeps(4, 8_000))));
    assert!(fix.contains("isolcpus"), "real time does not help: {fix}");
}

#[test]
fn what_keeps_workers_from_a_priority_is_named() {
    let sound = MadeUp::sound;
    // All but CAP_SYS_NICE.
    let unprivileged = sound().with("/proc/self/status", "CapEff:\t000001ffff7fffff");
    let (check, level, fix) = only(&unprivileged);
    assert_eq!((check, level), ("priority", Level::Warning));
    assert!(fix.contains("ulimit -r 10"), "{fix}");
    let limits = "Max open files 20000 20000 files\nMax realtime priority 10 10\n";
    assert_eq!(amiss(&unprivileged.with("/proc/self/limits", limits)), []);
    let unit = "/etc/systemd/system/rheo@.service";
    let (check, _, fix) = only(&sound().with(unit, "[Service]\nRestrictRealtime=yes\n"));
    assert_eq!(check, "unit");
    assert!(fix.starts_with("systemctl edit"), "{fix}");
    assert_eq!(amiss(&sound().with(unit, "[Service]\n#RestrictRealtime=yes\n")), []);
}

#[test]
fn slow_idle_states_are_found_unless_they_are_disabled() {
    let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    let machine = |latency: &str| {
        MadeUp::sound()
            .with(&format!("{folder}/state0/name"), "POLL")
            .with(&format!("{folder}/state0/latency"), "0")
            .with(&format!("{folder}/state2/name"), "C6")
            .with(&format!("{folder}/state2/latency"), latency)
    };
    assert_eq!(amiss(&machine("20")), []);
    let (check, _, fix) = only(&machine("133"));
    assert_eq!((check, fix.as_str()), ("idle states", "cpupower idle-set -D 20"));
    assert_eq!(amiss(&machine("133").with(&format!("{folder}/state2/disable"), "1")), []);
}
