//! The limits of the control groups that a process runs in, of both versions of the interface. Limits nest: those of
//! all groups around the process's own hold too.

use std::fs;
use std::path::{Path, PathBuf};

/// Limits from here on stand for none: v1 writes the largest multiple of a page that fits an `i64`.
const UNLIMITED: u64 = 1 << 60;

/// A limit, and the file that sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit<T> {
    /// How much is granted.
    pub value: T,
    /// Where that is written.
    pub file: PathBuf,
}

/// The control groups of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    hierarchies: Vec<Hierarchy>,
}

/// A mounted hierarchy of groups, and the process's group in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// The controllers of a v1 hierarchy; `None` of v2, where every controller is in one.
    controllers: Option<Vec<String>>,
    /// From the process's own group outwards, as far as can be seen.
    groups: Vec<PathBuf>,
}

impl Cgroups {
    /// The groups of this process.
    pub fn of_this_process() -> Cgroups {
        Cgroups::read(Path::new("/"))
    }

    /// Reads `proc/self/cgroup` and `proc/self/mountinfo` in the folder `root`, which stands for the root of the file
    /// system. Without them there are no groups.
    pub fn read(root: &Path) -> Cgroups {
        let text = |name: &str| fs::read_to_string(root.join("proc/self").join(name));
        let (Ok(memberships), Ok(mounts)) = (text("cgroup"), text("mountinfo")) else {
            return Cgroups::default();
        };
        let hierarchy = |line: &str| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
            let mount = mounts.lines().filter_map(Mount::parse).find(|m| m.has(controllers))?;
            let groups = mount.groups(root, group);
            let version1 = !controllers.is_empty();
            let controllers = version1.then(|| controllers.split(',').map(str::to_owned).collect());
            Some(Hierarchy { controllers, groups })
        };
        Cgroups { hierarchies: memberships.lines().filter_map(hierarchy).collect() }
    }

    /// Processors' worth of time that is granted: the least `cpu.max` (v2) or `cpu.cfs_quota_us` (v1).
    pub fn cpu_quota(&self) -> Option<Limit<f64>> {
        let version1 = |folder: &Path| {
            let number = |name| fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok();
            let (quota, period): (f64, f64) =
                (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
            share(quota, period, folder.join("cpu.cfs_quota_us"))
        };
        let version2 = |folder: &Path| {
            let file = folder.join("cpu.max");
            let text = fs::read_to_string(&file).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            share(quota.parse().ok()?, period.parse().ok()?, file)
        };
        let limits = self.limits("cpu", version1, version2);
        limits.min_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Bytes of memory that are granted: the least `memory.max` (v2) or `memory.limit_in_bytes` (v1).
    pub fn memory_limit(&self) -> Option<Limit<u64>> {
        let read = |file: PathBuf| {
            // `max` is no number: no limit.
            let value = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
            (value < UNLIMITED).then_some(Limit { value, file })
        };
        let version1 = |folder: &Path| read(folder.join("memory.limit_in_bytes"));
        let version2 = |folder: &Path| read(folder.join("memory.max"));
        self.limits("memory", version1, version2).min_by_key(|limit| limit.value)
    }

    /// What every group of the hierarchies with `controller` sets.
    fn limits<T>(
        &self,
        controller: &str,
        version1: impl Fn(&Path) -> Option<Limit<T>>,
        version2: impl Fn(&Path) -> Option<Limit<T>>,
    ) -> impl Iterator<Item = Limit<T>> {
        let of = move |hierarchy: &Hierarchy| -> Vec<Limit<T>> {
            let groups = hierarchy.groups.iter();
            match &hierarchy.controllers {
                None => groups.filter_map(|folder| version2(folder)).collect(),
                Some(names) if names.iter().any(|name| name == controller) => {
                    groups.filter_map(|folder| version1(folder)).collect()
                }
                Some(_) => Vec::new(),
            }
        };
        self.hierarchies.iter().flat_map(of)
    }
}

fn share(quota: f64, period: f64, file: PathBuf) -> Option<Limit<f64>> {
    (quota > 0.0 && period > 0.0).then(|| Limit { value: quota / period, file })
}

/// A line of mountinfo (proc_pid_mountinfo(5)) that mounts a hierarchy of groups.
#[derive(Debug)]
struct Mount<'a> {
    /// The group that is the root of the mount.
    root: &'a str,
    folder: &'a str,
    /// The controllers of v1 among other options; `None` for v2.
    options: Option<&'a str>,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, folder) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        match kind {
            "cgroup" => Some(Mount { root, folder, options: Some(options) }),
            "cgroup2" => Some(Mount { root, folder, options: None }),
            _ => None,
        }
    }

    /// Whether it mounts the hierarchy with these controllers, as proc/self/cgroup lists them.
    fn has(&self, controllers: &str) -> bool {
        match self.options {
            None => controllers.is_empty(),
            Some(_) if controllers.is_empty() => false,
            Some(options) => {
                controllers.split(',').all(|name| options.split(',').any(|option| option == name))
            }
        }
    }

    /// The folders of `group` and of all groups around it that the mount shows. A container may see its own group
    /// only, as the root of the mount, under a path from outside.
    fn groups(&self, root: &Path, group: &str) -> Vec<PathBuf> {
        let mount = root.join(self.folder.trim_start_matches('/'));
        let inner = Path::new(group).strip_prefix(self.root).unwrap_or(Path::new(""));
        let own = mount.join(inner.strip_prefix("/").unwrap_or(inner));
        own.ancestors()
            .take_while(|folder| folder.starts_with(&mount))
            .map(Path::to_owned)
            .collect()
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
