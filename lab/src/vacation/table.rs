//! Rows for people.

use rheostat_measure::record::{Column, TableRow};

use super::row::VacationRow;

impl TableRow for VacationRow {
    const COLUMNS: &'static [Column<VacationRow>] = &[
        Column::name("figure", 9, |row| &row.figure),
        Column::name("origin", 9, |row| if row.simulated { "simulated" } else { "real" }),
        Column::count("M", 2, |row| row.workers as u64),
        Column::count("N", 2, |row| row.lanes as u64),
        Column::number("V us", 6, 0, |row| row.target_us),
        Column::known("T_L us", 6, 0, |row| row.long_us),
        Column::number("load", 5, 2, |row| row.rho),
        Column::number("mean us", 7, 1, |row| row.mean_us),
        Column::known("model", 7, 1, |row| row.model_us),
        Column::known("ks", 6, 3, |row| row.ks),
        Column::number("lost %", 6, 1, |row| percent(row.lost_tries)),
        Column::text("aim", 4, |row| {
            let aim = row.lost_tries_in_aim.map(|is_in_aim| if is_in_aim { "yes" } else { "no" });
            aim.unwrap_or("-").to_owned()
        }),
        Column::number("won %", 6, 1, |row| percent(row.won_by_other)),
        Column::known("model", 6, 1, |row| row.won_model.map(percent)),
        Column::known("latency", 7, 1, |row| row.latency_mean_us),
        Column::known("model", 7, 1, |row| row.latency_model_us),
        Column::known("bursts", 7, 1, |row| row.latency_burst_us),
        Column::known("paper", 7, 1, |row| row.latency_paper_us),
        Column::number("cpu %", 6, 1, |row| percent(row.cpu_share)),
        Column::known("loss %", 8, 4, |row| row.loss.map(percent)),
        Column::apart(Column::text("case", 0, VacationRow::part)),
    ];
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

impl VacationRow {
    /// What distinguishes the row's case or part of it.
    fn part(&self) -> String {
        let mut part = self.case.clone();
        if let Some(lane) = self.lane {
            part += &format!("lane {lane}");
        }
        if let Some(at) = self.at_ms {
            part += &format!("from {at:.0} ms");
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let row = VacationRow {
            figure: "table-5.3".into(),
            simulated: true,
            lane: Some(2),
            lost_tries: 0.043,
            lost_tries_in_aim: Some(false),
            model_us: Some(12.34),
            ..VacationRow::default()
        };
        let line = row.line();
        assert!(line.starts_with("table-5.3 simulated ") && line.ends_with(" -  lane 2"), "{line}");
        let words: Vec<_> = line.split_whitespace().collect();
        // Seven columns have names of two words, and the last one has two words here.
        assert_eq!(
            words.len(),
            VacationRow::heading().split_whitespace().count() - 7 + 1,
            "{line}"
        );
        assert!(line.contains(" 12.3 ") && line.contains("  4.3   no "), "{line}");
    }
}
