//! A figure of rows of `rheo bench nf` that differ in the number of shards.

use rheostat_measure::nf::Row;
use rheostat_plot::{Axis, Line, LineChart, Page, Point, Unit};

/// Draws throughput against shards, a line for each kind of row that was measured with several numbers of them; nothing where none
/// was.
pub(super) fn write(page: &mut Page, rows: &[Row]) {
    let mut kinds: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.control.is_none() && row.chain != "harness") {
        let name = kind_of(row);
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => kinds.push((name, vec![row])),
        }
    }
    kinds.retain(|(_, rows)| rows.iter().any(|row| row.shards != rows[0].shards));
    if kinds.is_empty() {
        return;
    }
    let mut says = Vec::new();
    let (x, y) = (Axis::log("shards", Unit::Count), Axis::linear("throughput", Unit::PacketRate));
    let mut chart = LineChart::new(x, y.from(0.0)).spans("windows");
    for (name, mut rows) in kinds {
        rows.sort_by_key(|row| row.shards);
        says.push(said(&name, &rows));
        chart = chart.with(Line::new(name, rows.into_iter().map(point)));
    }
    page.figure("Throughput against shards", &says.join(" "), &chart);
}

fn kind_of(row: &Row) -> String {
    let Row { chain, source, flows, distribution, packet_bytes, new_flow_share, lanes, .. } = row;
    let new = match new_flow_share {
        0.0 => String::new(),
        share => format!(", {} % new", 100.0 * share),
    };
    let lanes = match lanes {
        1 => String::new(),
        lanes => format!(", {lanes} lanes"),
    };
    let flows = Unit::Count.show((*flows).into());
    format!("{chain}, {flows} flows, {distribution}, {packet_bytes} B, {source}{new}{lanes}")
}

fn said(name: &str, rows: &[&Row]) -> String {
    let (few, many) = (rows[0], rows[rows.len() - 1]);
    format!(
        "{name}: {:.3} of the throughput with {} shards, where that with {} is 1.",
        many.mpps / few.mpps,
        many.shards,
        few.shards
    )
}

fn point(row: &Row) -> Point {
    let [y, low, high] = [row.mpps, row.mpps_min, row.mpps_max].map(|mpps| 1e6 * mpps);
    Point { x: row.shards as f64, y, span: Some((low, high)) }
}
