//! Runs the cases of figures one after the other.

use std::sync::Arc;

use super::cases::{Case, CaseTemplate};
use super::figure::Figure;
use super::measurement::Measurement;
use super::observation::Observation;
use super::row::VacationRow;
use super::simulation::Simulation;
use crate::error::BenchError;

/// Model against measurement.
#[derive(Clone, Debug)]
pub struct VacationBench {
    /// What is taken again.
    pub figures: Vec<Figure>,
    /// What cases are made of.
    pub template: CaseTemplate,
    /// Whether to leave the cases with threads out.
    pub only_simulated: bool,
}

impl VacationBench {
    /// The cases, in the order in which they are run.
    pub fn cases(&self) -> Vec<Case> {
        let cases = self.figures.iter().flat_map(|figure| self.template.cases(*figure));
        cases.filter(|case| !(self.only_simulated && case.is_real)).collect()
    }

    /// Runs them; `each` gets every row as soon as its case has ended. Simulated cases have the sleeps that this machine has
    /// at the start, and measured ones are compared with those that it has just before each.
    ///
    /// # Errors
    /// [`BenchError`] when a case cannot be run, or was not sound.
    pub fn run(&self, mut each: impl FnMut(&VacationRow)) -> Result<(), BenchError> {
        let measurement = Measurement::new();
        let profile = Arc::new(measurement.sleeps(false)?);
        for case in self.cases() {
            if case.is_real {
                let profile = measurement.sleeps(case.is_disturbed)?;
                let seen = measurement.run(&case.setup, case.is_disturbed)?;
                VacationRow::of(&case, &profile, &seen).iter().for_each(&mut each);
                continue;
            }
            let setup = Simulation { profile: profile.clone(), ..case.setup.clone() };
            let case = Case { setup, ..case };
            let result = case.setup.run();
            let seen = Observation::simulated(&case.setup, &result);
            VacationRow::of(&case, &profile, &seen).iter().for_each(&mut each);
            VacationRow::of_course(&case, &result.course).iter().for_each(&mut each);
        }
        Ok(())
    }
}
