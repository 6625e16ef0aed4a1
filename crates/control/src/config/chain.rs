//! `[chain]` and `[function.NAME]`: the functions that packets pass, and their settings.

use std::sync::Arc;

use rheostat_nf::registry::{ConfiguredFunction, FunctionSettings, Registration};
use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{choice, list};
use rheostat_settings::reader::{Table, Value};
use rheostat_settings::suggestion::enumerate;

use super::DeviceConfig;
use crate::registry::Registry;

/// The chains that are compiled in, besides that of no function: one of each alone, and these.
const CHAINS: [&[&str]; 1] = [&["firewall", "nat"]];

/// The settings of a function; `None` when they could not be read.
type Settings = Option<Arc<dyn FunctionSettings>>;

/// Reads the chain and the tables of its functions. Rules may name `devices`.
pub(super) fn read(
    root: &mut Table<'_>,
    devices: &[DeviceConfig],
    registry: &Registry,
    findings: &mut Findings,
) -> Vec<ConfiguredFunction> {
    let example = "[chain]\nfunctions = [\"firewall\"]";
    let names = root.require_section("chain", example, findings, |table, findings| {
        let example = "functions = [\"firewall\"], or [] to forward everything";
        table.require("functions", example, findings, functions(registry))
    });
    let names = names.flatten();
    let devices: Vec<_> = devices.iter().map(DeviceConfig::as_device).collect();
    let settings = root.section("function", findings, |table, findings| {
        let mut settings: Vec<(&str, Settings)> = Vec::new();
        for function in &registry.functions {
            let Some(read) = function.read else { continue };
            let one = table.section(function.name, findings, |table, findings| {
                let is_named = |names: &Vec<&Registration>| {
                    names.iter().any(|named| named.name == function.name)
                };
                if !names.as_ref().is_none_or(is_named) {
                    findings.push(not_in_chain(table, findings));
                }
                read(table, &devices, findings)
            });
            settings.extend(one.map(|one| (function.name, one)));
        }
        settings
    });
    let settings = settings.unwrap_or_default();
    let mut configured = Vec::new();
    for function in names.into_iter().flatten() {
        let read = settings.iter().find(|(name, _)| *name == function.name);
        let one = match read {
            Some((_, one)) => one.clone(),
            None => default(function, &devices, findings),
        };
        configured.extend(one.map(|one| ConfiguredFunction::new(function.name, one)));
    }
    alone(&configured, findings);
    configured
}

/// The settings of a function without a table, if it can do without.
fn default(function: &Registration, devices: &[Device], findings: &mut Findings) -> Settings {
    let key = format!("function.{}", function.name);
    if findings.place(&key).is_some() {
        // It is no table, which was noted.
        return None;
    }
    match (function.default)(devices) {
        Ok(settings) => Some(settings),
        Err(missing) => {
            let place = findings.place("chain.functions");
            let finding = Finding::mistake(&key, missing.message)
                .at(place, format!("the chain has a {}", missing.noun))
                .help(missing.help);
            findings.push(finding);
            None
        }
    }
}

/// Refuses a NAT on shared objects beside others.
fn alone(configured: &[ConfiguredFunction], findings: &mut Findings) {
    let is_shared =
        |function: &ConfiguredFunction| function.name() == "nat" && !function.facts().owns_flows();
    if configured.len() > 1 && configured.iter().any(is_shared) {
        let finding = Finding::mistake("chain.functions", "a NAT on shared objects stands alone")
            .at(findings.place("chain.functions"), "in one chain with another")
            .at(findings.place("function.nat.state"), "what others do cannot be undone")
            .help("remove `state`, or the other functions from the chain");
        findings.push(finding);
    }
}

/// A conversion to functions of which each comes once, in a chain that there is.
fn functions<'r>(
    registry: &'r Registry,
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<Vec<&'r Registration>> {
    let words: Vec<_> =
        registry.functions.iter().map(|function| (function.name, function)).collect();
    move |value, findings| {
        let functions = list(choice(&words))(value, findings)?;
        let names: Vec<_> = functions.iter().map(|function| function.name).collect();
        for (index, name) in names.iter().enumerate() {
            let Some(first) = names[..index].iter().position(|other| other == name) else {
                continue;
            };
            let key = format!("{}[{index}]", value.key);
            let finding = Finding::mistake(&key, format!("`{name}` is in the chain twice"))
                .at(findings.place(&format!("{}[{first}]", value.key)), "first here")
                .at(findings.place(&key), "and again here")
                .help("a packet passes a function once; remove one of them");
            findings.push(finding);
            return None;
        }
        if names.len() > 1 && !CHAINS.contains(&names.as_slice()) {
            let chains = CHAINS.map(written);
            let finding = value.mistake("these functions do not make a chain in this order");
            let help = format!(
                "have one function, or {}: packets from inside pass them in this order",
                enumerate(chains.iter().map(String::as_str))
            );
            findings.push(finding.help(help));
            return None;
        }
        Some(functions)
    }
}

/// A chain as it is written in a file.
fn written(chain: &[&str]) -> String {
    let words: Vec<_> = chain.iter().map(|name| format!("\"{name}\"")).collect();
    format!("[{}]", words.join(", "))
}

fn not_in_chain(table: &Table<'_>, findings: &Findings) -> Finding {
    let name = table.key().rsplit('.').next().unwrap_or_default();
    table
        .mistake(format!("`{name}` has settings, but is not in the chain"), "these settings")
        .at(findings.place("chain.functions"), "the chain")
        .help(format!("add \"{name}\" to the chain, or remove its tables"))
}
