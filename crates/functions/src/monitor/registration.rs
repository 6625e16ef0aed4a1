//! The monitor as configurations know it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_nf::link;
use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FunctionFacts, FunctionSettings, Lines, Registration,
};

use super::settings::{MonitorFunction, describe, keys, read};
use super::{FlowLines, Monitor, MonitorLog};

/// The monitor.
pub const MONITOR: Registration = Registration {
    name: "monitor",
    summary: "reports flows, and the hosts with the most traffic",
    keys,
    read: Some(|table, _, findings| Some(Arc::new(read(table, findings)))),
    default: |_| Ok(Arc::new(MonitorFunction::default())),
};

impl FunctionSettings for MonitorFunction {
    fn facts(&self) -> FunctionFacts {
        FunctionFacts { large_state: true, ..FunctionFacts::default() }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError> {
        let config = self.monitor.clone();
        let Some(path) = self.log.as_ref().filter(|_| cx.runs) else {
            return Ok(Built::of(link(Monitor::new(config, None)).listing::<Monitor>()));
        };
        let log = MonitorLog::new();
        let interval = config.top.as_ref().and_then(|top| Some((top.interval?, top.listed)));
        let lines: Box<dyn Lines> = Box::new(FlowLines::new(log.clone(), interval));
        let monitor = Monitor::new(config, Some(log));
        Ok(Built {
            log: Some((path.clone(), lines)),
            ..Built::of(link(monitor).listing::<Monitor>())
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}
