//! Claims that the documentation publishes, each with the command that shows it and figures of rows in `results/`.

use std::collections::BTreeMap;
use std::fmt::Write;

use rheostat_measure::record::{Column, TableRow, or_dash};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A published claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The claim.
    pub claim: String,
    /// The page that publishes it, from the root of the repository.
    pub page: String,
    /// The file with the rows that its figures were read from.
    pub rows: String,
    /// The program that measures it.
    #[serde(default)]
    pub program: ClaimProgram,
    /// What the program is called with, but for `--json`; no argument has blanks.
    pub command: String,
    /// What the machine must have.
    pub needs: String,
    /// How long it takes, about, in a build with `--release`.
    pub time: String,
    /// Its figures.
    pub figures: Vec<ClaimedFigure>,
}

/// The program of a claim's command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimProgram {
    /// The laboratory.
    #[default]
    RheoLab,
    /// The product.
    Rheo,
}

/// A figure of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimedFigure {
    /// Its name, with the unit.
    pub figure: String,
    /// The fields by which its row is found: the first that has them counts.
    pub row: BTreeMap<String, Value>,
    /// The field of the row; points separate the fields of fields.
    pub field: String,
    /// Its value in the published rows.
    pub published: f64,
}

/// A figure as published and as measured here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduced {
    /// The figure's name.
    pub figure: String,
    /// Its published value.
    pub published: f64,
    /// Its value here; `None` where the command printed no such row, or a row without the field.
    pub here: Option<f64>,
    /// `here` ÷ `published`; `None` where one is missing or 0.
    pub ratio: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    claim: Vec<Claim>,
}

impl Claim {
    /// All of them.
    ///
    /// # Panics
    /// Never: the list is part of the program, and tests read it.
    pub fn all() -> Vec<Claim> {
        let list: List = toml::from_str(include_str!("../claims.toml")).expect("a valid list");
        list.claim
    }

    /// The figures, each beside that in the output of the claim's command: lines of JSON.
    pub fn compare(&self, output: &str) -> Vec<Reproduced> {
        let rows: Vec<Value> =
            output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.figures.iter().map(|figure| figure.reproduced(&rows)).collect()
    }
}

impl ClaimedFigure {
    fn reproduced(&self, rows: &[Value]) -> Reproduced {
        let here = self.find(rows);
        let comparable = here.filter(|here| *here != 0.0 && self.published != 0.0);
        Reproduced {
            figure: self.figure.clone(),
            published: self.published,
            here,
            ratio: comparable.map(|here| here / self.published),
        }
    }

    fn find(&self, rows: &[Value]) -> Option<f64> {
        rows.iter().filter(|row| self.is_of(row)).find_map(|row| {
            let mut fields = self.field.split('.');
            fields.try_fold(row, |value, name| value.get(name))?.as_f64()
        })
    }

    fn is_of(&self, row: &Value) -> bool {
        self.row.iter().all(|(name, wanted)| {
            row.get(name).is_some_and(|value| match (value.as_f64(), wanted.as_f64()) {
                (Some(value), Some(wanted)) => value == wanted,
                _ => value == wanted,
            })
        })
    }
}

impl ClaimProgram {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ClaimProgram::RheoLab => "rheo-lab",
            ClaimProgram::Rheo => "rheo",
        }
    }
}

impl TableRow for Claim {
    const COLUMNS: &'static [Column<Claim>] = &[
        Column::name("name", 20, |claim| &claim.name),
        Column::text("time", 6, |claim| claim.time.clone()),
        Column::apart(Column::name("needs", 28, |claim| &claim.needs)),
        Column::apart(Column::name("claim", 0, |claim| &claim.claim)),
    ];
}

impl TableRow for Reproduced {
    const COLUMNS: &'static [Column<Reproduced>] = &[
        Column::name("figure", 48, |row| &row.figure),
        Column::text("published", 12, |row| digits(row.published)),
        Column::text("here", 12, |row| or_dash(row.here, digits)),
        Column::known("ratio", 7, 2, |row| row.ratio),
    ];
}

/// A figure to five digits behind the point, without zeros at its end.
fn digits(value: f64) -> String {
    let mut text = String::new();
    let _ = write!(text, "{value:.5}");
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    fn text(path: &str) -> String {
        let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn published_figures_are_those_of_the_rows_in_results() {
        for claim in Claim::all() {
            assert!(!claim.figures.is_empty(), "{}", claim.name);
            for figure in claim.compare(&text(&claim.rows)) {
                assert_eq!(
                    figure.here,
                    Some(figure.published),
                    "{}: {}",
                    claim.name,
                    figure.figure
                );
            }
        }
    }

    #[test]
    fn names_differ_and_each_page_links_the_rows_of_its_claim() {
        let claims = Claim::all();
        let names: BTreeSet<&str> = claims.iter().map(|claim| claim.name.as_str()).collect();
        assert_eq!(names.len(), claims.len());
        for Claim { name, page, rows, .. } in &claims {
            assert!(text(page).contains(&format!("(../{rows})")), "{name}: {page}");
        }
    }

    #[test]
    fn a_figure_is_found_by_the_fields_of_its_row() {
        let row = |text: &str| serde_json::from_str(text).unwrap();
        let figure = ClaimedFigure {
            figure: "p99".into(),
            row: row(r#"{"lanes": 2, "chain": "nat"}"#),
            field: "p99.value".into(),
            published: 4.0,
        };
        let claim = Claim { figures: vec![figure], ..Claim::all().remove(0) };
        let output = "no row\n{\"lanes\":1,\"chain\":\"nat\",\"p99\":{\"value\":1.0}}\n\
                      {\"lanes\":2.0,\"chain\":\"nat\",\"p99\":null}\n\
                      {\"lanes\":2.0,\"chain\":\"nat\",\"p99\":{\"value\":6.0}}\n";
        let [reproduced] = &claim.compare(output)[..] else { panic!() };
        assert_eq!((reproduced.here, reproduced.ratio), (Some(6.0), Some(1.5)));
        assert!(reproduced.line().ends_with(" 4            6    1.50"), "{}", reproduced.line());
        let [missing] = &claim.compare("{\"lanes\":2}\n")[..] else { panic!() };
        assert_eq!((missing.here, missing.ratio), (None, None));
    }

    #[test]
    fn figures_have_no_zeros_at_their_end() {
        assert_eq!([0.0, 52.497, 460_754.0, 0.000_004].map(digits), ["0", "52.497", "460754", "0"]);
    }
}
