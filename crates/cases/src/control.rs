//! What a function is told while a case runs, and what it tells.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_control::Config;
use rheostat_functions::lb::{HealthBoard, LbConfig};
use rheostat_functions::monitor::MonitorLog;

use crate::record;
use crate::script::{HealthStep, Script};

/// The commands still to give, and the boards they go to.
#[derive(Default)]
pub(crate) struct Control {
    board: Option<Arc<HealthBoard>>,
    /// The services' names, in order.
    services: Vec<String>,
    steps: VecDeque<HealthStep>,
    log: Option<MonitorLog>,
}

impl Control {
    /// The commands of a case to the functions of a configuration.
    pub(crate) fn of(config: &Config, script: &Script) -> Control {
        let services = config.function().map_or(&[][..], |lb: &LbConfig| &lb.services);
        Control {
            board: None,
            services: services.iter().map(|service| service.name.clone()).collect(),
            steps: script.health.clone().into(),
            log: None,
        }
    }

    /// Takes the part of a function that commands change, if a case has commands for it.
    pub(crate) fn extend(&mut self, part: Option<Arc<dyn Any + Send + Sync>>) {
        let board = part.and_then(|part| part.downcast().ok());
        self.board = board.or(self.board.take());
    }

    /// Takes the log of a monitor.
    pub(crate) fn watch(&mut self, log: MonitorLog) {
        self.log = Some(log);
    }

    /// The records made since the last time.
    pub(crate) fn records(&self) -> Vec<String> {
        let mut records = Vec::new();
        if let Some(log) = &self.log {
            log.drain(|flow| records.push(record::tell(&flow)));
        }
        records
    }

    /// Tells everything that is due until `now`; returns when the last of it was.
    pub(crate) fn apply_until(&mut self, now: Time) -> Result<Option<Time>, String> {
        let mut last = None;
        while self.steps.front().is_some_and(|step| step.time <= now) {
            let Some(step) = self.steps.pop_front() else { break };
            let wrong = |problem: String| format!("line {}: {problem}", step.line);
            let board =
                self.board.as_ref().ok_or_else(|| wrong("there are no backends to set".into()))?;
            let number = self.services.iter().position(|name| *name == step.service);
            let number = number.ok_or_else(|| wrong(format!("no service `{}`", step.service)))?;
            let mut health = board.health();
            health[number] = step.health;
            board.apply(health).map_err(|error| wrong(error.to_string()))?;
            last = Some(step.time);
        }
        Ok(last)
    }
}
