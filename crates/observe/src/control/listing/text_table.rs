//! Rows as text in aligned columns.

use std::fmt;

use super::{Column, ListingRow};

/// The rows of a listing below the headings of their columns, or `no rows`.
#[derive(Clone, Copy, Debug)]
pub struct TextTable<'a, R>(pub &'a [R]);

impl<R: ListingRow> fmt::Display for TextTable<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no rows");
        }
        let shown = || R::COLUMNS.iter().filter_map(|column| Some((column, column.text?)));
        let headings: Vec<_> = shown().map(|(column, _)| column.name.to_owned()).collect();
        let cells = self.0.iter().map(|row| shown().map(|(_, text)| text(row)).collect::<Vec<_>>());
        let cells: Vec<Vec<String>> = cells.collect();
        let length = |cells: &[String], column: usize| cells[column].chars().count();
        let widths: Vec<usize> = (0..headings.len())
            .map(|column| {
                let longest = cells.iter().map(|cells| length(cells, column)).max();
                longest.unwrap_or_default().max(length(&headings, column))
            })
            .collect();
        let columns: Vec<_> = shown().map(|(column, _)| column).collect();
        write_line(f, &columns, &widths, &headings)?;
        for (row, cells) in self.0.iter().zip(&cells) {
            f.write_str("\n")?;
            write_line(f, &columns, &widths, cells)?;
            if let Some(details) = row.details() {
                write!(f, "\n      {details}")?;
            }
        }
        Ok(())
    }
}

/// A line without blanks at its end.
fn write_line<R>(
    f: &mut fmt::Formatter<'_>,
    columns: &[&Column<R>],
    widths: &[usize],
    cells: &[String],
) -> fmt::Result {
    let mut line = String::new();
    for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        line.push_str(&match column.is_right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
    }
    f.write_str(line.trim_end())
}
