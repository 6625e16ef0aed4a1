//! Workloads of the rig: the service times that the simulation has under the same names, spent on square roots.

use std::fmt;
use std::str::FromStr;

use rheostat_serve::work::{ServiceTimes, WorkKind};

use crate::sim::sched::{UnknownWorkload, Variability, Workload};

/// What the application does for requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RigWorkload {
    name: String,
    kind: WorkKind,
    times: ServiceTimes,
}

impl RigWorkload {
    /// Nothing: requests cost what TCP and the scheduler cost.
    pub fn null() -> RigWorkload {
        let times = ServiceTimes::constant(0);
        RigWorkload { name: "null".into(), kind: WorkKind::Null, times }
    }

    /// Those of the thesis, Table 4.2.
    pub fn thesis() -> Vec<RigWorkload> {
        Workload::thesis().map(RigWorkload::from).to_vec()
    }

    /// What the time is spent on.
    pub fn kind(&self) -> WorkKind {
        self.kind
    }

    /// How long requests take.
    pub fn times(&self) -> &ServiceTimes {
        &self.times
    }

    /// The same in simulation, if it is simulated.
    pub(crate) fn simulated(&self) -> Option<Workload> {
        match self.kind {
            WorkKind::Roots => Workload::try_from(&self.times).ok(),
            _ => None,
        }
    }

    /// Whether requests are of two classes or more.
    pub(super) fn has_classes(&self) -> bool {
        self.times.classes().len() > 1
    }
}

impl From<Workload> for RigWorkload {
    fn from(workload: Workload) -> RigWorkload {
        let mean = workload.mean_ns().round();
        let times = match workload.classes() {
            Some((times, second)) => {
                let [short, long] = times.map(f64::round);
                format!("{}:{short}ns,{second}:{long}ns", 1.0 - second).parse().ok()
            }
            None if workload.variability() == Variability::Exponential => {
                format!("exponential:{mean}ns").parse().ok()
            }
            None => None,
        };
        let times = times.unwrap_or_else(|| ServiceTimes::constant(mean as u64));
        RigWorkload { name: workload.to_string(), kind: WorkKind::Roots, times }
    }
}

/// Times that are not simulated, too. Those that are have the names that the simulation gives them.
impl From<ServiceTimes> for RigWorkload {
    fn from(times: ServiceTimes) -> RigWorkload {
        match Workload::try_from(&times) {
            Ok(workload) => RigWorkload::from(workload),
            Err(_) => RigWorkload { name: times.to_string(), kind: WorkKind::Roots, times },
        }
    }
}

impl FromStr for RigWorkload {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<RigWorkload, UnknownWorkload> {
        match text {
            "null" => Ok(RigWorkload::null()),
            _ => text.parse::<Workload>().map(RigWorkload::from),
        }
    }
}

impl fmt::Display for RigWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_have_the_times_that_the_simulation_has() {
        for (name, targets, mean) in [
            ("constant-1us", vec![1_000], 1_000.0),
            ("constant-350ns", vec![350], 350.0),
            ("bimodal-1", vec![1_000, 100_000], 1_495.0),
            ("bimodal-2", vec![1_000, 100_000], 50_500.0),
            ("0.9:2us,0.1:20us", vec![2_000, 20_000], 3_800.0),
            ("null", vec![], 0.0),
        ] {
            let workload: RigWorkload = name.parse().unwrap();
            assert_eq!(workload.to_string(), name);
            assert_eq!(workload.times().targets(), targets, "{name}");
            assert!((workload.times().mean() - mean).abs() < 1e-6, "{name}");
            assert_eq!(workload.has_classes(), targets.len() > 1);
        }
        let exponential: RigWorkload = "exponential-10us".parse().unwrap();
        assert_eq!(exponential.times().to_string(), "exponential:10000ns");
        assert!("constant".parse::<RigWorkload>().is_err());
        let named = |times: &str| RigWorkload::from(times.parse::<ServiceTimes>().unwrap());
        assert_eq!(named("10us").to_string(), "constant-10us");
        assert_eq!(named("90%:2us, 10%:20us").to_string(), "0.9:2us,0.1:20us");
        let many = named("0.5:1us,0.3:2us,0.2:3us");
        assert_eq!(many.to_string(), "0.5:1us,0.3:2us,0.2:3us");
        assert_eq!(many.times().classes().len(), 3);
    }
}
