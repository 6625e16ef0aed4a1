//! A configuration in words, for `rheo check` and the head of a run.

use std::fmt;
use std::path::Path;

use rheostat_nf::registry::{ConfiguredFunction, FunctionFacts};
use rheostat_packet::MempoolConfig;
use rheostat_steer::Orientation;

use super::device::{LinkAddress, PcapConfig, SimConfig};
use super::{DeviceConfig, DeviceKind, Sections, WorkersConfig, class, slo};
use rheostat_settings::declared::DeclaredSettings;
use rheostat_settings::quantity::{Bytes, Count, Span};

/// Memory of one flow at most: the lines of its entry, three of them where two functions keep state or one
/// keeps much, and for each of its keys two index slots of eight bytes, as the index is between half and completely full.
fn bytes_per_flow(chain: &[ConfiguredFunction]) -> u64 {
    let facts: Vec<_> = chain.iter().map(ConfiguredFunction::facts).collect();
    let lines = |facts: &FunctionFacts| if facts.large_state { 2 } else { 1 };
    let lines: u64 = 1 + facts.iter().map(lines).sum::<u64>().max(1);
    let keys = if facts.iter().any(|facts| facts.second_key) { 2 } else { 1 };
    lines * 64 + keys * 16
}

/// The settings that differ from their defaults, each as `key value`, without those that are `described` in words of their own.
fn others<S: DeclaredSettings>(settings: &S, described: &[&str]) -> Vec<String> {
    let is_other = |difference: &String| {
        difference.split(' ').next().is_some_and(|key| !described.contains(&key))
    };
    settings.differences().into_iter().filter(is_other).collect()
}

/// A configuration in words.
#[derive(Clone, Copy, Debug)]
pub struct Description<'c> {
    sections: &'c Sections,
    workers: &'c WorkersConfig,
}

impl Sections {
    /// The configuration in words, with `workers` in place of its own: those that a placement picks.
    pub fn described_with<'c>(&'c self, workers: &'c WorkersConfig) -> Description<'c> {
        Description { sections: self, workers }
    }
}

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sections { devices, network, serve, chain, .. } = self.sections;
        for device in devices {
            writeln!(f, "device    {device}")?;
            writeln!(f, "          {}", device.kind)?;
        }
        for route in &network.routes {
            writeln!(f, "route     {}", route.describe(devices))?;
        }
        let limits = network.differences();
        if !limits.is_empty() {
            writeln!(f, "network   {}", limits.join(", "))?;
        }
        if let Some(serve) = serve {
            writeln!(f, "service   {serve}")?;
        } else if chain.is_empty() {
            writeln!(f, "chain     no function: everything is forwarded")?;
        }
        for function in chain {
            write!(f, "chain     {}: ", function.name())?;
            function.settings().describe(f)?;
        }
        self.describe_workers(f)?;
        self.describe_memory(f)?;
        self.describe_run(f)
    }
}

impl Description<'_> {
    fn describe_workers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { sections, workers } = self;
        match &workers.cores {
            Some(cores) => write!(f, "workers   cores {cores}")?,
            None => write!(f, "workers   every core the process may use")?,
        }
        if let Some(count) = workers.count {
            write!(f, ", {count} workers")?;
        }
        write!(f, ", polling {}", sections.polling)?;
        if let Some(priority) = workers.priority {
            write!(f, ", priority {priority}")?;
        }
        writeln!(f)?;
        match workers.lanes {
            Some(lanes) => write!(f, "lanes     {lanes}")?,
            None => write!(f, "lanes     one per worker")?,
        }
        if workers.queue_sharing > 1 {
            write!(f, ", {} to a queue", workers.queue_sharing)?;
            if sections.chain.iter().any(|function| function.facts().owns_flows()) {
                write!(f, ", which own its shards together")?;
            }
        }
        if workers.offloading.most > 0 {
            let lanes = workers.offloading;
            write!(f, ", of them {lanes} for single flows that others offload")?;
        }
        if workers.ordered {
            write!(f, ", packets leaving in the order of claims")?;
        }
        let handoff = Count(workers.handoff as u64);
        writeln!(f, ", handing off through rings of {handoff} packets")
    }

    fn describe_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.sections;
        let (shards, buckets) = (sections.state.shards, sections.steering.buckets);
        writeln!(f, "steering  {buckets} buckets, {} key", sections.steering.key)?;
        writeln!(f, "balance   {}", sections.balance)?;
        class::describe(&sections.classes, &sections.devices, f)?;
        slo::describe(&sections.slo, f)?;
        if sections.serve.is_some() {
            writeln!(f, "state     connections in {shards} shards")?;
        } else {
            let (flows, each) = (sections.state.flows, sections.state.flows_per_shard());
            let bytes =
                Bytes((each * shards as u64).saturating_mul(bytes_per_flow(&sections.chain)));
            writeln!(
                f,
                "state     {} flows in {shards} shards of {}, up to {bytes}",
                Count(flows),
                Count(each)
            )?;
        }
        let room = MempoolConfig::default();
        let buffer = u64::from(room.data_room) + u64::from(room.headroom);
        let buffers = u64::from(sections.pool.buffers);
        writeln!(f, "pool      {} buffers, {}", Count(buffers), Bytes(buffers * buffer))
    }

    fn describe_run(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.sections;
        match sections.run.duration {
            Some(duration) => write!(f, "run       for {}", Span(duration))?,
            None if sections.serve.is_some() => write!(f, "run       until interrupted")?,
            None => write!(f, "run       to the end of the input, or until interrupted")?,
        }
        match sections.run.seed {
            Some(seed) => write!(f, ", seed {seed}")?,
            None => write!(f, ", random seed")?,
        }
        if let Some(user) = &sections.run.user {
            write!(f, ", as {user} once devices are open")?;
        }
        write!(f, ", metrics every {}", Span(sections.observe.interval))?;
        let run = others(&sections.run, &["duration", "seed", "user"]);
        let others = run.into_iter().chain(others(&sections.observe, &["interval"]));
        others.into_iter().try_for_each(|other| write!(f, ", {other}"))
    }
}

impl fmt::Display for DeviceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.orientation {
            Orientation::Inside => write!(f, "{}, inside", self.name)?,
            Orientation::Outside => write!(f, "{}, outside", self.name)?,
            Orientation::ByPrefix(prefixes) => {
                let prefixes: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
                write!(f, "{}, both sides; inside is {}", self.name, prefixes.join(", "))?;
            }
        }
        for (index, LinkAddress { address, length }) in self.addresses.iter().enumerate() {
            write!(f, "{}{address}/{length}", if index == 0 { "; " } else { ", " })?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, "; packets of {mtu} bytes at most")?;
        }
        Ok(())
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceKind::Pcap(captures) => captures.fmt(f),
            DeviceKind::Sim(nic) => nic.fmt(f),
            DeviceKind::Live(live) => live.fmt(f),
            DeviceKind::Host => f.write_str("host: TCP by the kernel, for development"),
            DeviceKind::Registered(own) => own.fmt(f),
        }
    }
}

impl fmt::Display for PcapConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |file: &Option<std::path::PathBuf>, absent: &str| {
            file.as_deref().map(Path::display).map_or(absent.to_owned(), |name| name.to_string())
        };
        let input = name(&self.input, "a capture still to be given");
        let output = name(&self.output, "no capture");
        write!(f, "pcap reading {input} {}, writing {output}", self.pace)
    }
}

impl fmt::Display for SimConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (link, traffic) = (Count(self.link), &self.traffic);
        match self.rate {
            Some(rate) => write!(f, "sim at {}pps over {link}bps", Count(rate))?,
            None => write!(f, "sim over {link}bps")?,
        }
        write!(f, ", {}, {} descriptors per queue", self.driver, Count(u64::from(self.queue)))?;
        if let Some(delay) = self.replies {
            write!(f, ", a server that replies after {}", Span(delay))?;
        }
        if self.rate.is_none() {
            return Ok(());
        }
        if traffic.clients_only {
            f.write_str(", clients only")?;
        }
        let (flows, share) = (Count(u64::from(traffic.flows)), traffic.ipv6_share * 100.0);
        write!(f, ", {flows} flows, {share:.0} % IPv6, Zipf {}", traffic.zipf)?;
        if let Some(packets) = traffic.packets {
            write!(f, ", {} packets", Count(packets))?;
        }
        let others = others(traffic, &["clients_only", "flows", "ipv6_share", "zipf", "packets"]);
        others.into_iter().try_for_each(|other| write!(f, ", {other}"))
    }
}
