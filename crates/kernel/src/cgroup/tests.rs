use std::fs;
use std::path::PathBuf;

use super::*;

/// A file system of files, removed at the end.
struct Root(PathBuf);

impl Root {
    fn with(name: &str, files: &[(&str, &str)]) -> Root {
        let root = std::env::temp_dir().join(format!("rheo-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Root(root)
    }

    fn cgroups(&self) -> Cgroups {
        Cgroups::read(&self.0)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn quotas_of_v1_are_read_and_the_least_of_nested_ones_holds() {
    let root = Root::with(
        "v1",
        &[
            ("proc/self/cgroup", "4:memory:/a/b\n2:cpuacct,cpu:/a/b\n0::/\n"),
            ("proc/self/mountinfo", V1),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "314572800\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "629145600\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"),
        ],
    );
    let memory = root.cgroups().memory_limit().unwrap();
    assert_eq!(memory.value, 300 << 20);
    assert!(memory.file.ends_with("memory/a/memory.limit_in_bytes"), "{:?}", memory.file);
    assert_eq!(root.cgroups().cpu_quota().unwrap().value, 1.5);
}

#[test]
fn limits_of_v2_are_read_up_to_the_mount() {
    let root = Root::with(
        "v2",
        &[
            ("proc/self/cgroup", "0::/system.slice/rheo.service\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/system.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/rheo.service/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/system.slice/rheo.service/cpu.max", "max 100000\n"),
            // Beyond the mount: no limit of a group.
            ("sys/fs/memory.max", "1\n"),
        ],
    );
    assert_eq!(root.cgroups().memory_limit().unwrap().value, 1 << 30);
    assert_eq!(root.cgroups().cpu_quota().unwrap().value, 2.5);
}

#[test]
fn both_versions_side_by_side_count() {
    let mixed = |v2: &str| {
        let root = Root::with(
            &format!("mixed-{}", v2.len()),
            &[
                ("proc/self/cgroup", "4:memory:/a\n0::/u\n"),
                ("proc/self/mountinfo", V1),
                ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "500000000\n"),
                ("sys/fs/cgroup/unified/u/memory.max", v2),
            ],
        );
        root.cgroups().memory_limit().unwrap().value
    };
    assert_eq!(mixed("400000000\n"), 400_000_000);
    assert_eq!(mixed("max\n"), 500_000_000);
}

#[test]
fn a_container_finds_its_group_at_the_root_of_its_mount() {
    let mount = V2.replace(" / /sys", " /docker/1f /sys");
    let root = Root::with(
        "container",
        &[
            ("proc/self/cgroup", "0::/docker/1f\n"),
            ("proc/self/mountinfo", &mount),
            ("sys/fs/cgroup/memory.max", "4096\n"),
        ],
    );
    assert_eq!(root.cgroups().memory_limit().unwrap().value, 4_096);
    let foreign = Root::with(
        "foreign",
        &[
            ("proc/self/cgroup", "0::/elsewhere\n"),
            ("proc/self/mountinfo", &mount),
            ("sys/fs/cgroup/memory.max", "8192\n"),
        ],
    );
    assert_eq!(foreign.cgroups().memory_limit().unwrap().value, 8_192);
}

#[test]
fn what_is_no_limit_is_none() {
    for cpu in ["max 100000\n", "garbage", "100000 0", ""] {
        let root = Root::with(
            &format!("none-{}", cpu.len()),
            &[
                ("proc/self/cgroup", "0::/\nnonsense\n"),
                ("proc/self/mountinfo", V2),
                ("sys/fs/cgroup/cpu.max", cpu),
            ],
        );
        assert_eq!(root.cgroups().cpu_quota(), None, "{cpu}");
        assert_eq!(root.cgroups().memory_limit(), None);
    }
    assert_eq!(Cgroups::read(Path::new("/no/such/root")), Cgroups::default());
}
