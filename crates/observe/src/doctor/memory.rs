//! Memory: large pages for buffers and flow tables.

use super::{Finding, Machine};

pub(super) fn examine(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let info = machine.read("/proc/meminfo").unwrap_or_default();
    let number = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (total, free) = (number("HugePages_Total:"), number("HugePages_Free:"));
    let large = machine.read("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = large.as_deref().and_then(|modes| modes.split(['[', ']']).nth(1));
    let transparent = matches!(chosen, Some("madvise" | "always"));
    findings.push(match (total.unwrap_or(0), free.unwrap_or(0)) {
        (0, _) if transparent => Finding::ok(
            "huge pages",
            "none reserved; the kernel makes large pages of ordinary ones where it can",
        ),
        (0, _) => Finding::warning(
            "huge pages",
            "none reserved",
            "a lookup among a million flows costs about 5 ns more",
        )
        .fixed_by("sysctl -w vm.nr_hugepages=512"),
        (total, 0) => Finding::warning(
            "huge pages",
            format!("all {total} are taken"),
            "new runs go without: a lookup among a million flows costs about 5 ns more",
        )
        .fixed_by(format!("sysctl -w vm.nr_hugepages={}", total + 512)),
        (total, free) => Finding::ok("huge pages", format!("{free} of {total} free")),
    });
    if let Some(chosen) = chosen {
        findings.push(match transparent {
            true => Finding::ok("transparent pages", chosen),
            false => Finding::warning(
                "transparent pages",
                chosen,
                "buffers and flow tables request large pages and do not get them",
            )
            .fixed_by("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
        });
    }
}
