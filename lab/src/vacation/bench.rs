//! Runs the cases of figures one after the other.

use std::sync::Arc;

use super::cases::{CaseTemplate, VacationCase};
use super::figure::VacationFigure;
use super::measurement::Measurement;
use super::observation::Observation;
use super::row::VacationRow;
use super::simulation::Simulation;
use crate::error::BenchError;

/// Model against measurement.
#[derive(Clone, Debug)]
pub struct VacationBench {
    /// What is taken again.
    pub figures: Vec<VacationFigure>,
    /// What cases are made of.
    pub template: CaseTemplate,
    /// Whether to leave the cases with threads out.
    pub only_simulated: bool,
}

impl VacationBench {
    /// The cases, in the order in which they are run.
    pub fn cases(&self) -> Vec<VacationCase> {
        let cases = self.figures.iter().flat_map(|figure| self.template.cases(*figure));
        cases.filter(|case| !(self.only_simulated && case.is_real)).collect()
    }

    /// Runs them; `each` gets every row as soon as its case has ended. Models and simulated cases have the
    /// sleeps that this machine has just before the case with threads, or the last one.
    ///
    /// # Errors
    /// [`BenchError`] when a case cannot be run, or was not sound.
    pub fn run(&self, mut each: impl FnMut(&VacationRow)) -> Result<(), BenchError> {
        let measurement = Measurement::new();
        let mut profile = Arc::new(measurement.sleeps(false)?);
        for case in self.cases() {
            if case.is_real {
                let setup = measurement.at_load(&case.setup, case.is_disturbed)?;
                let sleeps = Arc::new(measurement.sleeps(case.is_disturbed)?);
                let seen = measurement.run(&setup, case.is_disturbed)?;
                VacationRow::of(&case, &sleeps, &seen).iter().for_each(&mut each);
                if !case.is_disturbed {
                    profile = sleeps;
                }
                continue;
            }
            let setup = Simulation { profile: profile.clone(), ..case.setup.clone() };
            let case = VacationCase { setup, ..case };
            let result = case.setup.run();
            let seen = Observation::simulated(&case.setup, &result);
            VacationRow::of(&case, &profile, &seen).iter().for_each(&mut each);
            VacationRow::of_course(&case, &result.course).iter().for_each(&mut each);
        }
        Ok(())
    }
}
