//! What the charts are built from.

use std::time::Duration;

use rheostat_measure::machine::Machine;
use rheostat_serve::{RequestStage, RequestTimes, StageSummary, TimedRequest};

use super::*;
use crate::record::RequestClass;
use crate::sched::StageTimes;

/// Stages that took these nanoseconds on average, and of the slowest requests.
fn times(means: [f64; RequestStage::COUNT], slowest: &[[u64; RequestStage::COUNT]]) -> StageTimes {
    let summary = |mean_ns| StageSummary { mean_ns, ..StageSummary::default() };
    let request = |stages: &[u64; RequestStage::COUNT]| TimedRequest {
        arrived: rheostat_base::Time::ZERO,
        class: 0,
        stages: stages.map(Duration::from_nanos),
    };
    StageTimes::of(&RequestTimes {
        sampled: 12,
        stages: means.map(summary).to_vec(),
        total: summary(means.iter().sum()),
        slowest: slowest.iter().map(request).collect(),
    })
}

fn row(scheduler: &str, load: f64, stages: Option<StageTimes>) -> RequestRow {
    RequestRow {
        scheduler: scheduler.into(),
        workers: Some(2),
        rig: "pumped".into(),
        workload: "bimodal-1".into(),
        load: Some(load),
        offered: load * 1e6,
        achieved: Some(load * 1e6),
        p99_us: Some(10.0 * load),
        p999_us: Some(20.0 * load),
        p999_range: Some([15.0 * load, 25.0 * load]),
        stages,
        ..RequestRow::default()
    }
}

fn header() -> Header {
    Header {
        command: "rheo bench sched --times".into(),
        commit: "0123456789ab".into(),
        profile: "dist".into(),
        machine: Machine {
            processor: "made-up <processor>".into(),
            cores: 2,
            kernel: "6".into(),
            memory_gib: 24,
        },
        started: "2026-11-26T20:30:00Z".into(),
    }
}

#[test]
fn a_page_without_rows_states_that_nothing_was_measured() {
    let empty = page(&header(), "a note", &[]);
    assert!(empty.contains("There is no row: an error ended"), "{empty}");
    assert!(!empty.contains("were not timed"), "{empty}");
    assert!(
        empty.contains("<title>Requests by scheduler: nothing was measured</title>"),
        "{empty}"
    );
}

fn texts(page: &str, tag: &str) -> Vec<String> {
    let body = page.split_once("<!DOCTYPE html>").unwrap().1;
    let document = roxmltree::Document::parse(body).unwrap();
    let of_tag = document.descendants().filter(|node| node.has_tag_name(tag));
    of_tag.filter_map(|node| node.text()).map(str::to_owned).collect()
}

#[test]
fn the_parts_of_a_bar_add_up_to_what_requests_took() {
    let means = [1_500.4, 420.0, 0.0, 1_000.0, 33.3, 210.2];
    let slowest = [[90_000, 400, 0, 100_000, 5_000, 200], [10_000, 600, 0, 0, 95_000, 300]];
    let timed = row("inline-ws", 0.5, Some(times(means, &slowest)));
    let rows = [&timed];
    let sampled = stage_chart(&rows, StageFigure::Sampled);
    let names: Vec<_> = sampled.parts().iter().map(|part| part.name.as_str()).collect();
    assert_eq!(
        names,
        ["receive queue", "TCP in", "queue", "application", "waiting for its turn", "TCP out"]
    );
    let [panel] = sampled.panels() else { panic!("{sampled:?}") };
    assert_eq!((panel.name.as_str(), panel.stacks.len()), ("load 0.5", 1));
    // Each stage is rounded to a nanosecond.
    let total_us = means.iter().sum::<f64>() / 1e3;
    assert!((panel.stacks[0].total() - total_us).abs() <= 6.0 * 0.000_5, "{panel:?}");
    let slow = stage_chart(&rows, StageFigure::Slowest);
    let of_slowest = slowest.iter().flatten().sum::<u64>() as f64 / 2.0 / 1e3;
    assert!((slow.panels()[0].stacks[0].total() - of_slowest).abs() <= 6.0 * 0.000_5);
    assert_eq!(slow.panels()[0].stacks[0].values[3], 50.0);
}

#[test]
fn each_load_has_a_panel_and_each_scheduler_a_bar_of_its_own() {
    let stages = || Some(times([100.0; 6], &[]));
    let rows = [
        row("inline-dfcfs", 0.2, stages()),
        row("inline-dfcfs", 0.2, stages()),
        row("inline-dfcfs", 0.7, stages()),
        row("inline-dfcfs", 0.7, stages()),
    ];
    let rows = numbered(&rows);
    let chart = stage_chart(&rows.iter().collect::<Vec<_>>(), StageFigure::Sampled);
    let bars: Vec<Vec<&str>> = chart
        .panels()
        .iter()
        .map(|panel| panel.stacks.iter().map(|stack| stack.name.as_str()).collect())
        .collect();
    assert_eq!(bars, [["inline-dfcfs", "inline-dfcfs (2)"]; 2]);
    let slowest = stage_chart(&rows.iter().collect::<Vec<_>>(), StageFigure::Slowest);
    assert!(slowest.panels().is_empty(), "no request was kept");
}

#[test]
fn rows_without_stages_have_no_bar_and_are_named() {
    let beyond = RequestRow { saturated: true, ..row("dispatcher-1:1", 0.9, None) };
    let timed = || Some(times([1_000.0, 500.0, 0.0, 900.0, 0.0, 100.0], &[[1_000; 6]]));
    let rows = [row("inline-dfcfs", 0.9, timed()), beyond, row("inline-cfcfs", 0.9, None)];
    let chart = stage_chart(&rows.iter().collect::<Vec<_>>(), StageFigure::Sampled);
    assert_eq!(chart.panels()[0].stacks.len(), 1);
    let page = page(&header(), "A note.", &rows);
    let paragraphs = texts(&page, "p");
    let said = "bimodal-1, 2 workers, pumped: no stages of dispatcher-1:1, load 0.9 (more was offered \
                than it can do); inline-cfcfs, load 0.9 (not timed).";
    assert!(paragraphs.contains(&said.to_owned()), "{paragraphs:?}");
    let shown =
        "At load 0.9: inline-dfcfs 2.5\u{a0}µs (40\u{a0}% receive queue). Means of 12 requests.";
    assert!(paragraphs.contains(&shown.to_owned()), "{paragraphs:?}");

    let untimed = super::page(&header(), "A note.", &[row("inline-dfcfs", 0.9, None)]);
    assert!(untimed.contains("The stages of requests were not timed."), "{untimed}");
    assert_eq!(texts(&untimed, "h3").len(), 2, "latencies are shown all the same");
}

#[test]
fn a_page_names_rig_and_machine_and_draws_latencies_of_what_is_not_saturated() {
    let classes = || {
        let class = |name: &str, us| RequestClass {
            name: name.into(),
            p999_us: Some(us),
            slowdown_p999: None,
        };
        vec![class("short", 4.0), class("long", 140.0)]
    };
    let of =
        |scheduler: &str, load| RequestRow { classes: classes(), ..row(scheduler, load, None) };
    let saturated = RequestRow { saturated: true, p999_us: Some(7e6), ..of("inline-ws", 0.7) };
    let rows = [of("inline-dfcfs", 0.2), of("inline-ws", 0.2), of("inline-dfcfs", 0.7), saturated];
    let page = page(&header(), "A note.", &rows);
    assert_eq!(
        texts(&page, "h1"),
        ["Requests by scheduler: rig pumped, made-up <processor>, 2 cores"]
    );
    assert!(texts(&page, "p").contains(&"A note.".to_owned()));
    let titles = texts(&page, "h3");
    assert_eq!(
        titles,
        ["p99", "p99.9", "p99.9 of short requests", "p99.9 of long requests"]
            .map(|name| format!("bimodal-1, 2 workers, pumped: {name} over the load"))
    );
    let says = texts(&page, "p");
    assert!(says.contains(&"At load 0.7: inline-dfcfs 14\u{a0}µs.".to_owned()), "{says:?}");
    assert!(!page.contains("7\u{a0}s"), "times of a saturated row grow with its length");
}

#[test]
fn many_schedulers_are_drawn_by_kind() {
    let names = [
        "inline-cfcfs",
        "inline-dfcfs",
        "ideal-ps",
        "dispatcher-1:7",
        "dispatcher-2:6",
        "dispatcher-1:7-dfcfs",
        "dispatcher-2:6-dfcfs (2)",
        "dispatcher-1:7-ws",
        "dispatcher-2:6-ws",
        "dispatcher-4:4-ws",
        "somewhere:7000",
    ];
    let rows = names.map(|name| row(name, 0.5, None));
    let page = page(&header(), "", &rows);
    let titles: Vec<String> = texts(&page, "h3").into_iter().step_by(2).collect();
    let kinds = [
        "inline",
        "dispatchers with a central queue",
        "dispatchers with queues by connection",
        "dispatchers whose members steal",
        "others",
    ];
    assert_eq!(
        titles,
        kinds.map(|kind| format!("bimodal-1, 2 workers, pumped, {kind}: p99 over the load"))
    );
    let few = super::page(&header(), "", &rows[..SERIES]);
    assert_eq!(texts(&few, "h3").len(), 2);
}

#[test]
fn replies_are_drawn_where_a_scheduler_does_not_keep_up() {
    let slow = |load| RequestRow {
        achieved: Some(4e5),
        saturated: load > 0.4,
        ..row("dispatcher-1:1", load, None)
    };
    let rows = [row("inline-ws", 0.4, None), row("inline-ws", 0.8, None), slow(0.4), slow(0.8)];
    let behind = page(&header(), "", &rows);
    let said = "Do not keep up, from these rates on: dispatcher-1:1 400\u{a0}k of 800\u{a0}k.";
    assert!(texts(&behind, "p").contains(&said.to_owned()), "{:?}", texts(&behind, "p"));
    let kept_up = page(&header(), "", &rows[..3]);
    assert!(!kept_up.contains("replies over requests"));
}
