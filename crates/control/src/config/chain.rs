//! `[chain]` and `[function.NAME]`: the functions that packets pass, and their settings.

use rheostat_nf::function::firewall::FirewallConfig;

use super::{DeviceConfig, firewall};
use crate::diagnostic::Finding;
use crate::findings::Findings;
use crate::reader::convert::{choice, list};
use crate::reader::{Table, Value};

/// A function of the chain with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionConfig {
    /// The stateful firewall.
    Firewall(FirewallConfig),
}

/// The functions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionName {
    Firewall,
}

const FUNCTIONS: [(&str, FunctionName); 1] = [("firewall", FunctionName::Firewall)];

/// Reads the chain and the tables of its functions. Rules may name `devices`.
pub(super) fn read(
    root: &mut Table<'_>,
    devices: &[DeviceConfig],
    findings: &mut Findings,
) -> Vec<FunctionConfig> {
    let example = "[chain]\nfunctions = [\"firewall\"]";
    let names = root.require_section("chain", example, findings, |table, findings| {
        let example = "functions = [\"firewall\"], or [] to forward everything";
        table.require("functions", example, findings, functions)
    });
    let names = names.flatten();
    let in_chain = |name| names.as_ref().is_none_or(|names| names.contains(&name));
    let settings = root.section("function", findings, |table, findings| {
        table.section("firewall", findings, |table, findings| {
            if !in_chain(FunctionName::Firewall) {
                findings.push(not_in_chain(table, findings));
            }
            firewall::read(table, devices, findings)
        })
    });
    let settings = settings.flatten().unwrap_or_default();
    let names = names.unwrap_or_default().into_iter();
    names.map(|FunctionName::Firewall| FunctionConfig::Firewall(settings.clone())).collect()
}

/// A conversion to functions of which each comes once.
fn functions(value: &Value<'_>, findings: &mut Findings) -> Option<Vec<FunctionName>> {
    let names = list(choice(&FUNCTIONS))(value, findings)?;
    for (index, name) in names.iter().enumerate() {
        let Some(first) = names[..index].iter().position(|other| other == name) else { continue };
        let word = FUNCTIONS.iter().find(|(_, known)| known == name).map_or("", |(word, _)| word);
        let key = format!("{}[{index}]", value.key);
        let finding = Finding::mistake(&key, format!("`{word}` is in the chain twice"))
            .at(findings.place(&format!("{}[{first}]", value.key)), "first here")
            .at(findings.place(&key), "and again here")
            .help("a packet passes a function once; remove one of them");
        findings.push(finding);
        return None;
    }
    Some(names)
}

fn not_in_chain(table: &Table<'_>, findings: &Findings) -> Finding {
    let name = table.key().rsplit('.').next().unwrap_or_default();
    table
        .mistake(format!("`{name}` has settings, but is not in the chain"), "these settings")
        .at(findings.place("chain.functions"), "the chain")
        .help(format!("add \"{name}\" to the chain, or remove its tables"))
}
