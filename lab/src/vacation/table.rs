//! Rows for people.

use super::row::VacationRow;

/// Rows for people.
#[derive(Debug)]
pub struct Table;

impl Table {
    /// Names the columns.
    pub fn heading() -> String {
        format!(
            "{:<9} {:<9} {:>2} {:>2} {:>6} {:>6} {:>5} {:>7} {:>7} {:>6} {:>6} {:>4} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>6} {:>8}  {}",
            "figure",
            "origin",
            "M",
            "N",
            "V us",
            "T_L us",
            "load",
            "mean us",
            "model",
            "ks",
            "lost %",
            "aim",
            "won %",
            "model",
            "latency",
            "model",
            "bursts",
            "paper",
            "cpu %",
            "loss %",
            "case"
        )
    }

    /// A row.
    pub fn line(row: &VacationRow) -> String {
        let some = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let percent = |share: f64| 100.0 * share;
        let aim = match row.lost_tries_in_aim {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        let mut part = row.case.clone();
        if let Some(lane) = row.lane {
            part += &format!("lane {lane}");
        }
        if let Some(at) = row.at_ms {
            part += &format!("from {at:.0} ms");
        }
        let line = format!(
            "{:<9} {:<9} {:>2} {:>2} {:>6.0} {:>6} {:>5.2} {:>7.1} {:>7} {:>6} {:>6.1} {:>4} {:>6.1} {:>6} {:>7} {:>7} {:>7} {:>7} {:>6.1} {:>8}  {}",
            row.figure,
            if row.simulated { "simulated" } else { "real" },
            row.workers,
            row.lanes,
            row.target_us,
            some(row.long_us, 0),
            row.rho,
            row.mean_us,
            some(row.model_us, 1),
            some(row.ks, 3),
            percent(row.lost_tries),
            aim,
            percent(row.won_by_other),
            some(row.won_model.map(percent), 1),
            some(row.latency_mean_us, 1),
            some(row.latency_model_us, 1),
            some(row.latency_burst_us, 1),
            some(row.latency_paper_us, 1),
            percent(row.cpu_share),
            some(row.loss.map(percent), 4),
            part
        );
        line.trim_end().to_owned()
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
        let line = Table::line(&row);
        assert!(line.starts_with("table-5.3 simulated ") && line.ends_with(" -  lane 2"), "{line}");
        let words: Vec<_> = line.split_whitespace().collect();
        // Seven columns have names of two words, and the last one has two words here.
        assert_eq!(words.len(), Table::heading().split_whitespace().count() - 7 + 1, "{line}");
        assert!(line.contains(" 12.3 ") && line.contains("  4.3   no "), "{line}");
    }
}
