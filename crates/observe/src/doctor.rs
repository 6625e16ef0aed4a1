//! Checks kernel, interfaces and privileges of a machine, and names the command that fixes each fault. [`Machine`] shows the
//! machine: nothing here does I/O.

mod interface;
mod kernel;
#[cfg(test)]
mod machine;
mod memory;
mod places;
mod privileges;
mod processors;
mod sleeps;

use std::fmt;

use rheostat_kernel::{Channels, Napi, ProcFields, Rings, Spreading, XdpFeatures};
use serde::Serialize;

pub use sleeps::{SleepFacts, SleepReport, SleepRow, TargetRow};

/// A machine, as far as it is looked at.
pub trait Machine {
    /// The text of a file of /proc or /sys, without blanks around it; `None` when there is none, or it may
    /// not be read.
    fn read(&self, path: &str) -> Option<String>;

    /// The names in a folder; none when there is no such folder.
    fn list(&self, path: &str) -> Vec<String>;

    /// The state of this process.
    fn status(&self) -> ProcFields {
        ProcFields::new(self.read("/proc/self/status").unwrap_or_default())
    }

    /// Whether there is such a file.
    fn exists(&self, path: &str) -> bool;

    /// What the driver of an interface reports.
    fn interface(&self, name: &str) -> InterfaceFacts;

    /// What sleeps of microseconds take, if that can be measured.
    fn sleeps(&self) -> Option<SleepFacts>;
}

/// What the driver of an interface, and the kernel, say of it. `None` where they do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// The driver.
    pub driver: Option<String>,
    /// Receive queues.
    pub channels: Option<Channels>,
    /// Receive rings.
    pub rings: Option<Rings>,
    /// Indirection table and key.
    pub spreading: Option<Spreading>,
    /// The offloads that are on.
    pub offloads: Option<Vec<String>>,
    /// What XDP can do.
    pub xdp: Option<XdpFeatures>,
    /// Its NAPI instances.
    pub napis: Option<Vec<Napi>>,
    /// Whether a program could be attached natively, if that was tried; otherwise why not.
    pub probe: Option<Result<(), String>>,
}

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Error,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What, in a word or two.
    pub check: &'static str,
    /// Of which interface, if of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// How to take it.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What that means for rheostat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<&'static str>,
    /// The command that fixes it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// All that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// In the order of the checks.
    pub findings: Vec<Finding>,
    /// Sleeps by priority, where they were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sleep: Vec<SleepReport>,
}

impl Diagnosis {
    /// Whether anything does not work.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Error)
    }
}

/// Looks at a machine, and at these of its interfaces; without any, at all but the loopback.
pub fn examine(machine: &dyn Machine, interfaces: &[String]) -> Diagnosis {
    let mut findings = Vec::new();
    kernel::examine(machine, &mut findings);
    privileges::examine(machine, &mut findings);
    memory::examine(machine, &mut findings);
    processors::examine(machine, &mut findings);
    places::examine(machine, &mut findings);
    let facts = machine.sleeps();
    sleeps::examine(machine, facts.as_ref(), &mut findings);
    let mut interfaces = interfaces.to_vec();
    if interfaces.is_empty() {
        interfaces = machine.list("/sys/class/net");
        interfaces
            .retain(|name| name != "lo" && machine.exists(&format!("/sys/class/net/{name}/mtu")));
        interfaces.sort();
    }
    for name in interfaces {
        interface::examine(machine, &name, &mut findings);
    }
    let sleep = facts.as_ref().map_or_else(Vec::new, sleeps::report);
    Diagnosis { findings, sleep }
}

/// The offloads of an interface, or of the other end of its veth pair, by which packets of TCP are lost.
pub fn lossy_offloads(machine: &dyn Machine, interface: &str) -> Vec<Finding> {
    interface::offloads(machine, interface, &machine.interface(interface))
}

impl Finding {
    /// All is well.
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        let found = found.into();
        Finding { check, interface: None, level: Level::Ok, found, means: None, fix: None }
    }

    /// It works less well than it could.
    fn warning(check: &'static str, found: impl Into<String>, means: &'static str) -> Finding {
        Finding { level: Level::Warning, means: Some(means), ..Finding::ok(check, found) }
    }

    /// It does not work.
    fn error(check: &'static str, found: impl Into<String>, means: &'static str) -> Finding {
        Finding { level: Level::Error, means: Some(means), ..Finding::ok(check, found) }
    }

    fn fixed_by(self, command: impl Into<String>) -> Finding {
        Finding { fix: Some(command.into()), ..self }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = None;
        for finding in &self.findings {
            if of != finding.interface.as_ref() {
                of = finding.interface.as_ref();
                writeln!(f, "\ninterface {}", of.map_or("", String::as_str))?;
            }
            writeln!(f, "{finding}")?;
        }
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let (ok, warnings, errors) = (count(Level::Ok), count(Level::Warning), count(Level::Error));
        write!(f, "\n{ok} ok, {warnings} warnings, {errors} errors")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Error => "ERROR",
        };
        write!(f, "{level:<8} {:<18} {}", self.check, self.found)?;
        if let Some(means) = self.means {
            write!(f, "\n{:27} {means}", "")?;
        }
        match &self.fix {
            Some(command) => write!(f, "\n{:27} $ {command}", ""),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
