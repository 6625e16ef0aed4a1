//! A configuration in words, for `rheo check` and the head of a run.

use std::fmt;
use std::path::Path;

use rheostat_functions::firewall::{Action, FirewallConfig};
use rheostat_functions::nat::{Filtering, Mapping, NatConfig, Sharing};
use rheostat_packet::MempoolConfig;
use rheostat_steer::Orientation;

use super::device::{LinkAddress, PcapConfig, SimConfig};
use super::nat::NatFunction;
use super::{Config, DeviceConfig, DeviceKind, FunctionConfig};
use super::{antiddos, bridge, class, lb, monitor, policer, portscan, slo};
use rheostat_settings::quantity::{Bytes, Count, Span};

/// Memory of one flow at most: the lines of its entry, three of them where two functions keep state or one
/// keeps much, and for each of its keys two index slots of eight bytes, as the index is between half and completely full.
fn bytes_per_flow(chain: &[FunctionConfig]) -> u64 {
    let two_keys = |function: &FunctionConfig| {
        matches!(function, FunctionConfig::Nat(_) | FunctionConfig::Lb(_))
    };
    let monitors = chain.iter().any(|function| matches!(function, FunctionConfig::Monitor(_)));
    let entry = if chain.len() > 1 || monitors { 192 } else { 128 };
    let keys = if chain.iter().any(two_keys) { 2 } else { 1 };
    entry + keys * 16
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for device in &self.devices {
            writeln!(f, "device    {device}")?;
            writeln!(f, "          {}", device.kind)?;
        }
        for route in &self.network.routes {
            writeln!(f, "route     {}", route.describe(&self.devices))?;
        }
        if let Some(serve) = &self.serve {
            writeln!(f, "service   {serve}")?;
        } else if self.chain.is_empty() {
            writeln!(f, "chain     no function: everything is forwarded")?;
        }
        for function in &self.chain {
            match function {
                FunctionConfig::Firewall(firewall) => {
                    write!(f, "chain     firewall: ")?;
                    describe_firewall(firewall, f)?;
                }
                FunctionConfig::Router => writeln!(f, "chain     router")?,
                FunctionConfig::Policer(policer) => {
                    write!(f, "chain     policer: ")?;
                    policer::describe(policer, f)?;
                }
                FunctionConfig::AntiDdos(config) => {
                    write!(f, "chain     antiddos: ")?;
                    antiddos::describe(config, f)?;
                }
                FunctionConfig::Bridge(config) => {
                    write!(f, "chain     bridge: ")?;
                    bridge::describe(config, f)?;
                }
                FunctionConfig::Portscan(config) => {
                    write!(f, "chain     portscan: ")?;
                    portscan::describe(config, f)?;
                }
                FunctionConfig::Monitor(config) => {
                    write!(f, "chain     monitor: ")?;
                    monitor::describe(config, f)?;
                }
                FunctionConfig::Lb(config) => {
                    write!(f, "chain     lb: ")?;
                    lb::describe(config, f)?;
                }
                FunctionConfig::Nat(NatFunction { nat, log, sharing }) => {
                    write!(f, "chain     nat: ")?;
                    describe_nat(nat, f)?;
                    if let Some(Sharing { flows, refresh_interval }) = sharing {
                        let (flows, interval) = (Count(*flows as u64), Span(*refresh_interval));
                        writeln!(
                            f,
                            "          shared by all lanes: {flows} flows, refreshed every {interval}"
                        )?;
                    }
                    if let Some(log) = log {
                        writeln!(f, "          mappings are logged to {}", log.display())?;
                    }
                }
            }
        }
        self.describe_workers(f)?;
        self.describe_memory(f)?;
        self.describe_run(f)
    }
}

fn describe_firewall(firewall: &FirewallConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let word = |action: Action| match action {
        Action::Allow => "allowed",
        Action::Deny => "denied",
        Action::Reject => "rejected",
    };
    match firewall.rules.rules.len() {
        0 => f.write_str("no rules")?,
        1 => f.write_str("1 rule")?,
        rules => write!(f, "{rules} rules")?,
    }
    let (inside, outside) = (firewall.rules.default_inside, firewall.rules.default_outside);
    write!(f, ", else from inside {}, from outside {}", word(inside), word(outside))?;
    write!(f, "; {} half open per shard", Count(u64::from(firewall.half_open_per_shard)))?;
    f.write_str(if firewall.tcp.liberal { "; windows not enforced" } else { "" })?;
    f.write_str(if firewall.tcp.pickup { "; connections taken up midway" } else { "" })?;
    writeln!(f)
}

fn describe_nat(nat: &NatConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mapping = match nat.mapping {
        Mapping::EndpointIndependent => "endpoint-independent",
        Mapping::AddressAndPortDependent => "address-and-port-dependent",
    };
    let filtering = match nat.filtering {
        Filtering::EndpointIndependent => "from any host",
        Filtering::AddressDependent => "from hosts that were sent to",
        Filtering::AddressAndPortDependent => "from endpoints that were sent to",
    };
    let addresses = nat.external.len();
    let (low, high) = (nat.ports.start(), nat.ports.end());
    write!(f, "{addresses} external, ports {low}-{high}; {mapping}; packets in {filtering}")?;
    if nat.deterministic {
        write!(f, "; a block of ports for each host")?;
    }
    if let Some(quota) = nat.quota {
        write!(f, "; {quota} ports for one host at most")?;
    }
    match nat.forwards.len() {
        0 => writeln!(f),
        count => writeln!(f, "; {count} forwarded"),
    }
}

impl Config {
    fn describe_workers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.workers.cores {
            Some(cores) => write!(f, "workers   cores {cores}")?,
            None => write!(f, "workers   every core the process may use")?,
        }
        if let Some(count) = self.workers.count {
            write!(f, ", {count} workers")?;
        }
        write!(f, ", polling {}", self.polling)?;
        if let Some(priority) = self.workers.priority {
            write!(f, ", priority {priority}")?;
        }
        writeln!(f)?;
        match self.workers.lanes {
            Some(lanes) => write!(f, "lanes     {lanes}")?,
            None => write!(f, "lanes     one per worker")?,
        }
        if self.workers.queue_sharing > 1 {
            write!(f, ", {} to a queue", self.workers.queue_sharing)?;
            if self.chain.iter().any(FunctionConfig::owns_flows) {
                write!(f, ", which own its shards together")?;
            }
        }
        if self.workers.offloading.most > 0 {
            let lanes = self.workers.offloading;
            write!(f, ", of them {lanes} for single flows that others offload")?;
        }
        if self.workers.ordered {
            write!(f, ", packets leaving in the order of claims")?;
        }
        let handoff = Count(self.workers.handoff as u64);
        writeln!(f, ", handing off through rings of {handoff} packets")
    }

    fn describe_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shards, buckets) = (self.state.shards, self.steering.buckets);
        writeln!(f, "steering  {buckets} buckets, {} key", self.steering.key)?;
        writeln!(f, "balance   {}", self.balance)?;
        class::describe(&self.classes, &self.devices, f)?;
        slo::describe(&self.slo, f)?;
        if self.serve.is_some() {
            writeln!(f, "state     connections in {shards} shards")?;
        } else {
            let (flows, each) = (self.state.flows, self.state.flows_per_shard());
            let bytes = Bytes((each * shards as u64).saturating_mul(bytes_per_flow(&self.chain)));
            writeln!(
                f,
                "state     {} flows in {shards} shards of {}, up to {bytes}",
                Count(flows),
                Count(each)
            )?;
        }
        let room = MempoolConfig::default();
        let buffer = u64::from(room.data_room) + u64::from(room.headroom);
        let buffers = u64::from(self.pool.buffers);
        writeln!(f, "pool      {} buffers, {}", Count(buffers), Bytes(buffers * buffer))
    }

    fn describe_run(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.run.duration {
            Some(duration) => write!(f, "run       for {}", Span(duration))?,
            None if self.serve.is_some() => write!(f, "run       until interrupted")?,
            None => write!(f, "run       to the end of the input, or until interrupted")?,
        }
        match self.run.seed {
            Some(seed) => write!(f, ", seed {seed}")?,
            None => write!(f, ", random seed")?,
        }
        if let Some(user) = &self.run.user {
            write!(f, ", as {user} once devices are open")?;
        }
        write!(f, ", metrics every {}", Span(self.observe.interval))
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
        match traffic.packets {
            Some(packets) => write!(f, ", {} packets", Count(packets)),
            None => Ok(()),
        }
    }
}
