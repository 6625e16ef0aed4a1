//! Processors: whether a worker has its core to itself, and at what speed.

use super::{Finding, Machine};

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn examine(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let read = |path: &str| machine.read(path).filter(|text| !text.is_empty());
    findings.push(match read(&format!("{CPU}/isolated")) {
        Some(cores) => Finding::ok("isolated cores", cores),
        None => Finding::warning(
            "isolated cores",
            "none",
            "the scheduler may put other threads on a worker's core: latency has a tail then",
        )
        .fixed_by(isolation(machine)),
    });
    if let Some(cores) = read(&format!("{CPU}/nohz_full")).filter(|cores| cores != "(null)") {
        findings.push(Finding::ok("cores without tick", cores));
    }
    governor(machine, findings);
    if let Some(active) = read(&format!("{CPU}/smt/active")) {
        findings.push(match active.as_str() {
            "1" => Finding::warning(
                "hyperthreads",
                "cores are shared by two threads each",
                "two workers on one core slow each other down: name one thread of each core",
            )
            .fixed_by("grep . /sys/devices/system/cpu/cpu*/topology/thread_siblings_list  # then [workers] cores"),
            _ => Finding::ok("hyperthreads", "each core is its own"),
        });
    }
    if let Some(source) = read("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        findings.push(match source.as_str() {
            "tsc" | "kvm-clock" | "arch_sys_counter" => Finding::ok("clock", source),
            _ => Finding::warning(
                "clock",
                source,
                "reading the time is a call into the kernel, twice for each poll",
            )
            .fixed_by(
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        });
    }
    let balances = machine.list("/proc").iter().any(|process| {
        process.bytes().all(|digit| digit.is_ascii_digit())
            && machine.read(&format!("/proc/{process}/comm")).as_deref() == Some("irqbalance")
    });
    findings.push(match balances {
        false => Finding::ok("irqbalance", "not running"),
        true => Finding::warning(
            "irqbalance",
            "running",
            "it moves the interrupts of queues away from the cores that poll them",
        )
        .fixed_by("systemctl disable --now irqbalance"),
    });
    quota(machine, findings);
}

/// All cores but the first, which is left to the rest of the machine.
fn isolation(machine: &dyn Machine) -> String {
    let online = machine.read(&format!("{CPU}/online")).unwrap_or_default();
    let last = online.rsplit(['-', ',']).next().and_then(|last| last.parse::<u16>().ok());
    let cores = match last {
        Some(last @ 2..) => format!("1-{last}"),
        _ => "1".to_owned(),
    };
    format!(
        "add isolcpus={cores} to the kernel's command line, and set [workers] cores = \"{cores}\""
    )
}

fn governor(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let cores = machine.list(CPU);
    let numbered =
        |name: &&String| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u16>().is_ok());
    let path = |core: &String| format!("{CPU}/{core}/cpufreq/scaling_governor");
    let governors = cores.iter().filter(numbered).filter_map(|core| machine.read(&path(core)));
    let governors: Vec<_> = governors.collect();
    let Some(slow) = governors.iter().find(|governor| *governor != "performance") else {
        if !governors.is_empty() {
            findings.push(Finding::ok("frequency", "performance on all cores"));
        }
        return;
    };
    findings.push(
        Finding::warning(
            "frequency",
            format!("governor `{slow}`"),
            "cores slow down between bursts, and metrics are not comparable",
        )
        .fixed_by("cpupower frequency-set -g performance"),
    );
}

/// A share of the processors that the process's control group may not go beyond, in either version of the interface.
fn quota(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    if !quota_v2(machine, findings) && !quota_v1(machine, findings) {
        findings.push(Finding::ok("processor quota", "none"));
    }
}

/// `cpu.cfs_quota_us` of the group in the hierarchy of the controller `cpu`, or of one around it.
fn quota_v1(machine: &dyn Machine, findings: &mut Vec<Finding>) -> bool {
    let groups = machine.read("/proc/self/cgroup").unwrap_or_default();
    let hierarchy = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then_some((controllers, group))
    });
    let Some((controllers, group)) = hierarchy else { return false };
    let mut folder = group.trim_end_matches('/');
    loop {
        let path = format!("/sys/fs/cgroup/{controllers}{folder}");
        let number = |name: &str| machine.read(&format!("{path}/{name}"))?.parse::<f64>().ok();
        if let (Some(quota), Some(period)) =
            (number("cpu.cfs_quota_us").filter(|quota| *quota > 0.0), number("cpu.cfs_period_us"))
        {
            let fix = format!("echo -1 > {path}/cpu.cfs_quota_us");
            findings.push(quota_found(quota / period, folder, fix));
            return true;
        }
        match folder.rfind('/') {
            Some(end) => folder = &folder[..end],
            None => return false,
        }
    }
}

fn quota_found(cores: f64, folder: &str, fix: String) -> Finding {
    let found = format!("{cores:.2} cores in {}", if folder.is_empty() { "/" } else { folder });
    let means = "a worker that polls is stopped when its share of the period is used up: packets wait, and \
                 queues overflow";
    Finding::warning("processor quota", found, means).fixed_by(fix)
}

/// `cpu.max` of the group, or of one around it.
fn quota_v2(machine: &dyn Machine, findings: &mut Vec<Finding>) -> bool {
    let groups = machine.read("/proc/self/cgroup").unwrap_or_default();
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let mut folder = unified.unwrap_or("").trim_end_matches('/');
    // The limits of every group around it hold, too.
    loop {
        if let Some(limit) = machine.read(&format!("/sys/fs/cgroup{folder}/cpu.max")) {
            let mut words = limit.split_whitespace();
            let (quota, period) = (words.next(), words.next());
            let number = |word: Option<&str>| word.and_then(|word| word.parse::<f64>().ok());
            if let (Some(quota), Some(period)) = (number(quota), number(period)) {
                let fix = format!("echo max > /sys/fs/cgroup{folder}/cpu.max");
                findings.push(quota_found(quota / period, folder, fix));
                return true;
            }
        }
        match folder.rfind('/') {
            Some(end) => folder = &folder[..end],
            None => return false,
        }
    }
}
