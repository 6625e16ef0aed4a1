//! What requests cost on this machine: kept from an earlier run, measured at first use, or shipped with rheostat.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use rheostat_app::terminal::{KeepError, KeptFile, machine_key};
use rheostat_measure::machine::Machine;
use rheostat_measure::record::Build;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::BUILD;
use crate::noise::Noise;
use crate::sched::{CostsEffort, measure_request_costs};
use crate::sim::sched::{CostsSource, RequestCosts, RequestCostsError};

const FILE: &str = "costs.json";
/// Entries that are kept, the newest first.
const KEPT: usize = 8;
/// How long the cores are watched, before and behind the measurement.
const WATCHED: Duration = Duration::from_millis(200);

/// The value of `--costs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CostsOption {
    /// Those of this machine.
    Machine,
    /// Those of the thesis, or of a file.
    Source(CostsSource),
}

impl FromStr for CostsOption {
    type Err = String;

    fn from_str(text: &str) -> Result<CostsOption, String> {
        if text == "machine" {
            return Ok(CostsOption::Machine);
        }
        let source = text.parse().map(CostsOption::Source);
        source
            .map_err(|_| format!("`{text}` names no costs: use machine, thesis, or measured:FILE"))
    }
}

impl fmt::Display for CostsOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostsOption::Machine => f.write_str("machine"),
            CostsOption::Source(source) => source.fmt(f),
        }
    }
}

/// Costs, and whose they are.
#[derive(Debug)]
pub(crate) struct UsedCosts {
    pub(crate) costs: RequestCosts,
    is_of_this_machine: bool,
    /// Why they are not those of this machine and build, if these were requested.
    note: Option<String>,
}

/// Whose costs an answer is for, as its JSON has it.
#[derive(Debug, Serialize)]
pub(crate) struct CostsOrigin {
    /// Where they are from, in a line.
    about: String,
    /// The machine that they were measured on; `None` if they were not measured.
    machine: Option<String>,
    /// Whether they were measured on this machine.
    measured: bool,
    /// Why they are not those of this machine and build, if these were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl CostsOption {
    /// The costs. Those of this machine are measured if none are kept, in at most 20 s, with progress on standard error.
    ///
    /// # Errors
    /// [`RequestCostsError`] when a file is not there, or is none of costs.
    pub(crate) fn open(&self) -> Result<UsedCosts, RequestCostsError> {
        match self {
            CostsOption::Source(source) => Ok(UsedCosts::of(source.open()?)),
            CostsOption::Machine => {
                // On one core there are no hand-offs and no locks to measure.
                let machine = format!("{}, {} cores", machine_key(), Machine::this().cores);
                let mut kept = KeptCosts::open(KeptFile::named(FILE), machine);
                Ok(kept.get_or_measure(&BUILD, cfg!(debug_assertions), measure))
            }
        }
    }
}

impl UsedCosts {
    /// Costs that were named.
    pub(crate) fn of(costs: RequestCosts) -> UsedCosts {
        let measured_on = costs.header.as_ref().map(|header| &header.machine);
        let this = Machine::this();
        let is_of_this_machine = measured_on
            .is_some_and(|on| (&on.processor, on.cores) == (&this.processor, this.cores));
        UsedCosts { costs, is_of_this_machine, note: None }
    }

    fn shipped(note: String) -> UsedCosts {
        UsedCosts {
            is_of_this_machine: false,
            note: Some(note),
            ..UsedCosts::of(RequestCosts::shipped())
        }
    }

    /// Whose they are.
    pub(crate) fn origin(&self) -> CostsOrigin {
        CostsOrigin {
            about: self.costs.about.clone(),
            machine: self.costs.header.as_ref().map(|header| header.machine.to_string()),
            measured: self.is_of_this_machine,
            note: self.note.clone(),
        }
    }
}

impl fmt::Display for UsedCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match (self.is_of_this_machine, &self.costs.header) {
            (true, _) => "this machine's: ",
            (false, Some(_)) => "another machine's: ",
            (false, None) => "",
        };
        write!(f, "{whose}{}", self.costs.about)?;
        self.note.iter().try_for_each(|note| write!(f, "\nnote: {note}"))
    }
}

/// Costs in the file, the newest first.
#[derive(Debug)]
struct KeptCosts {
    file: KeptFile,
    machine: String,
    entries: Vec<CostEntry>,
}

/// Costs, and what they are of: other machines and other builds have others.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CostEntry {
    machine: String,
    commit: String,
    profile: String,
    costs: Value,
}

impl CostEntry {
    /// The costs, unless another build wrote them with other fields.
    fn costs(&self) -> Option<RequestCosts> {
        RequestCosts::parse(Path::new(FILE), &self.costs.to_string()).ok()
    }
}

impl KeptCosts {
    fn open(file: KeptFile, machine: String) -> KeptCosts {
        KeptCosts { entries: file.read(), file, machine }
    }

    /// The costs of this machine and build, which are measured and kept if the file does not have them. A debug build measures
    /// none, since its costs are not those of a build that serves: it uses the newest that another build measured on this
    /// machine. Where there are none, and where `measure` returns the reason why there are none, the shipped ones.
    fn get_or_measure(
        &mut self,
        build: &Build,
        is_debug: bool,
        measure: impl FnOnce() -> Result<RequestCosts, String>,
    ) -> UsedCosts {
        let own = |entry: &&CostEntry| entry.machine == self.machine;
        let of_build =
            |entry: &&CostEntry| entry.commit == build.commit && entry.profile == build.profile;
        let here = |costs, note| UsedCosts { costs, is_of_this_machine: true, note };
        if is_debug {
            let newest = self.entries.iter().filter(own).find_map(CostEntry::costs);
            return match newest {
                Some(costs) => {
                    here(costs, Some("a debug build uses the costs of the last optimised build".into()))
                }
                None => UsedCosts::shipped(
                    "a debug build does not measure this machine's costs, which are those of an optimised build: build with --release"
                        .into(),
                ),
            };
        }
        if let Some(costs) =
            self.entries.iter().filter(own).find(of_build).and_then(CostEntry::costs)
        {
            return here(costs, None);
        }
        match measure() {
            Ok(costs) => {
                if let Err(error) = self.keep(build, &costs) {
                    err!("warning: costs are not kept: {error}");
                }
                here(costs, None)
            }
            Err(reason) => UsedCosts::shipped(reason),
        }
    }

    fn keep(&mut self, build: &Build, costs: &RequestCosts) -> Result<(), KeepError> {
        let entry = CostEntry {
            machine: self.machine.clone(),
            commit: build.commit.to_owned(),
            profile: build.profile.to_owned(),
            costs: serde_json::to_value(costs).expect("costs are plain data"),
        };
        let is_same = |other: &CostEntry| {
            (&other.machine, &other.commit, &other.profile)
                == (&entry.machine, &entry.commit, &entry.profile)
        };
        self.entries.retain(|other| !is_same(other));
        self.entries.insert(0, entry);
        self.entries.truncate(KEPT);
        self.file.write(&self.entries)
    }
}

/// Measures, or returns why the costs would not be this machine's.
fn measure() -> Result<RequestCosts, String> {
    err!("measuring what a request costs on this machine, once: up to 20 s");
    let busy = || match Noise::measure(WATCHED) {
        Ok(noise) if noise.is_of_other_programs() => {
            Err("other programs keep this machine busy, so its costs were not measured".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the costs of this machine were not measured: {error}")),
    };
    busy()?;
    let costs = measure_request_costs(&BUILD, CostsEffort::BRIEF, |step| err!("  {step}"));
    let costs =
        costs.map_err(|error| format!("the costs of this machine were not measured: {error}"))?;
    busy()?;
    Ok(costs)
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep, clock.

    use super::*;

    const BUILD: Build = Build { commit: "abc", profile: "release" };

    fn kept(folder: &Path, machine: &str) -> KeptCosts {
        KeptCosts::open(KeptFile::at(Some(folder.join(FILE))), machine.to_owned())
    }

    fn measured(lock_ns: f64) -> Result<RequestCosts, String> {
        Ok(RequestCosts::shipped().with_lock(lock_ns))
    }

    fn unexpected() -> Result<RequestCosts, String> {
        panic!("costs are kept, or not measured")
    }

    #[test]
    fn costs_are_measured_once_for_each_machine_and_build() {
        let folder = tempfile::tempdir().unwrap();
        let first = kept(folder.path(), "here").get_or_measure(&BUILD, false, || measured(70.0));
        assert!((first.costs.lock_ns() - 70.0).abs() < 0.01);
        assert!(first.origin().measured && first.note.is_none());
        let again = kept(folder.path(), "here").get_or_measure(&BUILD, false, unexpected);
        assert!((again.costs.lock_ns() - 70.0).abs() < 0.01 && again.origin().measured);
        let other = Build { commit: "def", ..BUILD };
        let other = kept(folder.path(), "here").get_or_measure(&other, false, || measured(80.0));
        assert!((other.costs.lock_ns() - 80.0).abs() < 0.01, "another build");
        let away = kept(folder.path(), "away").get_or_measure(&BUILD, false, || measured(90.0));
        assert!((away.costs.lock_ns() - 90.0).abs() < 0.01, "another machine");
        let first = kept(folder.path(), "here").get_or_measure(&BUILD, false, unexpected);
        assert!((first.costs.lock_ns() - 70.0).abs() < 0.01);
    }

    #[test]
    fn a_debug_build_uses_the_newest_costs_of_this_machine_and_measures_none() {
        let folder = tempfile::tempdir().unwrap();
        let debug = Build { commit: "abc", profile: "debug" };
        let shipped = kept(folder.path(), "here").get_or_measure(&debug, true, unexpected);
        assert_eq!(shipped.costs, RequestCosts::shipped());
        assert!(!shipped.origin().measured);
        assert!(shipped.to_string().contains("build with --release"), "{shipped}");
        for lock_ns in [70.0, 80.0] {
            let build = Build { commit: if lock_ns < 75.0 { "old" } else { "new" }, ..BUILD };
            kept(folder.path(), "here").get_or_measure(&build, false, || measured(lock_ns));
        }
        let own = kept(folder.path(), "here").get_or_measure(&debug, true, unexpected);
        assert!((own.costs.lock_ns() - 80.0).abs() < 0.01 && own.origin().measured);
        assert!(own.to_string().starts_with("this machine's: ") && own.note.is_some(), "{own}");
    }

    #[test]
    fn a_busy_machine_has_the_shipped_costs_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let busy = || Err("other programs keep this machine busy".to_owned());
        let used = kept(folder.path(), "here").get_or_measure(&BUILD, false, busy);
        assert_eq!(used.costs, RequestCosts::shipped());
        let origin = serde_json::to_value(used.origin()).unwrap();
        assert_eq!((&origin["measured"], origin["machine"].is_string()), (&false.into(), true));
        assert!(origin["note"].as_str().unwrap().contains("busy"), "{origin}");
        assert!(used.to_string().starts_with("another machine's: "), "{used}");
        // They are not kept: the next run tries again.
        let used = kept(folder.path(), "here").get_or_measure(&BUILD, false, || measured(70.0));
        assert!(used.origin().measured);
    }

    #[test]
    fn entries_that_another_build_wrote_otherwise_are_measured_again_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let wrong =
            r#"[{"machine":"here","commit":"abc","profile":"release","costs":{"about":"x"}}]"#;
        std::fs::write(folder.path().join(FILE), wrong).unwrap();
        let used = kept(folder.path(), "here").get_or_measure(&BUILD, false, || measured(70.0));
        assert!((used.costs.lock_ns() - 70.0).abs() < 0.01);
        for number in 0..2 * KEPT {
            let machine = format!("machine {number}");
            kept(folder.path(), &machine).get_or_measure(&BUILD, false, || measured(1.0));
        }
        assert_eq!(kept(folder.path(), "here").entries.len(), KEPT);
    }

    #[test]
    fn a_measurement_ends_with_costs_of_this_machine_or_with_a_reason() {
        match measure() {
            Ok(costs) => {
                let used = UsedCosts::of(costs);
                assert!(used.origin().measured, "{used}");
                assert!(used.costs.network_ns() > 0.0 && used.costs.lock_ns() > 0.0, "{used}");
            }
            // As it is where other tests run at the same time.
            Err(reason) => assert!(reason.contains("measured"), "{reason}"),
        }
    }

    #[test]
    fn options_are_read_as_they_are_written() {
        for text in ["machine", "thesis", "measured:a.json"] {
            assert_eq!(text.parse::<CostsOption>().unwrap().to_string(), text);
        }
        let error = "guessed".parse::<CostsOption>().unwrap_err();
        assert!(error.contains("use machine, thesis, or measured:FILE"), "{error}");
        let thesis = UsedCosts::of(RequestCosts::thesis()).origin();
        assert_eq!((thesis.machine, thesis.measured), (None, false));
    }
}
