//! Pages and figures of results that were made up for these tests: no policy behaved so.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_measure::machine::Machine;

use super::figures::both::Both;
use super::figures::figures;
use crate::noise::Noise;
use crate::record::{FileHeader, Plans, RecordedRun, Results, Series};

/// The shape of made-up results.
pub(super) struct Sample {
    pub(super) policies: &'static [(&'static str, f64)],
    pub(super) lanes: &'static [u16],
    pub(super) loads: &'static [f64],
    pub(super) seeds: u64,
    pub(super) simulated: bool,
    /// Whether the load doubles midway, and policies follow it.
    pub(super) surges: bool,
}

/// Policies with how uneven they leave the lanes.
pub(super) const POLICIES: &[(&str, f64)] =
    &[("rss", 0.22), ("rsspp", 0.03), ("local-search", 0.02), ("traffic-class", 0.12)];

impl Sample {
    pub(super) const BALANCE: Sample = Sample {
        policies: POLICIES,
        lanes: &[2],
        loads: &[0.8, 0.9, 0.94],
        seeds: 6,
        simulated: false,
        surges: false,
    };

    /// Made-up results, the same each time.
    pub(super) fn results(&self, scenario: &str) -> Results {
        let mut random = SmallRng::seed_from_u64(6);
        let mut runs = Vec::new();
        for &lanes in self.lanes {
            for &load in self.loads {
                for &(policy, uneven) in self.policies {
                    for seed in 1..=self.seeds {
                        let uneven =
                            uneven * random.random_range(0.8..1.2) * f64::from(lanes).sqrt();
                        runs.push(self.run(
                            scenario,
                            (policy, uneven),
                            lanes,
                            load,
                            seed,
                            &mut random,
                        ));
                    }
                }
            }
        }
        let gaps = [vec![40_000; 60], vec![900_000; 8]].concat();
        let noise = (!self.simulated).then(|| Noise::of_gaps(&gaps, 400_000_000, 1));
        let file_header = FileHeader {
            command: format!("made up for a test <of \"{scenario}\" & its report>"),
            commit: "0123456789ab".into(),
            profile: "dist".into(),
            machine: Machine {
                processor: "made-up processor".into(),
                cores: 2,
                kernel: "6".into(),
                memory_gib: 24,
            },
            started: "2026-11-21T20:30:00Z".into(),
            scenario: scenario.into(),
            title: format!("Made-up results of {scenario}"),
            question: "Can this be read?".into(),
            text: "title = \"<made up>\"\n".into(),
            noise,
            costs: self.simulated.then(|| "made-up.json: made up".into()),
            simulated: self.simulated,
        };
        Results { file_header, runs }
    }

    fn run(
        &self,
        scenario: &str,
        (policy, uneven): (&str, f64),
        lanes: u16,
        load: f64,
        seed: u64,
        random: &mut SmallRng,
    ) -> RecordedRun {
        const CAPACITY: f64 = 220_000.0;
        let seconds = 1.3;
        let hottest = load * (1.0 + uneven);
        let packets = CAPACITY * f64::from(lanes) * load * seconds;
        let dropped = packets / f64::from(lanes) * (hottest - 1.0).max(0.0);
        let wait = 4.0 / (1.0 - hottest.min(0.98)) + if hottest > 1.0 { 9_000.0 } else { 0.0 };
        let wait = wait * random.random_range(0.9..1.1);
        let latency = |share: f64| 5.0 - wait * (1.0 - share.min(0.99999)).ln();
        let moves = if policy == "rss" { 0 } else { 8 + (uneven * 100.0) as u64 };
        RecordedRun {
            scenario: scenario.into(),
            policy: policy.into(),
            lanes,
            load,
            seed,
            simulated: self.simulated,
            seconds,
            capacity: CAPACITY,
            packets: packets as u64,
            delivered: (packets - dropped) as u64,
            dropped: dropped as u64,
            latency_us: RecordedRun::SHARES.iter().map(|&share| (share, latency(share))).collect(),
            imbalance: 1.0 + uneven,
            spread: Some(2.0 * uneven),
            migrations: moves,
            active: lanes.into(),
            plans: (policy != "rss").then(|| Plans {
                count: 18,
                moving: 4,
                first_attempt: (policy == "rsspp").then_some(12),
                searched: (policy == "rsspp").then_some(14),
                solve_us_p50: 2.0 * f64::from(lanes) * random.random_range(0.9..1.1),
                solve_us_p99: 5.0 * f64::from(lanes),
            }),
            series: self.series((policy, uneven), lanes, load, dropped, moves, random),
            ..RecordedRun::default()
        }
    }

    fn series(
        &self,
        (policy, uneven): (&str, f64),
        lanes: u16,
        load: f64,
        dropped: f64,
        moves: u64,
        random: &mut SmallRng,
    ) -> Series {
        let count = 18;
        let factor = |at: usize| {
            if self.surges && at > 8 {
                1.0
            } else if self.surges {
                0.5
            } else {
                1.0
            }
        };
        let skew =
            |lane: u16| 1.0 + uneven * (1.0 - 2.0 * f64::from(lane) / f64::from(lanes.max(2) - 1));
        let mut loads = |lane: u16| -> Vec<f32> {
            let mut load = |at| load * factor(at) * skew(lane) * random.random_range(0.95..1.05);
            (0..count).map(|at| load(at).clamp(0.02, 1.0) as f32).collect()
        };
        let load_of: Vec<Vec<f32>> = (0..lanes).map(&mut loads).collect();
        let active = |at| {
            let needed = (f64::from(lanes) * factor(at)).ceil() as u16;
            if self.surges && policy != "rss" { needed } else { lanes }
        };
        Series {
            interval: 0.1,
            warm_up: 0.5,
            load: load_of,
            offered: (0..count)
                .map(|at| 220_000.0 * f64::from(lanes) * load * factor(at))
                .collect(),
            delivered: vec![10_000; count],
            dropped: vec![(dropped / count as f64) as u64; count],
            migrations: (0..count as u64).map(|at| if at < 4 { moves / 4 } else { 0 }).collect(),
            active: (0..count).map(active).collect(),
        }
    }
}

pub(super) fn sample(scenario: &str) -> Results {
    Sample::BALANCE.results(scenario)
}

fn fairness() -> Results {
    let lanes = &[2, 4, 8, 16, 32, 64];
    Sample { lanes, loads: &[0.7], simulated: true, ..Sample::BALANCE }.results("fairness")
}

fn surge() -> Results {
    Sample { lanes: &[16], loads: &[0.8], simulated: true, surges: true, ..Sample::BALANCE }
        .results("surge")
}

/// Parses a page, and looks for what no page may have.
fn parsed(page: &str) -> roxmltree::Document<'_> {
    let (doctype, html) = page.split_once('\n').expect("a page has lines");
    assert_eq!(doctype, "<!DOCTYPE html>");
    for never in ["NaN", "inf\"", "http-equiv", "<script", "<link", "<img", "url(http", "@import"] {
        assert!(!page.contains(never), "{never}");
    }
    roxmltree::Document::parse(html).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_page_is_well_formed_and_asks_for_nothing_from_elsewhere() {
    let page = super::page(&[sample("balance"), fairness(), surge()], &[], &[]);
    let document = parsed(&page);
    for node in document.descendants() {
        for attribute in node.attributes().filter(|a| ["href", "src"].contains(&a.name())) {
            assert!(attribute.value().starts_with('#'), "{attribute:?}");
        }
    }
    let ids: Vec<_> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let links = document.descendants().filter_map(|node| node.attribute("href"));
    assert!(links.clone().count() == 3 && links.clone().all(|link| ids.contains(&&link[1..])));
    let text = "made up for a test <of \"balance\" & its report>";
    assert!(document.descendants().any(|node| node.text() == Some(text)), "escaped once");
}

#[test]
fn every_figure_can_be_read_without_being_seen() {
    let page = super::page(&[sample("balance"), fairness(), surge()], &[], &[]);
    let document = parsed(&page);
    let figures: Vec<_> = document.descendants().filter(|n| n.has_tag_name("figure")).collect();
    assert!(figures.len() > 20, "{}", figures.len());
    for figure in figures {
        let has = |name: &str| figure.descendants().any(|node| node.tag_name().name() == name);
        for name in ["title", "desc", "table", "h3", "p"] {
            assert!(has(name), "{name}: {:?}", figure.descendants().find_map(|n| n.text()));
        }
        let rows = figure.descendants().filter(|node| node.has_tag_name("tr")).count();
        assert!(rows > 1, "the table has numbers");
    }
}

#[test]
fn figures_are_drawn_where_something_varies() {
    let titles = |results: &Results| -> String {
        figures(results).iter().map(|figure| figure.title.clone() + "\n").collect()
    };
    let balance = titles(&sample("balance"));
    assert!(
        balance.contains("p95 against load") && balance.contains("Dropped packets against load")
    );
    assert!(!balance.contains("against lanes") && !balance.contains("Lanes in use"), "{balance}");
    let fairness = titles(&fairness());
    assert!(fairness.contains("Imbalance against lanes") && !fairness.contains("against load"));
    let surge = titles(&surge());
    assert!(surge.contains("Lanes in use over time") && !surge.contains("against"), "{surge}");
    let mut undropped = sample("balance");
    undropped.runs.iter_mut().for_each(|run| run.dropped = 0);
    assert!(!titles(&undropped).contains("Dropped"));
}

#[test]
fn sentences_go_by_the_numbers() {
    let says = |results: &Results, title: &str| {
        let figure = figures(results).into_iter().find(|figure| figure.title.contains(title));
        figure.unwrap_or_else(|| panic!("{title}")).says.replace('\u{a0}', " ")
    };
    let results = sample("balance");
    let p95 = says(&results, "p95 against load");
    assert!(p95.starts_with("At a load of 0.94 on 2 lanes, p95 of rss: "), "{p95}");
    assert!(p95.contains("× lower") && p95.contains("rsspp"), "{p95}");
    let mut twice = results.clone();
    let again = twice.runs.iter().filter(|run| run.policy == "rss").map(|run| {
        // The same with other values: a factor of a thousand up or down.
        let factor = if run.seed % 2 == 0 { 1e3 } else { 1e-3 };
        let latency_us = run.latency_us.iter().map(|(share, us)| (*share, us * factor)).collect();
        RecordedRun { policy: "rss-again".into(), latency_us, ..run.clone() }
    });
    let again: Vec<RecordedRun> = again.collect();
    twice.runs.extend(again);
    let hidden = says(&twice, "p95 against load");
    assert!(hidden.contains("Not shown: rsspp") && !hidden.contains("lower"), "{hidden}");
    let mut same = results;
    for run in &mut same.runs {
        // The seed alone decides.
        run.latency_us = vec![(0.95, 100.0 + run.seed as f64 + run.load)];
    }
    let p95 = says(&same, "p95 against load");
    let end = "No difference to be seen between rss and rsspp 104 µs, local-search 104 µs and \
               traffic-class 104 µs.";
    assert!(p95.ends_with(end) || p95.contains("own noise"), "{p95}");
    assert!(!p95.contains("lower") && !p95.contains("higher"), "{p95}");
}

#[test]
fn what_lies_within_the_noise_is_marked_and_the_floor_is_drawn() {
    let mut results = sample("balance");
    let floor = results.file_header.noise.as_ref().unwrap().floor_us(0.99);
    assert!(floor > 100.0, "{floor}");
    let page = super::page(std::slice::from_ref(&results), &[], &[]);
    assert!(page.contains("class=\"floor\"") && page.contains('†'));
    results.file_header.noise = None;
    let page = super::page(&[results], &[], &[]);
    assert!(!page.contains("class=\"floor\"") && !page.contains('†'));
}

#[test]
fn simulated_figures_are_dashed_and_say_so() {
    let page = super::page(&[surge()], &[], &[]);
    assert!(page.contains("class=\"badge simulated\">simulated"));
    assert!(page.contains("class=\"s1 simulated\"") && page.contains("<span>simulated</span>"));
    let page = super::page(&[sample("balance")], &[], &[]);
    assert!(!page.contains("s1 simulated") && page.contains("class=\"badge\">measured"));
}

#[test]
fn odd_results_still_make_a_page() {
    let mut empty = sample("balance");
    empty.runs.clear();
    let mut single = sample("balance");
    single.runs.truncate(1);
    let mut bare = sample("balance");
    for run in &mut bare.runs {
        *run = RecordedRun {
            policy: run.policy.clone(),
            lanes: run.lanes,
            load: run.load,
            ..RecordedRun::default()
        };
    }
    let mut odd = sample("balance");
    for run in &mut odd.runs {
        run.policy = "<of & \"mine\">".into();
        run.imbalance = f64::NAN;
        run.capacity = 0.0;
        run.series.interval = 0.0;
        run.latency_us = vec![(0.5, f64::INFINITY), (0.95, f64::NAN), (0.99, 0.0)];
    }
    for results in [empty, single, bare, odd] {
        parsed(&super::page(&[results], &[], &[]));
    }
    assert!(
        super::page(&[Results { runs: Vec::new(), ..sample("balance") }], &[], &[])
            .contains("No run was finished")
    );
}

#[test]
fn lost_and_doubled_packets_are_told_first() {
    let mut results = sample("balance");
    assert!(
        super::page(std::slice::from_ref(&results), &[], &[])
            .contains("was lost, doubled, or overtaken")
    );
    results.runs[3].lost = 7;
    results.runs[4].reordered = 5;
    let page = super::page(&[results], &[], &[]);
    assert!(page.contains("class=\"warning\">7 lost and 0 doubled"));
    assert!(
        page.contains("class=\"warning\">Overtaken within their flow") && page.contains("rss 5.")
    );
}

/// Traffic for 4.5 lanes on more and more of them.
fn cores() -> Results {
    let mut results = sample("cores");
    results.file_header.simulated = true;
    let lanes = [4_u16, 5, 6, 8];
    let sample = Sample { lanes: &[4, 5, 6, 8], loads: &[0.9], simulated: true, ..Sample::BALANCE };
    results.runs = sample.results("cores").runs;
    for run in &mut results.runs {
        run.load = 4.5 / f64::from(run.lanes);
        let enough = if run.policy == "rss" { lanes[3] } else { lanes[1] };
        run.dropped = if run.lanes < enough { run.packets / 10 } else { 0 };
    }
    results
}

#[test]
fn the_same_traffic_on_more_lanes_shows_how_many_are_needed() {
    let figures = figures(&cores());
    let drops = figures.iter().find(|figure| figure.title.starts_with("Dropped")).unwrap();
    assert_eq!(drops.title, "Dropped packets against lanes, traffic for 4.5 lanes");
    assert!(drops.says.starts_with("On 5 lanes with traffic for 4.5 lanes,"), "{}", drops.says);
    let needed = "drop at most 0.1 %: rss 8, rsspp 5, local-search 5, traffic-class 5.";
    assert!(drops.says.ends_with(needed), "{}", drops.says);
}

#[test]
fn what_was_measured_and_simulated_is_drawn_in_one() {
    let measured = sample("balance");
    let mut simulated = Sample { simulated: true, ..Sample::BALANCE }.results("balance");
    for run in &mut simulated.runs {
        run.latency_us.iter_mut().for_each(|(_, us)| *us *= 3.0);
    }
    let both = Both::all(std::slice::from_ref(&measured));
    assert!(both.is_empty(), "nothing to hold it against");
    let all = [measured, simulated, fairness()];
    let both = Both::all(&all);
    assert_eq!(both.len(), 1);
    let figure = &both[0].figures()[0];
    assert_eq!(
        figure.says,
        "On 2 lanes, the simulated p95 is 3 to 3 times what was measured. In 0 of 12 rows there is no \
         difference to be seen."
    );
    let svg = figure.chart.svg("", "");
    assert!(svg.contains("class=\"s1\"") && svg.contains("class=\"s1 simulated\""));
    let keys: Vec<_> = figure.chart.keys().into_iter().map(|key| key.text).collect();
    let named = ["rss", "rsspp", "local-search", "traffic-class", "simulated", "measured"];
    assert_eq!(keys[..6], named);
    assert_eq!(both[0].table().rows.len(), 12);
    let warning = "one name and are not the same";
    assert!(!super::page(&all, &[], &[]).contains(warning));
    let mut other = all;
    other[1].file_header.text.push('#');
    let page = super::page(&other, &[], &[]);
    assert!(page.contains(warning));
    parsed(&page);
}
