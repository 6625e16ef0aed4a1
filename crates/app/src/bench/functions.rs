//! Chains of registered functions, as `rheo bench nf` names and configures them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rheostat_control::{Config, LoadError, Overrides, Registry};
use rheostat_measure::MeasureError;
use rheostat_measure::nf::{ChainKind, FunctionChain};
use thiserror::Error;

use crate::app::App;
use crate::chains;

/// Why a chain cannot be measured, or its measurement gave no figure.
#[derive(Debug, Error)]
pub(crate) enum NfError {
    /// The name is neither one that comes along, nor registered.
    #[error(
        "there is no chain {name:?} to measure: there are {}, functions by name ({}), and several of these in a row, such as \
         monitor+firewall",
        list(ChainKind::ALL.map(ChainKind::name)), functions.join(", ")
    )]
    Unknown { name: String, functions: Vec<&'static str> },
    /// The functions, as they are by default or as a file has them, do not make a chain.
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

fn list<const N: usize>(names: [&str; N]) -> String {
    names.join(", ")
}

/// The chains with these names, or that of the configuration if there are none.
///
/// # Errors
/// [`NfError`] when there is no such chain, or its functions do not go together.
pub(super) fn chains_of(
    app: &App,
    names: &[String],
    config: Option<&Path>,
) -> Result<Vec<ChainKind>, NfError> {
    match config {
        Some(path) if names.is_empty() => {
            let (config, _) = Config::load(path, &Overrides::default(), &app.registry)?;
            Ok(vec![of_config(app, config, Some(path))?])
        }
        _ => names.iter().map(|name| chain_of(app, name, config)).collect(),
    }
}

/// The chain with this name.
fn chain_of(app: &App, name: &str, config: Option<&Path>) -> Result<ChainKind, NfError> {
    let registry = &app.registry;
    let known = ChainKind::ALL.into_iter().find(|kind| kind.name() == name);
    if let Some(kind) = known.filter(|_| config.is_none()) {
        return Ok(kind);
    }
    let functions: Vec<_> = name.split('+').collect();
    let is_registered =
        |name: &&str| registry.functions.iter().any(|function| function.name == *name);
    if !functions.iter().all(is_registered) {
        let functions = registry.functions.iter().map(|function| function.name).collect();
        return Err(NfError::Unknown { name: name.into(), functions });
    }
    let (config, path) = match config {
        Some(path) => (of_file(path, &functions, registry)?, Some(path)),
        None => (parse(&by_default(&functions), name, registry)?, None),
    };
    of_config(app, config, path)
}

/// The configuration of a file, with these functions as its chain.
fn of_file(path: &Path, functions: &[&str], registry: &Registry) -> Result<Config, NfError> {
    let (config, _) = Config::load(path, &Overrides::default(), registry)?;
    let own: Vec<_> = config.chain.iter().map(|function| function.name()).collect();
    match own == functions {
        true => Ok(config),
        false => Err(NfError::Unknown { name: functions.join("+"), functions: own }),
    }
}

fn parse(text: &str, name: &str, registry: &Registry) -> Result<Config, NfError> {
    let parsed = Config::parse(text, name, registry);
    Ok(parsed.map_err(LoadError::Wrong)?.0)
}

/// The functions of a configuration as a chain to measure.
fn of_config(app: &App, config: Config, path: Option<&Path>) -> Result<ChainKind, NfError> {
    let names: Vec<_> = config.chain.iter().map(|function| function.name()).collect();
    let facts = config.chain.iter().map(|function| function.facts()).collect();
    let (name, app) = (names.join("+"), app.clone());
    let make = move |lanes| {
        let built = chains::without_logs(&app, &config, lanes)?;
        Ok(built.chain)
    };
    make(1).map_err(MeasureError::Function)?;
    let chain =
        FunctionChain { name, config: path.map(PathBuf::from), facts, make: Box::new(make) };
    Ok(ChainKind::Functions(Box::leak(Box::new(chain))))
}

/// A configuration of these functions between two devices, with the settings that those of rheostat cannot do without: enough for
/// the flows of a row.
fn by_default(functions: &[&str]) -> String {
    let mut text = String::from(
        "[[device]]\nname = \"lan\"\nkind = \"sim\"\nrate = \"1Mpps\"\nside = \"inside\"\n\
         [[device]]\nname = \"wan\"\nkind = \"sim\"\nrate = \"1Mpps\"\nside = \"outside\"\n",
    );
    let _ = writeln!(text, "[chain]\nfunctions = {functions:?}");
    for function in functions {
        text += match *function {
            "nat" => "[function.nat]\nexternal = [\"100.64.0.0-100.64.1.255\"]\n",
            "policer" => {
                "[function.policer]\nper = \"inside\"\nrate = \"100Gbps\"\nburst = \"1GB\"\nsubscribers = 1000000\n"
            }
            _ => "",
        };
    }
    text
}
