//! The monitor as configurations know it.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rheostat_nf::link;
use rheostat_nf::registry::{
    BuildCx, BuildError, Built, FixedKey, FunctionFacts, FunctionSettings, Handed, Lines,
    Registration,
};

use super::settings::{MonitorFunction, describe, keys, read};
use super::{FlowLines, Monitor, MonitorLog};
use crate::fixed_keys::fixed_keys;

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
        let running = cx.predecessor::<(PathBuf, MonitorLog)>();
        if let Some((_, log)) = running.filter(|(known, _)| known == path) {
            let handed: Option<Handed> = Some(Arc::new((path.clone(), log.clone())));
            return Ok(Built {
                handed,
                ..Built::of(link(Monitor::new(config, Some(log.clone()))).listing::<Monitor>())
            });
        }
        let log = MonitorLog::new();
        let handed: Option<Handed> = Some(Arc::new((path.clone(), log.clone())));
        let interval = config.top.as_ref().and_then(|top| Some((top.interval?, top.listed)));
        let lines: Box<dyn Lines> = Box::new(FlowLines::new(log.clone(), interval));
        let monitor = Monitor::new(config, Some(log));
        Ok(Built {
            log: Some((path.clone(), lines)),
            handed,
            ..Built::of(link(monitor).listing::<Monitor>())
        })
    }

    fn fixed(&self, next: &dyn FunctionSettings) -> Vec<FixedKey> {
        let next: &dyn Any = next;
        let Some(next) = next.downcast_ref::<MonitorFunction>() else { return Vec::new() };
        let has_other = self.monitor.top != next.monitor.top;
        fixed_keys([("top", has_other, "counters of rankings would begin anew")])
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }

    fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}
