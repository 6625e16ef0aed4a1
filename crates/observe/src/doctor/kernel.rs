//! The kernel: its version, and how it runs programs.

use super::{Finding, Machine};

/// The oldest kernel that takes the XDP program, in which loops over headers and `bpf_loop` are used.
const XDP: (u32, u32) = (5, 18);
/// The first kernel that reports what drivers can do with XDP.
const REPORTS: (u32, u32) = (6, 3);

pub(super) fn examine(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    findings.push(version(machine));
    findings.push(match machine.exists("/sys/kernel/btf/vmlinux") {
        true => Finding::ok("BTF", "the kernel describes its types"),
        false => Finding::warning(
            "BTF",
            "the kernel does not describe its types",
            "programs load all the same; tools such as bpftool show less of them",
        ),
    });
    if let Some(jit) = machine.read("/proc/sys/net/core/bpf_jit_enable") {
        findings.push(match jit.as_str() {
            "0" => Finding::warning(
                "BPF compiler",
                "programs are interpreted",
                "the XDP program, which sees every packet, is several times slower",
            )
            .fixed_by("sysctl -w net.core.bpf_jit_enable=1"),
            _ => Finding::ok("BPF compiler", "programs are compiled"),
        });
    }
    if let Some(disabled) = machine.read("/proc/sys/kernel/unprivileged_bpf_disabled") {
        findings.push(match disabled.as_str() {
            "0" => Finding::warning(
                "unprivileged BPF",
                "every user may load programs",
                "rheostat does not need it, and it has been a way to attack the kernel",
            )
            .fixed_by("sysctl -w kernel.unprivileged_bpf_disabled=1"),
            _ => Finding::ok("unprivileged BPF", "only the privileged may load programs"),
        });
    }
    findings.push(match machine.exists("/dev/net/tun") {
        true => Finding::ok("tun device", "/dev/net/tun is there"),
        false => Finding::warning(
            "tun device",
            "there is no /dev/net/tun",
            "devices of kind `tap` cannot be opened",
        )
        .fixed_by("modprobe tun"),
    });
}

fn version(machine: &dyn Machine) -> Finding {
    let release = machine.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => {
            let found = format!("`{release}` is no version");
            return Finding::warning("kernel", found, "what it can do is not known");
        }
    };
    let found = format!("Linux {release}");
    if version < XDP {
        Finding::error(
            "kernel",
            found,
            "devices of kind `af_xdp` need Linux 5.18; `af_packet`, `tap`, `pcap` and `sim` may work",
        )
        .fixed_by("apt install linux-image-amd64  # or another kernel of 6.1 or later")
    } else if version < REPORTS {
        Finding::warning(
            "kernel",
            found,
            "it does not report what drivers can do with XDP, as Linux 6.3 does: try with --probe",
        )
    } else {
        Finding::ok("kernel", found)
    }
}
