//! What memory a run takes when all that is configured is in use, and what it may take.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_base::ShardId;
use rheostat_control::Config;
use rheostat_control::config::ServeConfig;
use rheostat_control::config::device::sim::Driver;
use rheostat_control::config::device::{DeviceConfig, DeviceKind};
use rheostat_io::{DrawnArrivals, Peer};
use rheostat_kernel::{Cgroups, ProcFields};
use rheostat_measure::allocation;
use rheostat_nf::{AnyChain, ShardInfo};
use rheostat_packet::MempoolConfig;
use rheostat_run::{FLOWS_AWAY, handoff_bytes};
use rheostat_state::{FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::Steering;
use serde_json::{Value, json};
use thiserror::Error;

/// A reply under way: a frame of full size, and what is kept beside it.
const REPLY: u64 = 1_624;
/// Address space that a thread's stack takes.
const STACK: u64 = 2 << 20;
/// Threads beside workers: the main one, logs, control, checks.
const OTHER_THREADS: u64 = 8;

/// What a run takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    parts: Vec<MemoryPart>,
    /// Address space beyond that, which costs no memory: stacks.
    reserved: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MemoryPart {
    what: &'static str,
    bytes: u64,
    /// What it follows from.
    from: String,
    /// The setting to lower, if one does.
    setting: Option<&'static str>,
}

/// What a run may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryLimits {
    /// Each limit, and where it comes from.
    limits: Vec<(u64, String)>,
    /// The limit of the address space (RLIMIT_AS).
    address_space: Option<u64>,
    /// Address space that the process has by now.
    mapped: u64,
    /// Memory that the kernel could give at present without swapping, if it reports that.
    available: Option<u64>,
}

/// A run that takes more than it may.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "this configuration takes {} of memory when all of it is in use, and {limited_by} allows {}\n{parts}  lower {settings}",
    Bytes(*.takes), Bytes(*.allows)
)]
pub(crate) struct TooMuchMemory {
    takes: u64,
    allows: u64,
    limited_by: String,
    parts: String,
    settings: String,
}

/// The sizes of a run that are not in its configuration.
pub(crate) struct Sizes<'a> {
    pub(crate) lanes: usize,
    pub(crate) pool: &'a MempoolConfig,
    pub(crate) handoff: usize,
    pub(crate) fragments: FragmentConfig,
}

impl MemoryPlan {
    /// What a run of `config` with `chain` takes.
    pub(crate) fn of(
        config: &Config,
        chain: &AnyChain,
        steering: &Arc<Steering>,
        sizes: &Sizes<'_>,
    ) -> MemoryPlan {
        let (lanes, shards) = (sizes.lanes as u64, config.state.shards as u64);
        let capacity = usize::try_from(config.state.flows_per_shard()).unwrap_or(usize::MAX);
        let table = TableConfig { capacity, aliases: chain.spec().aliases };
        let flows = table.bytes(chain.layout()).map_or(u64::MAX, |bytes| bytes as u64);
        let beside = chain.bytes_beside(capacity);
        let shard =
            beside.boxed as u64 + sizes.fragments.bytes() as u64 + local_bytes(chain, steering);
        let mut parts = vec![
            MemoryPart {
                what: "packet buffers",
                bytes: sizes.pool.bytes() as u64,
                from: format!("{} of {} bytes", sizes.pool.buffers, sizes.pool.stride()),
                setting: Some("[pool] buffers"),
            },
            MemoryPart {
                what: "rings between lanes",
                bytes: handoff_bytes(
                    sizes.lanes,
                    sizes.handoff,
                    config.state.shards,
                    if config.workers.offloading.of(sizes.lanes) > 0 { FLOWS_AWAY } else { 0 },
                ) as u64,
                from: format!("{lanes} x {} rings for {} packets", lanes - 1, sizes.handoff),
                setting: (lanes > 1).then_some("[workers] lanes or handoff"),
            },
            MemoryPart {
                what: "rings of devices",
                bytes: config.devices.iter().map(|device| lanes * device.facts().ring_bytes).sum(),
                from: format!("{lanes} of each of {} devices", config.devices.len()),
                setting: Some("[[device]] ring or queue"),
            },
            MemoryPart {
                what: "program and functions",
                bytes: ProcFields::of_this_process().memory("VmRSS").unwrap_or_default(),
                from: "what is in use already".to_owned(),
                setting: None,
            },
        ];
        if chain.is_stateful() {
            parts.push(MemoryPart {
                what: "flow tables",
                bytes: flows.saturating_mul(shards),
                from: format!("{} flows in {shards} shards", config.state.flows),
                setting: Some("[state] flows"),
            });
            let own = beside.tables as u64;
            if own > 0 {
                parts.push(MemoryPart {
                    what: "flow tables of functions",
                    bytes: own.saturating_mul(shards),
                    from: format!(
                        "as many flows as in {shards} shards, for each function that has its own"
                    ),
                    setting: Some("[state] flows"),
                });
            }
            parts.push(MemoryPart {
                what: "shards",
                bytes: shards * shard,
                from: format!("{shards}, with fragments and what functions keep for each"),
                setting: Some("[state] shards or [state.fragments]"),
            });
        }
        parts.extend(config.serve.iter().flat_map(|serve| service_parts(serve, lanes)));
        let ahead = config.devices.iter().filter(|device| draws_ahead(device)).count();
        if ahead > 0 {
            let bytes = DrawnArrivals::BYTES as u64;
            parts.push(MemoryPart {
                what: "packets drawn ahead",
                bytes: ahead as u64 * bytes,
                from: format!("{} for each of {ahead} simulated devices", Bytes(bytes)),
                setting: Some("[[device]] driver"),
            });
        }
        let answered = config.devices.iter().filter(|device| is_answered(device)).count();
        if answered > 0 {
            let bytes = Peer::MOST as u64 * REPLY;
            parts.push(MemoryPart {
                what: "replies under way",
                bytes: answered as u64 * bytes,
                from: format!("at most {} for each of {answered} simulated devices", Bytes(bytes)),
                setting: Some("[[device]] replies"),
            });
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        MemoryPlan { parts, reserved: (lanes + OTHER_THREADS) * STACK }
    }

    /// The sum of all parts.
    pub(crate) fn sum(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Whether it stays within all limits.
    ///
    /// # Errors
    /// [`TooMuchMemory`], with the sum by part, and what to lower.
    pub(crate) fn check(&self, limits: &MemoryLimits) -> Result<(), TooMuchMemory> {
        let takes = self.sum();
        let least = limits.limits.iter().min_by_key(|(allows, _)| *allows);
        if let Some((allows, from)) = least.filter(|(allows, _)| takes > *allows) {
            return Err(self.too_much(takes, *allows, from.clone()));
        }
        // Address space counts from the first byte of the program on, whether it is in use or not.
        let resident = self.parts.iter().find(|part| part.setting.is_none()).map_or(0, |p| p.bytes);
        let space = takes.saturating_add(self.reserved + limits.mapped.saturating_sub(resident));
        match limits.address_space.filter(|allows| space > *allows) {
            None => Ok(()),
            Some(allows) => {
                let from = "the limit of the address space (`ulimit -v`, RLIMIT_AS)".to_owned();
                Err(self.too_much(space, allows, from))
            }
        }
    }

    /// A warning when the sum is more than the machine has to give at present.
    pub(crate) fn warning(&self, limits: &MemoryLimits) -> Option<String> {
        let available = limits.available.filter(|available| self.sum() > *available)?;
        Some(format!(
            "this configuration takes {} of memory when all of it is in use, and {} are available at present",
            Bytes(self.sum()),
            Bytes(available)
        ))
    }

    fn too_much(&self, takes: u64, allows: u64, limited_by: String) -> TooMuchMemory {
        let mut parts: String = self.parts.iter().map(|part| format!("{part}\n")).collect();
        let rest = takes.saturating_sub(self.sum());
        if rest > 0 {
            parts.push_str(&format!(
                "  {:>10}  mapped and not in use, such as stacks\n",
                Bytes(rest).to_string()
            ));
        }
        // The largest settings that together hold most of it.
        let mut named = Vec::new();
        let mut covered = 0_u64;
        for part in self.parts.iter().filter(|part| part.setting.is_some() && part.bytes > 0) {
            if covered > self.sum() / 2 && !named.is_empty() {
                break;
            }
            covered = covered.saturating_add(part.bytes);
            named.extend(part.setting);
        }
        let settings = format!("{}, or raise the limit", named.join(", "));
        TooMuchMemory { takes, allows, limited_by, parts, settings }
    }

    /// The plan as a value for programs, in bytes.
    pub(crate) fn to_json(&self) -> Value {
        let parts = self.parts.iter();
        let part = |part: &MemoryPart| json!({ "part": part.what, "bytes": part.bytes, "from": part.from });
        json!({ "bytes": self.sum(), "parts": parts.map(part).collect::<Vec<_>>() })
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory when all of it is in use: {}", Bytes(self.sum()))?;
        self.parts.iter().try_for_each(|part| write!(f, "\n{part}"))
    }
}

impl fmt::Display for MemoryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Bytes(self.bytes).to_string();
        write!(f, "  {bytes:>10}  {}: {}", self.what, self.from)?;
        self.setting.map_or(Ok(()), |setting| write!(f, " ({setting})"))
    }
}

impl MemoryLimits {
    /// The limits of this process: those of its control groups, of the machine, and of its address space.
    pub(crate) fn of_this_process() -> MemoryLimits {
        let info = ProcFields::read(Path::new("/proc/meminfo"));
        let machine =
            info.memory("MemTotal").map(|bytes| (bytes, "the machine's memory".to_owned()));
        let group = Cgroups::of_this_process().memory_limit();
        let group = group
            .map(|limit| (limit.value, format!("the control group ({})", limit.file.display())));
        let address_space = rustix::process::getrlimit(rustix::process::Resource::As).current;
        MemoryLimits {
            limits: machine.into_iter().chain(group).collect(),
            address_space,
            mapped: ProcFields::of_this_process().memory("VmSize").unwrap_or_default(),
            available: info.memory("MemAvailable"),
        }
    }
}

/// What a service takes at most.
fn service_parts(serve: &ServeConfig, lanes: u64) -> Vec<MemoryPart> {
    let connections = MemoryPart {
        what: "data of connections",
        bytes: serve.connection_memory as u64,
        from: format!("of {} connections at most", serve.connections),
        setting: Some("[serve] connection_memory"),
    };
    let own = serve.application.facts().memory.into_iter().map(|memory| MemoryPart {
        what: memory.purpose,
        bytes: if memory.is_per_lane { lanes * memory.bytes } else { memory.bytes },
        from: match memory.is_per_lane {
            true => format!("{lanes} x {}", memory.from),
            false => memory.from,
        },
        setting: Some(memory.setting),
    });
    [connections].into_iter().chain(own).collect()
}

/// What the functions keep for one shard, which is made once to see. 0 in a program whose allocator does not count.
fn local_bytes(chain: &AnyChain, steering: &Arc<Steering>) -> u64 {
    let before = allocation::live_bytes();
    let shards = steering.shards();
    let (id, hasher, steering) = (ShardId(0), FlowHasher::fixed(), steering.clone());
    let local = chain.shard(ShardInfo { id, shards, seed: 0, flows: 1, hasher, steering });
    let after = allocation::live_bytes();
    drop(local);
    after.saturating_sub(before)
}

/// Whether a thread draws the device's packets before they are due.
fn draws_ahead(device: &DeviceConfig) -> bool {
    matches!(&device.kind, DeviceKind::Sim(sim) if sim.driver == Driver::Pumped && sim.rate.is_some())
}

/// Whether a server behind the device replies to what it sends.
fn is_answered(device: &DeviceConfig) -> bool {
    matches!(&device.kind, DeviceKind::Sim(sim) if sim.replies.is_some())
}

/// Bytes, for people.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match UNITS.into_iter().find(|(_, size)| self.0 >= *size) {
            Some((unit, size)) => f.pad(&format!("{:.1} {unit}", self.0 as f64 / size as f64)),
            None => f.pad(&format!("{} B", self.0)),
        }
    }
}

#[cfg(test)]
mod tests;
