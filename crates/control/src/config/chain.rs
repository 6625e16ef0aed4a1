//! `[chain]` and `[function.NAME]`: the functions that packets pass, and their settings.

use std::sync::Arc;

use rheostat_nf::registry::{ConfiguredFunction, FunctionSettings, Registration};
use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{choice, list};
use rheostat_settings::reader::{Table, Value};

use super::DeviceConfig;
use crate::registry::Registry;

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
    settle(&mut configured);
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

/// Gives functions the settings that they need in this chain.
fn settle(chain: &mut [ConfiguredFunction]) {
    for at in 0..chain.len() {
        let others = chain.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<_> = others.map(|(_, function)| function.facts()).collect();
        let others: Vec<_> = others.iter().collect();
        if let Some(settings) = chain[at].settings().among(&others) {
            chain[at] = ConfiguredFunction::new(chain[at].name(), settings);
        }
    }
}

/// A conversion to functions of which each comes once.
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
        Some(functions)
    }
}

fn not_in_chain(table: &Table<'_>, findings: &Findings) -> Finding {
    let name = table.key().rsplit('.').next().unwrap_or_default();
    table
        .mistake(format!("`{name}` has settings, but is not in the chain"), "these settings")
        .at(findings.place("chain.functions"), "the chain")
        .help(format!("add \"{name}\" to the chain, or remove its tables"))
}
