//! Rows of figures as lines of a table, from columns that their type declares once.

use serde::Serialize;

/// A row of figures. People get a line under a heading, both from [`COLUMNS`](Self::COLUMNS); programs get the row as
/// [`Serialize`] has it.
pub trait TableRow: Serialize + Sized + 'static {
    /// The columns of the table, from left to right.
    const COLUMNS: &'static [Column<Self>];

    /// Text behind the columns: a rare remark on the line, or further lines, each with its line break first.
    fn remarks(&self) -> String {
        String::new()
    }

    /// The line that names the columns.
    fn heading() -> String {
        let mut line = String::new();
        for column in Self::COLUMNS {
            column.pad(&mut line, column.heading);
        }
        line
    }

    /// The row's line, without blanks at its end; its remarks behind it.
    fn line(&self) -> String {
        let mut line = String::new();
        for column in Self::COLUMNS {
            column.pad(&mut line, &column.cell.text(self));
        }
        line.truncate(line.trim_end().len());
        line + &self.remarks()
    }
}

/// A column of the table of rows `R`.
#[derive(Debug)]
pub struct Column<R> {
    heading: &'static str,
    width: usize,
    is_left: bool,
    is_apart: bool,
    cell: Cell<R>,
}

/// How a column has its text from a row.
#[derive(Debug)]
enum Cell<R> {
    Name(fn(&R) -> &str),
    Count(fn(&R) -> u64),
    Number(usize, fn(&R) -> f64),
    Known(usize, fn(&R) -> Option<f64>),
    Percent(usize, fn(&R) -> f64),
    Text(fn(&R) -> String),
}

impl<R> Column<R> {
    /// A name, at the left of its column of `width` characters.
    pub const fn name(heading: &'static str, width: usize, of: fn(&R) -> &str) -> Column<R> {
        Column { is_left: true, ..Column::new(heading, width, Cell::Name(of)) }
    }

    /// A whole number.
    pub const fn count(heading: &'static str, width: usize, of: fn(&R) -> u64) -> Column<R> {
        Column::new(heading, width, Cell::Count(of))
    }

    /// A number with so many digits behind the point.
    pub const fn number(
        heading: &'static str,
        width: usize,
        digits: usize,
        of: fn(&R) -> f64,
    ) -> Column<R> {
        Column::new(heading, width, Cell::Number(digits, of))
    }

    /// A number that not every row has: `-` stands where there is none.
    pub const fn known(
        heading: &'static str,
        width: usize,
        digits: usize,
        of: fn(&R) -> Option<f64>,
    ) -> Column<R> {
        Column::new(heading, width, Cell::Known(digits, of))
    }

    /// A share, in percent.
    pub const fn percent(
        heading: &'static str,
        width: usize,
        digits: usize,
        of: fn(&R) -> f64,
    ) -> Column<R> {
        Column::new(heading, width, Cell::Percent(digits, of))
    }

    /// Text that is made of several fields, or that only this column has, at the right of its column.
    pub const fn text(heading: &'static str, width: usize, of: fn(&R) -> String) -> Column<R> {
        Column::new(heading, width, Cell::Text(of))
    }

    const fn new(heading: &'static str, width: usize, cell: Cell<R>) -> Column<R> {
        Column { heading, width, is_left: false, is_apart: false, cell }
    }

    /// `column`, but at the left.
    pub const fn left(column: Column<R>) -> Column<R> {
        Column { is_left: true, ..column }
    }

    /// `column`, two blanks from the one before it, and not one.
    pub const fn apart(column: Column<R>) -> Column<R> {
        Column { is_apart: true, ..column }
    }

    /// Adds `text`, padded to the width, to a line.
    fn pad(&self, line: &mut String, text: &str) {
        if !line.is_empty() {
            line.push_str(if self.is_apart { "  " } else { " " });
        }
        let blanks = " ".repeat(self.width.saturating_sub(text.chars().count()));
        let (before, behind) = if self.is_left { ("", &*blanks) } else { (&*blanks, "") };
        line.extend([before, text, behind]);
    }
}

impl<R> Cell<R> {
    fn text(&self, row: &R) -> String {
        match *self {
            Cell::Name(of) => of(row).to_owned(),
            Cell::Count(of) => of(row).to_string(),
            Cell::Number(digits, of) => format!("{:.digits$}", of(row)),
            Cell::Known(digits, of) => or_dash(of(row), |value| format!("{value:.digits$}")),
            Cell::Percent(digits, of) => format!("{:.digits$} %", 100.0 * of(row)),
            Cell::Text(of) => of(row),
        }
    }
}

/// The text of a value, and `-` where there is none.
pub fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// A time in microseconds to three digits, as far as these are behind the point.
pub fn to_three_digits(us: f64) -> String {
    let decimals = if us < 10.0 { 2 } else { usize::from(us < 100.0) };
    format!("{us:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        chain: &'static str,
        lanes: u16,
        ns: f64,
        ratio: Option<f64>,
        loss: f64,
        is_slow: bool,
    }

    impl TableRow for Row {
        const COLUMNS: &'static [Column<Row>] = &[
            Column::name("chain", 8, |row| row.chain),
            Column::count("lanes", 5, |row| row.lanes.into()),
            Column::apart(Column::number("ns", 7, 1, |row| row.ns)),
            Column::known("ratio", 6, 2, |row| row.ratio),
            Column::percent("loss", 7, 1, |row| row.loss),
            Column::left(Column::text("mode", 0, |row| {
                if row.is_slow { "slow" } else { "" }.to_owned()
            })),
        ];

        fn remarks(&self) -> String {
            if self.is_slow { "\n  once more".to_owned() } else { String::new() }
        }
    }

    #[test]
    fn cells_stand_under_their_headings() {
        let row = Row { chain: "nat", lanes: 2, ns: 41.26, ratio: None, loss: 0.5, is_slow: false };
        assert_eq!(Row::heading(), "chain    lanes       ns  ratio    loss mode");
        assert_eq!(row.line(), "nat          2     41.3      -  50.0 %");
        let slow = Row { ratio: Some(1.5), is_slow: true, ..row };
        assert_eq!(slow.line(), "nat          2     41.3   1.50  50.0 % slow\n  once more");
    }

    #[test]
    fn what_is_wider_than_its_column_is_not_cut() {
        let row = Row {
            chain: "firewall-nat",
            lanes: 2,
            ns: 1.0,
            ratio: None,
            loss: 0.0,
            is_slow: false,
        };
        assert!(row.line().starts_with("firewall-nat     2      1.0 "), "{}", row.line());
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!([1.234, 12.34, 123.4].map(to_three_digits), ["1.23", "12.3", "123"]);
    }
}
