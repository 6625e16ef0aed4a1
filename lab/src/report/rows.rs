//! Files of results that are no runs of a scenario: rows of JSON, and tables as a command printed them.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rheostat_plot::{Page, Table};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;

use super::{requests, shards};
use crate::record::{RecordError, RequestRow};

/// Tables of up to so many rows are shown unfolded.
const SHORT: usize = 24;

/// One such file.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFile {
    /// Where it is.
    pub path: PathBuf,
    content: RowContent,
}

#[derive(Clone, Debug, PartialEq)]
enum RowContent {
    /// Objects, a line each.
    Rows(Vec<Block>),
    /// What a command printed.
    Text(String),
}

/// Rows, and how they were made: by the `command` of the line above them, if there is one.
#[derive(Clone, Debug, Default, PartialEq)]
struct Block {
    header: Option<ReportRow>,
    rows: Vec<ReportRow>,
    /// Those that are about requests.
    requests: Vec<RequestRow>,
}

/// Names and values in the order of the line.
#[derive(Clone, Debug, PartialEq)]
struct ReportRow(Vec<(String, Value)>);

impl ReportRow {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn value(&self) -> Value {
        Value::Object(self.0.iter().cloned().collect())
    }

    /// The same as a row of `rheo bench nf`, if it is one.
    fn as_row_of_chain(&self) -> Option<rheostat_measure::nf::Row> {
        serde_json::from_value(self.value()).ok()
    }

    fn is_header(&self) -> bool {
        self.get("command").is_some()
    }

    /// Whether the line is of a file of runs, which has a reader of its own.
    fn is_of_runs(&self) -> bool {
        matches!(&self.0[..], [(name, _)] if name == "preface" || name == "run")
    }
}

impl<'de> Deserialize<'de> for ReportRow {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ReportRow, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = ReportRow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with names and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReportRow, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(ReportRow(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Reads rows from a file of JSON lines, or the text of a file that ends in `.txt`. A last line without an end was
/// interrupted and is left out.
///
/// # Errors
/// [`RecordError`] when the file cannot be read, a line is no object, or there is no row.
pub(super) fn read(path: &Path) -> Result<RowFile, RecordError> {
    let text = fs::read_to_string(path)
        .map_err(|source| RecordError::Io { path: path.to_owned(), source })?;
    if path.extension().is_some_and(|extension| extension == "txt") {
        return Ok(RowFile { path: path.to_owned(), content: RowContent::Text(text) });
    }
    let wrong = |line, problem: String| RecordError::Line { path: path.to_owned(), line, problem };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut blocks = vec![Block::default()];
    for (number, line) in (1..).zip(whole.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let row: ReportRow =
            serde_json::from_str(line).map_err(|error| wrong(number, error.to_string()))?;
        if row.is_of_runs() {
            return Err(wrong(number, "a run stands among rows".into()));
        }
        if row.is_header() {
            blocks.push(Block { header: Some(row), ..Block::default() });
        } else if let Some(block) = blocks.last_mut() {
            block.requests.extend(RequestRow::read(&row.value()));
            block.rows.push(row);
        }
    }
    if blocks.iter().flat_map(|block| &block.rows).all(|row| row.0.is_empty()) {
        return Err(wrong(1, "there is no row of results".into()));
    }
    Ok(RowFile { path: path.to_owned(), content: RowContent::Rows(blocks) })
}

impl RowFile {
    /// Its rows about requests, in their order.
    pub fn requests(&self) -> Vec<RequestRow> {
        let blocks = match &self.content {
            RowContent::Rows(blocks) => blocks.as_slice(),
            RowContent::Text(_) => &[],
        };
        blocks.iter().flat_map(|block| &block.requests).cloned().collect()
    }
}

/// Rows about requests that are drawn together, with the headers above them: those below one header, and loads of one rate each
/// with those that follow.
fn drawn_together(blocks: &[Block]) -> Vec<(Vec<&ReportRow>, Vec<RequestRow>)> {
    let is_single = |rows: &[RequestRow]| rows.iter().all(|row| row.load.is_none());
    let mut all: Vec<(Vec<&ReportRow>, Vec<RequestRow>)> = Vec::new();
    for block in blocks.iter().filter(|block| !block.requests.is_empty()) {
        match all.last_mut() {
            Some((headers, rows)) if is_single(rows) && is_single(&block.requests) => {
                headers.extend(&block.header);
                rows.extend(block.requests.iter().cloned());
            }
            _ => all.push((block.header.iter().collect(), block.requests.clone())),
        }
    }
    all
}

/// The header as a list, and behind it the text of a scenario, if it has one.
fn facts(page: &mut Page, header: &ReportRow) {
    let fields = header.0.iter().filter(|(name, _)| name != TEXT);
    page.facts(fields.map(|(name, value)| (name.as_str(), shown(value))));
    header.get(TEXT).and_then(Value::as_str).into_iter().for_each(|text| page.code(text));
}

/// The field of a header that has a scenario.
const TEXT: &str = "text";

pub(super) fn id(number: usize) -> String {
    format!("rows-{}", number + 1)
}

/// What the section is called: the file, and the folder that states when and where.
pub(super) fn title(file: &RowFile) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
    };
    let own = name(Some(&file.path)).unwrap_or_default();
    match name(file.path.parent()) {
        Some(folder) => format!("{own} ({folder})"),
        None => own,
    }
}

/// Writes the section.
pub(super) fn write(page: &mut Page, number: usize, file: &RowFile) {
    page.section(&id(number), &title(file), "rows", false);
    match &file.content {
        RowContent::Text(text) => page.code(text),
        RowContent::Rows(blocks) => {
            for block in blocks.iter().filter(|block| block.requests.is_empty()) {
                block.header.iter().for_each(|header| facts(page, header));
            }
            let rows: Vec<&ReportRow> = blocks.iter().flat_map(|block| &block.rows).collect();
            let of_chains: Vec<_> = rows.iter().filter_map(|row| row.as_row_of_chain()).collect();
            shards::write(page, &of_chains);
            for (headers, rows) in drawn_together(blocks) {
                headers.into_iter().for_each(|header| facts(page, header));
                requests::figures(page, &rows);
            }
            let table = table(&rows);
            page.table(&format!("{} rows", rows.len()), rows.len() <= SHORT, &table);
        }
    }
}

/// A column for each name that any row has, in the order in which they first appear.
fn table(rows: &[&ReportRow]) -> Table {
    let mut head: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.0) {
        if !head.contains(name) {
            head.push(name.clone());
        }
    }
    let cells = |row: &&ReportRow| {
        head.iter().map(|name| row.get(name).map_or_else(|| "–".to_owned(), shown)).collect()
    };
    let rows = rows.iter().map(cells).collect();
    Table { head, rows }
}

/// A value as a cell: objects as names and values, without quotation marks.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| format!("{name} {}", shown(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page;

    /// The page about one file with this text.
    fn shown_as(name: &str, text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let file = read(&path).map_err(|error| error.to_string())?;
        Ok(page(&[], &[], &[file]))
    }

    #[test]
    fn rows_become_a_table_with_columns_in_the_order_of_the_file() {
        let text = "{\"command\":\"rheo bench nf\",\"commit\":\"0f887dd\"}\n\
                    {\"chain\":\"nat\",\"ns\":1.5,\"dropped\":{\"queue_full\":3}}\n\
                    {\"chain\":\"a<b\",\"allocations\":null}\n{\"chain\":\"torn";
        let html = shown_as("nf.jsonl", text).unwrap();
        let body = html.split_once("<!DOCTYPE html>").unwrap().1;
        let document = roxmltree::Document::parse(body).unwrap();
        let texts = |tag: &str| -> Vec<String> {
            let of_tag = document.descendants().filter(|node| node.has_tag_name(tag));
            of_tag.filter_map(|node| node.text()).map(str::to_owned).collect()
        };
        // The first cell of a row is its heading.
        assert_eq!(texts("th"), ["chain", "ns", "dropped", "allocations", "nat", "a<b"]);
        assert_eq!(texts("td"), ["1.5", "queue_full 3", "–", "–", "–", "–"]);
        assert!(texts("dd").contains(&"rheo bench nf".to_owned()), "{html}");
    }

    #[test]
    fn rows_with_several_numbers_of_shards_have_a_figure() {
        let row = |shards: usize, mpps: f64| {
            format!(
                "{{\"chain\":\"nat\",\"flows\":1000,\"distribution\":\"uniform\",\"packet_bytes\":64,\
                 \"new_flow_share\":0.0,\"lanes\":1,\"shards\":{shards},\"mpps\":{mpps},\"mpps_min\":1.0,\
                 \"mpps_max\":9.0,\"ns_per_packet\":1.0,\"ns_above_harness\":1.0,\
                 \"allocations_per_packet\":0.0}}\n"
            )
        };
        let several = shown_as("nf.jsonl", &(row(1, 8.0) + &row(128, 6.0))).unwrap();
        assert!(several.contains("Throughput against shards"), "{several}");
        assert!(several.contains("0.750 of the throughput with 128 shards"), "{several}");
        let one = shown_as("nf.jsonl", &(row(128, 8.0) + &row(128, 6.0))).unwrap();
        assert!(!one.contains("Throughput against shards"));
    }

    #[test]
    fn each_command_that_measured_requests_has_figures_of_its_own() {
        let row = |load: f64, p999: f64| {
            format!(
                "{{\"scheduler\":\"inline-ws\",\"workers\":2,\"rig\":\"pumped\",\"workload\":\"null\",\
                 \"connections\":8,\"load\":{load},\"offered\":1e5,\"achieved\":1e5,\"capacity\":1e6,\
                 \"capacity_range\":[9e5,1.1e6],\"ns_per_request\":900.0,\"above_first_ns\":0.0,\
                 \"client_ns\":[200.0,200.0],\"service_ns\":1.0,\"p999_us\":{p999},\"saturated\":false,\
                 \"waited\":0,\"requests\":9,\"allocations\":0.0}}\n"
            )
        };
        let header = |command: &str| format!("{{\"command\":\"{command}\"}}\n");
        let text = header("rheo one") + &row(0.2, 5.0) + &header("rheo two") + &row(0.2, 7.0);
        let html = shown_as("sched.jsonl", &text).unwrap();
        let places =
            ["rheo one", "At load 0.2: inline-ws 5", "rheo two", "At load 0.2: inline-ws 7"]
                .map(|text| html.find(text).unwrap_or_else(|| panic!("{text} in {html}")));
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn what_a_command_printed_is_shown_as_it_is() {
        let html = shown_as("sharing.txt", "system  ns\nshared  <5\n").unwrap();
        assert!(html.contains("<pre><code>system  ns\nshared  &lt;5\n</code></pre>"), "{html}");
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        for (text, said) in [
            ("", "line 1: there is no row"),
            ("{}\n", "line 1: there is no row"),
            ("{\"chain\":\"nat\"}\n[1]\n", "line 2: "),
            ("{\"chain\":\n", "line 1: "),
            ("{\"run\":{}}\n", "line 1: a run stands among rows"),
        ] {
            let error = shown_as("rows.jsonl", text).unwrap_err();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }
}
