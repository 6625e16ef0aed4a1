//! `[chain]` and `[function.NAME]`: the functions that packets pass, and their settings.

use std::path::Path;

use rheostat_functions::antiddos::AntiDdosConfig;
use rheostat_functions::bridge::BridgeConfig;
use rheostat_functions::firewall::FirewallConfig;
use rheostat_functions::lb::LbConfig;
use rheostat_functions::policer::PolicerConfig;
use rheostat_functions::portscan::PortscanConfig;

use super::monitor::{self, MonitorFunction};
use super::nat::{self, NatFunction};
use super::{DeviceConfig, antiddos, bridge, firewall, lb, policer, portscan};
use crate::registry::Registry;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{choice, list};
use rheostat_settings::reader::{Table, Value};
use rheostat_settings::suggestion::enumerate;

/// A function of the chain with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionConfig {
    /// The stateful firewall.
    Firewall(FirewallConfig),
    /// Translation of addresses and ports.
    Nat(NatFunction),
    /// The policer.
    Policer(PolicerConfig),
    /// The load balancer.
    Lb(LbConfig),
    /// The monitor.
    Monitor(MonitorFunction),
    /// The detector of attacks with many flows.
    AntiDdos(AntiDdosConfig),
    /// The learning bridge.
    Bridge(BridgeConfig),
    /// The detector of port scans.
    Portscan(PortscanConfig),
    /// Nothing besides what every chain does whose devices have addresses: routing.
    Router,
}

impl FunctionConfig {
    /// The file that the function logs to, if it logs.
    pub fn log(&self) -> Option<&Path> {
        match self {
            FunctionConfig::Nat(nat) => nat.log.as_deref(),
            FunctionConfig::Monitor(monitor) => monitor.log.as_deref(),
            FunctionConfig::Lb(lb) => lb.log.as_deref(),
            FunctionConfig::Firewall(_)
            | FunctionConfig::Policer(_)
            | FunctionConfig::AntiDdos(_)
            | FunctionConfig::Bridge(_)
            | FunctionConfig::Portscan(_)
            | FunctionConfig::Router => None,
        }
    }

    /// Whether its flows are in shards and nowhere else, so that lanes which share a queue own these together.
    pub fn owns_flows(&self) -> bool {
        match self {
            FunctionConfig::Firewall(_)
            | FunctionConfig::Policer(_)
            | FunctionConfig::Lb(_)
            | FunctionConfig::Monitor(_) => true,
            FunctionConfig::Nat(nat) => nat.sharing.is_none(),
            FunctionConfig::AntiDdos(_)
            | FunctionConfig::Bridge(_)
            | FunctionConfig::Portscan(_)
            | FunctionConfig::Router => false,
        }
    }

    /// The function's name in the chain.
    pub fn name(&self) -> &'static str {
        word(match self {
            FunctionConfig::Firewall(_) => FunctionName::Firewall,
            FunctionConfig::Nat(_) => FunctionName::Nat,
            FunctionConfig::Policer(_) => FunctionName::Policer,
            FunctionConfig::Lb(_) => FunctionName::Lb,
            FunctionConfig::Monitor(_) => FunctionName::Monitor,
            FunctionConfig::AntiDdos(_) => FunctionName::AntiDdos,
            FunctionConfig::Bridge(_) => FunctionName::Bridge,
            FunctionConfig::Portscan(_) => FunctionName::Portscan,
            FunctionConfig::Router => FunctionName::Router,
        })
    }
}

/// The functions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionName {
    Firewall,
    Nat,
    Policer,
    Lb,
    Monitor,
    AntiDdos,
    Bridge,
    Portscan,
    Router,
}

const FUNCTIONS: [(&str, FunctionName); 9] = [
    ("firewall", FunctionName::Firewall),
    ("nat", FunctionName::Nat),
    ("policer", FunctionName::Policer),
    ("lb", FunctionName::Lb),
    ("monitor", FunctionName::Monitor),
    ("antiddos", FunctionName::AntiDdos),
    ("bridge", FunctionName::Bridge),
    ("portscan", FunctionName::Portscan),
    ("router", FunctionName::Router),
];

/// The chains that are compiled in, besides that of no function: one of each alone, and these.
const CHAINS: [&[FunctionName]; 1] = [&[FunctionName::Firewall, FunctionName::Nat]];

/// The settings of each function that was named.
#[derive(Default)]
struct Settings {
    firewall: Option<FirewallConfig>,
    nat: Option<NatFunction>,
    policer: Option<PolicerConfig>,
    lb: Option<LbConfig>,
    monitor: Option<MonitorFunction>,
    antiddos: Option<AntiDdosConfig>,
    bridge: Option<BridgeConfig>,
    portscan: Option<PortscanConfig>,
}

/// Reads the chain and the tables of its functions. Rules may name `devices`.
pub(super) fn read(
    root: &mut Table<'_>,
    devices: &[DeviceConfig],
    registry: &Registry,
    findings: &mut Findings,
) -> Vec<FunctionConfig> {
    let example = "[chain]\nfunctions = [\"firewall\"]";
    let names = root.require_section("chain", example, findings, |table, findings| {
        let example = "functions = [\"firewall\"], or [] to forward everything";
        let registered: Vec<_> = (registry.functions.iter())
            .filter_map(|function| FUNCTIONS.into_iter().find(|(name, _)| *name == function.name))
            .collect();
        let functions =
            |value: &Value<'_>, findings: &mut Findings| functions(value, &registered, findings);
        table.require("functions", example, findings, functions)
    });
    let names = names.flatten();
    let in_chain = |name| names.as_ref().is_none_or(|names| names.contains(&name));
    let unused = |name, table: &Table<'_>, findings: &mut Findings| {
        if !in_chain(name) {
            findings.push(not_in_chain(table, findings));
        }
    };
    let settings = root.section("function", findings, |table, findings| Settings {
        firewall: table.section("firewall", findings, |table, findings| {
            unused(FunctionName::Firewall, table, findings);
            firewall::read(table, devices, findings)
        }),
        nat: table
            .section("nat", findings, |table, findings| {
                unused(FunctionName::Nat, table, findings);
                nat::read(table, devices, findings)
            })
            .flatten(),
        policer: table
            .section("policer", findings, |table, findings| {
                unused(FunctionName::Policer, table, findings);
                policer::read(table, findings)
            })
            .flatten(),
        lb: table.section("lb", findings, |table, findings| {
            unused(FunctionName::Lb, table, findings);
            lb::read(table, devices, findings)
        }),
        monitor: table.section("monitor", findings, |table, findings| {
            unused(FunctionName::Monitor, table, findings);
            monitor::read(table, findings)
        }),
        antiddos: table.section("antiddos", findings, |table, findings| {
            unused(FunctionName::AntiDdos, table, findings);
            antiddos::read(table, findings)
        }),
        bridge: table.section("bridge", findings, |table, findings| {
            unused(FunctionName::Bridge, table, findings);
            bridge::read(table, devices, findings)
        }),
        portscan: table.section("portscan", findings, |table, findings| {
            unused(FunctionName::Portscan, table, findings);
            portscan::read(table, findings)
        }),
    });
    for (name, what, missing, example) in [
        (FunctionName::Nat, "NAT", "the NAT has no external address", nat::EXAMPLE),
        (FunctionName::Policer, "policer", "the policer has no rate", policer::EXAMPLE),
    ] {
        let key = format!("function.{}", word(name));
        let named = names.as_ref().is_some_and(|names| names.contains(&name));
        if named && findings.place(&key).is_none() {
            let finding = Finding::mistake(&key, missing)
                .at(findings.place("chain.functions"), format!("the chain has a {what}"));
            findings.push(finding.help(format!("add\n{example}")));
        }
    }
    if names.as_ref().is_some_and(|names| names.contains(&FunctionName::Lb))
        && findings.place("function.lb").is_none()
    {
        let finding = Finding::mistake("function.lb", "the load balancer has no service")
            .at(findings.place("chain.functions"), "the chain has a load balancer");
        findings.push(finding.help("add its services; configs/lb.toml is an example"));
    }
    let settings = settings.unwrap_or_default();
    let is_shared = settings.nat.as_ref().is_some_and(|nat| nat.sharing.is_some());
    if is_shared && names.as_ref().is_some_and(|names| names.len() > 1) {
        let finding = Finding::mistake("chain.functions", "a NAT on shared objects stands alone")
            .at(findings.place("chain.functions"), "in one chain with another")
            .at(findings.place("function.nat.state"), "what others do cannot be undone")
            .help("remove `state`, or the other functions from the chain");
        findings.push(finding);
    }
    let config = |name| match name {
        FunctionName::Firewall => {
            Some(FunctionConfig::Firewall(settings.firewall.clone().unwrap_or_default()))
        }
        // Without settings, there is a mistake that was noted.
        FunctionName::Nat => settings.nat.clone().map(FunctionConfig::Nat),
        FunctionName::Policer => settings.policer.clone().map(FunctionConfig::Policer),
        FunctionName::Lb => settings.lb.clone().map(FunctionConfig::Lb),
        FunctionName::Monitor => {
            Some(FunctionConfig::Monitor(settings.monitor.clone().unwrap_or_default()))
        }
        FunctionName::AntiDdos => {
            Some(FunctionConfig::AntiDdos(settings.antiddos.clone().unwrap_or_default()))
        }
        FunctionName::Bridge => {
            let default = || BridgeConfig::new(bridge::ports(devices));
            Some(FunctionConfig::Bridge(settings.bridge.clone().unwrap_or_else(default)))
        }
        FunctionName::Portscan => {
            Some(FunctionConfig::Portscan(settings.portscan.clone().unwrap_or_default()))
        }
        FunctionName::Router => Some(FunctionConfig::Router),
    };
    names.unwrap_or_default().into_iter().filter_map(config).collect()
}

/// A conversion to functions of which each comes once, in a chain that there is.
fn functions(
    value: &Value<'_>,
    registered: &[(&'static str, FunctionName)],
    findings: &mut Findings,
) -> Option<Vec<FunctionName>> {
    let names = list(choice(registered))(value, findings)?;
    for (index, name) in names.iter().enumerate() {
        let Some(first) = names[..index].iter().position(|other| other == name) else { continue };
        let word = word(*name);
        let key = format!("{}[{index}]", value.key);
        let finding = Finding::mistake(&key, format!("`{word}` is in the chain twice"))
            .at(findings.place(&format!("{}[{first}]", value.key)), "first here")
            .at(findings.place(&key), "and again here")
            .help("a packet passes a function once; remove one of them");
        findings.push(finding);
        return None;
    }
    if names.len() > 1 && !CHAINS.contains(&names.as_slice()) {
        let named = |chain: &[FunctionName]| {
            let words: Vec<_> = chain.iter().map(|name| format!("\"{}\"", word(*name))).collect();
            format!("[{}]", words.join(", "))
        };
        let chains: Vec<_> = CHAINS.iter().map(|chain| named(chain)).collect();
        let finding = value.mistake("these functions do not make a chain in this order");
        let help = format!(
            "have one function, or {}: packets from inside pass them in this order",
            enumerate(chains.iter().map(String::as_str))
        );
        findings.push(finding.help(help));
        return None;
    }
    Some(names)
}

fn word(name: FunctionName) -> &'static str {
    FUNCTIONS.iter().find(|(_, known)| *known == name).map_or("", |(word, _)| word)
}

fn not_in_chain(table: &Table<'_>, findings: &Findings) -> Finding {
    let name = table.key().rsplit('.').next().unwrap_or_default();
    table
        .mistake(format!("`{name}` has settings, but is not in the chain"), "these settings")
        .at(findings.place("chain.functions"), "the chain")
        .help(format!("add \"{name}\" to the chain, or remove its tables"))
}
