//! From the lines of a case about its chain, or from a configuration, to the chain.

use std::sync::Arc;

use rheostat_control::config::StateConfig;
use rheostat_control::{Config, Registry};
use rheostat_functions::Monitor;
use rheostat_functions::monitor::{MonitorFunction, MonitorLog};
use rheostat_ip::RunLimit;
use rheostat_nf::registry::{BuildCx, RuleList, chain_of};
use rheostat_nf::{AnyChain, link};
use rheostat_state::txn::Objects;

use crate::control::Control;
use crate::script::Script;

/// The seed of a function's random choices: the same in each run of a case.
const SEED: u64 = 3;

/// A chain to be tested.
pub(crate) struct Tested {
    pub(crate) chain: AnyChain,
    pub(crate) control: Control,
    /// The rules of functions that have some, with the functions.
    pub(crate) rules: Vec<(String, Arc<dyn RuleList>)>,
    pub(crate) shards: usize,
    pub(crate) flows_per_shard: usize,
}

impl Tested {
    pub(crate) fn new(chain: AnyChain, state: &StateConfig) -> Tested {
        let flows_per_shard = state.flows_per_shard() as usize;
        let (control, rules) = (Control::default(), Vec::new());
        Tested { chain, control, rules, shards: state.shards, flows_per_shard }
    }
}

/// The configuration that a case states.
pub(crate) fn configure(script: &Script, registry: &Registry) -> Result<Config, String> {
    // The router is the network layer alone.
    let functions = script.chain.iter().filter(|name| *name != "router");
    let names: Vec<_> = functions.map(|name| format!("\"{name}\"")).collect();
    let text = format!(
        "[[device]]\nname = \"lan\"\nkind = \"sim\"\nrate = \"1Mpps\"\nside = \"inside\"\n\
         [[device]]\nname = \"wan\"\nkind = \"sim\"\nrate = \"1Mpps\"\nside = \"outside\"\n\
         [chain]\nfunctions = [{}]\n[state]\n{}\n{}",
        names.join(", "),
        script.state,
        script.settings
    );
    // Its lines are not those of the case, but the message shows the text.
    let name = format!("{}, its settings", script.name);
    Config::parse(&text, &name, registry)
        .map(|(config, _)| config)
        .map_err(|report| report.render(false))
}

/// Builds the chain of a configuration for so many lanes. `script` has the commands that its functions get.
///
/// # Errors
/// When a function cannot be made as configured, or the functions make no chain.
pub(crate) fn build(
    registry: &Registry,
    script: &Script,
    config: &Config,
    lanes: usize,
) -> Result<Tested, String> {
    let objects = Objects::seeded(lanes, SEED);
    // Those of shards hold; a case has too few packets for more.
    let errors = RunLimit::unlimited();
    let cx = BuildCx {
        objects: &objects,
        errors: &errors,
        seed: Some(SEED),
        runs: false,
        predecessor: None,
    };
    let mut control = Control::of(config, script);
    let (mut links, mut rules) = (Vec::new(), Vec::new());
    for function in &config.chain {
        // Its records are compared, with a log or without.
        if let Some(MonitorFunction { monitor, .. }) = function.get() {
            let log = MonitorLog::new();
            control.watch(log.clone());
            links.push(link(Monitor::new(monitor.clone(), Some(log))));
            continue;
        }
        let built = function.settings().build(&cx).map_err(|error| error.to_string())?;
        links.extend(built.link);
        rules.extend(built.rules.map(|list| (function.name().to_owned(), list)));
        control.extend(built.control);
    }
    let chain = chain_of(links, &registry.chains).map_err(|error| error.to_string())?;
    Ok(Tested { control, rules, ..Tested::new(chain, &config.state) })
}
