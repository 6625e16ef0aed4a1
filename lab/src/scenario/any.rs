//! Scenarios of either kind.

use std::path::Path;

use super::{BUILT_IN, RequestScenario, Scenario, ScenarioError};

/// A scenario about packets or about requests. One that has a table `service` is about requests.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyScenario {
    /// A chain and its packets, under policies.
    Packets(Box<Scenario>),
    /// A service and its requests, under schedulers.
    Requests(Box<RequestScenario>),
}

impl AnyScenario {
    /// The scenario of this name, or in this file.
    ///
    /// # Errors
    /// [`ScenarioError`] when there is none, or it is wrong.
    pub fn open(name: &str) -> Result<AnyScenario, ScenarioError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return AnyScenario::parse(name, text);
        }
        let file = Path::new(name);
        if file.extension().is_none_or(|extension| extension != "toml") {
            return Err(ScenarioError::Unknown(name.to_owned()));
        }
        let text = std::fs::read_to_string(file)
            .map_err(|source| ScenarioError::Read { file: file.to_owned(), source })?;
        let stem =
            || file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut scenario = AnyScenario::parse(name, &text)?;
        match &mut scenario {
            AnyScenario::Packets(scenario) => {
                scenario.name = stem();
                scenario.traffic.resolve(folder);
            }
            AnyScenario::Requests(scenario) => {
                scenario.name = stem();
                folder.clone_into(&mut scenario.folder);
            }
        }
        Ok(scenario)
    }

    /// Reads a scenario from its text.
    ///
    /// # Errors
    /// [`ScenarioError::Parse`] and [`ScenarioError::Value`].
    pub fn parse(name: &str, text: &str) -> Result<AnyScenario, ScenarioError> {
        // What cannot be read at all is refused by the reader of either kind, with the line.
        let has_service =
            text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("service"));
        match has_service {
            true => RequestScenario::parse(name, text).map(Box::new).map(AnyScenario::Requests),
            false => Scenario::parse(name, text).map(Box::new).map(AnyScenario::Packets),
        }
    }
}
