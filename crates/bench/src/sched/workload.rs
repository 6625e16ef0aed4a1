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

    /// Whether requests are of two classes.
    pub(super) fn has_classes(&self) -> bool {
        self.times.classes().len() > 1
    }
}

impl From<Workload> for RigWorkload {
    fn from(workload: Workload) -> RigWorkload {
        let mean = workload.mean_ns();
        let times = match workload.variability() {
            Variability::Constant => None,
            Variability::Exponential => format!("exponential:{}ns", mean.round()).parse().ok(),
            Variability::Bimodal1 => bimodal(0.005, mean),
            Variability::Bimodal2 => bimodal(0.5, mean),
        };
        let times = times.unwrap_or_else(|| ServiceTimes::constant(mean.round() as u64));
        RigWorkload { name: workload.to_string(), kind: WorkKind::Roots, times }
    }
}

/// Two classes of which the long one, with this share, takes a hundred times as long.
fn bimodal(long: f64, mean: f64) -> Option<ServiceTimes> {
    let short = mean / (1.0 + 99.0 * long);
    let list = format!("{}:{}ns,{long}:{}ns", 1.0 - long, short.round(), (100.0 * short).round());
    list.parse().ok()
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
    }
}
