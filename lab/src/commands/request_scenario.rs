//! Scenarios about requests: on lanes of this machine, and in simulation.

use std::path::Path;
use std::process::ExitCode;

use rheostat_app::bench::operations_of_roots;
use rheostat_measure::allocation;
use rheostat_measure::record::{RowRecorder, TableRow};
use serde::Serialize;

use crate::commands::Failed;
use crate::commands::bench::PUMPED_NOTE;
use crate::commands::choices::Choices;
use crate::commands::page_file::PageFile;
use crate::commands::sim::SIMULATED_NOTE;
use crate::error::BenchError;
use crate::record::{RequestRow, RequestScenarioHeader};
use crate::report::requests;
use crate::scenario::RequestScenario;
use crate::sched::SchedBenchRow;
use crate::sim::sched::{RequestCosts, SchedRow};
use crate::testbed::{Cores, threads};

/// Measures, as `rheo bench sched`.
pub(crate) fn measure(scenario: &RequestScenario, choices: &Choices) -> Result<ExitCode, Failed> {
    let header = RequestScenarioHeader::new(scenario, &crate::commands::BUILD, None);
    let mut kept = Kept::begin(choices, header)?;
    let cores = Cores::available().map_err(BenchError::from)?;
    let operations = operations_of_roots(scenario.targets(), Some(cores.first()));
    kept.introduce(&kept.header.header.machine.to_string());
    if !choices.json {
        out!("{}", SchedBenchRow::heading());
    }
    let mut result = Ok(());
    for &workers in &scenario.workers {
        let bench = scenario.bench(workers, &operations, allocation::count);
        result = bench.run(|row: &SchedBenchRow| {
            kept.add(row, RequestRow::from(row));
            if !choices.json {
                out!("{}", row.line());
            }
        });
        if result.is_err() {
            break;
        }
    }
    // What was measured until an error is kept.
    kept.end(PUMPED_NOTE)?;
    result?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates, as `rheo sim sched`; with the costs of the scenario, unless others are given.
pub(crate) fn simulate(
    scenario: &RequestScenario,
    costs: Option<&Path>,
    choices: &Choices,
) -> Result<ExitCode, Failed> {
    let costs = match costs {
        Some(file) => RequestCosts::open(file)?,
        None => scenario.costs()?,
    };
    let header =
        RequestScenarioHeader::new(scenario, &crate::commands::BUILD, Some(costs.about.clone()));
    let mut kept = Kept::begin(choices, header)?;
    kept.introduce(&format!("costs: {}", costs.about));
    if !choices.json {
        out!("{}", SchedRow::heading());
    }
    let mut verdicts = Vec::new();
    let threads = threads();
    let result = scenario.simulate(&costs, threads, |rows: &[SchedRow]| {
        for row in rows {
            kept.add(row, RequestRow::from(row));
            if !choices.json {
                out!("{}", row.line());
            }
        }
        let workers = rows.first().map_or(0, |row| row.cores);
        let of_rows = SchedRow::verdicts(rows);
        verdicts.extend(of_rows.into_iter().map(|verdict| format!("{workers} workers, {verdict}")));
    });
    if !choices.json {
        verdicts.iter().for_each(|verdict| out!("{verdict}"));
    }
    kept.end(SIMULATED_NOTE)?;
    result?;
    Ok(ExitCode::SUCCESS)
}

/// Rows as they come: printed, in a file, and for the page.
struct Kept<'a> {
    header: RequestScenarioHeader,
    json: bool,
    recorder: Option<RowRecorder>,
    recorded: Result<(), rheostat_measure::record::RecordError>,
    page: Option<PageFile<'a>>,
    rows: Vec<RequestRow>,
}

impl Kept<'_> {
    fn begin(choices: &Choices, header: RequestScenarioHeader) -> Result<Kept<'_>, Failed> {
        let page = choices.output.as_deref().map(PageFile::create).transpose()?;
        let recorder = choices.row_recorder(&header)?;
        let json = choices.json;
        Ok(Kept { header, json, recorder, recorded: Ok(()), page, rows: Vec::new() })
    }

    /// What people read first.
    fn introduce(&self, origin: &str) {
        if !self.json {
            let RequestScenarioHeader { header, title, question, .. } = &self.header;
            out!("{title}: {question}");
            out!("{origin}; rheo {} ({})", header.commit, header.profile);
        }
    }

    fn add(&mut self, row: &impl Serialize, request_row: RequestRow) {
        if self.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        }
        self.rows.push(request_row);
        if let (Ok(()), Some(recorder)) = (&self.recorded, &mut self.recorder) {
            self.recorded = recorder.add(row);
        }
    }

    fn end(self, note: &str) -> Result<(), Failed> {
        if let Some(page) = self.page {
            page.write(&requests::page(&self.header.header, note, &self.rows))?;
        }
        self.recorded?;
        if let Some(recorder) = &self.recorder {
            err!("{} rows kept in {}", self.rows.len(), recorder.path().display());
        }
        Ok(())
    }
}
