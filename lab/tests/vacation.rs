//! Rows of `rheo bench vacation`: simulated ones agree with models, and those of threads are complete. How long the sleeps
//! of this machine take is not for a test to say.
//!
//! Timed: threads, sleep, clock.

use std::sync::Arc;
use std::time::Duration;

use rheostat_kernel::sleep::{SleepPoint, SleepProfile};
use rheostat_lab::vacation::{
    CaseRows, CaseTemplate, Measurement, Observation, Policy, Simulation, VacationBench,
    VacationCase, VacationFigure, VacationRow,
};
use rheostat_run::poll::metronome::Timeouts;

const US: fn(u64) -> Duration = Duration::from_micros;

fn template() -> CaseTemplate {
    CaseTemplate {
        workers: vec![2, 3],
        timeout: US(50),
        loads: vec![0.02],
        targets: vec![US(20)],
        service: US(2),
        window: Duration::from_millis(100),
        seed: 1,
    }
}

/// Sleeps that take up to 20 us more than asked, and 4 us of CPU time.
fn profile() -> Arc<SleepProfile> {
    let point = |asked| {
        let taken = (0..=200).map(|n| US(asked) + Duration::from_nanos(100 * n)).collect();
        SleepPoint::new(US(asked), taken, US(4)).unwrap()
    };
    Arc::new(SleepProfile::new([1, 10, 50, 100, 500].map(point).into()))
}

/// The simulated cases of a figure in so much virtual time, and their rows.
fn simulated(figure: VacationFigure, window: Duration) -> Vec<(VacationCase, Vec<VacationRow>)> {
    let template = CaseTemplate { window, ..template() };
    let bench = VacationBench { figures: vec![figure], template, only_simulated: true };
    let rows = |case: VacationCase| {
        let setup = Simulation { profile: profile(), ..case.setup.clone() };
        let case = VacationCase { setup, ..case };
        let result = case.setup.run();
        let seen = Observation::simulated(&case.setup, &result);
        let mut rows = VacationRow::of(&case, &profile(), &seen);
        rows.extend(VacationRow::of_course(&case, &result.course));
        (case, rows)
    };
    bench.cases().into_iter().map(rows).collect()
}

#[test]
fn simulated_vacations_of_equal_timeouts_are_near_the_law() {
    let cases = simulated(VacationFigure::EQUAL_TIMEOUTS, Duration::from_secs(2));
    assert_eq!(cases.len(), 2);
    for (_, rows) in cases {
        let [row] = &rows[..] else { panic!("one row of each case") };
        assert!(row.ks.unwrap() < 0.03, "{row:?}");
        assert!((row.mean_us / row.model_us.unwrap() - 1.0).abs() < 0.02, "{row:?}");
        assert!((row.won_by_other - row.won_model.unwrap()).abs() < 0.02, "{row:?}");
        assert_eq!(row.won_equation, Some(1.0));
        let mean = row.latency_mean_us.unwrap();
        assert!((mean / row.latency_burst_us.unwrap() - 1.0).abs() < 0.05, "{row:?}");
        assert!(row.latency_paper_us.unwrap() > 1.1 * mean, "{row:?}");
        assert_eq!((row.lost_tries_in_aim, row.loss), (None, Some(0.0)));
    }
}

#[test]
fn latencies_of_bursts_that_leave_together_follow_their_formula_up_to_high_loads() {
    for (case, rows) in simulated(VacationFigure::LATENCY, Duration::from_secs(1)) {
        let row = &rows[0];
        let (mean, model) = (row.latency_mean_us.unwrap(), row.latency_burst_us.unwrap());
        assert!((mean / model - 1.0).abs() < 0.1, "{row:?}");
        assert!(row.latency_paper_us.unwrap() > mean, "{row:?}");
        let load = case.setup.rates[0][0].1 * case.setup.service.as_secs_f64();
        assert!((row.rho - load).abs() < 0.03, "{row:?}");
    }
}

#[test]
fn backups_win_as_often_as_the_law_has_it() {
    for (_, rows) in simulated(VacationFigure::BACKUP_WINS, Duration::from_secs(1)) {
        let row = &rows[0];
        let model = row.won_model.unwrap();
        assert!((row.won_by_other / model - 1.0).abs() < 0.25, "{row:?}");
        // The equation has all mates in the long timeout; at this load one in five tries puts one into the short.
        assert!(row.won_equation.unwrap() < model, "{row:?}");
    }
}

#[test]
fn every_figure_has_simulated_rows_that_survive_json() {
    for figure in VacationFigure::ALL {
        let cases = simulated(*figure, Duration::from_millis(20));
        assert_eq!(cases.is_empty(), *figure == VacationFigure::DISTURBED, "{figure}");
        for (case, rows) in cases {
            let (lanes, workers) = (case.setup.rates.len(), case.setup.workers);
            let expected = match case.rows {
                CaseRows::Whole => 1,
                CaseRows::Lanes => lanes,
                CaseRows::Intervals => 31,
            };
            assert_eq!(rows.len(), expected, "{figure}");
            for row in &rows {
                assert!(row.simulated && row.figure == figure.name, "{row:?}");
                assert_eq!((row.lanes, row.workers), (lanes, workers));
                let json = serde_json::to_string(row).unwrap();
                assert_eq!(&serde_json::from_str::<VacationRow>(&json).unwrap(), row, "{json}");
            }
        }
    }
}

#[test]
fn a_ramp_rises_and_falls() {
    let cases = simulated(VacationFigure::RAMP, Duration::from_millis(310));
    let rows = &cases[0].1;
    let top = &rows[15];
    for row in [&rows[1], &rows[30]] {
        assert!(row.rho < 0.1 && row.cpu_share < top.cpu_share, "{row:?}");
    }
    assert!((top.rho - 0.9).abs() < 0.05, "{top:?}");
}

#[test]
fn random_binding_loses_less_than_static_binding_that_leaves_a_lane_to_late_workers() {
    let cases = simulated(VacationFigure::BINDING, Duration::from_secs(1));
    let loss = |name: &str| {
        let (_, rows) = cases.iter().find(|(case, _)| case.name == name).unwrap();
        rows[0].loss.unwrap()
    };
    let (random, fixed) = (loss("random binding"), loss("static binding"));
    // One lane of three is left to workers that are late.
    assert!(fixed > 0.1 && random < 0.7 * fixed, "{random} {fixed}");
}

#[test]
fn rows_of_threads_are_complete() {
    let measurement = Measurement::new();
    let bench = VacationBench {
        figures: vec![VacationFigure::EQUAL_TIMEOUTS],
        template: CaseTemplate { workers: vec![2], ..template() },
        only_simulated: false,
    };
    let case = bench.cases().into_iter().find(|case| case.is_real).unwrap();
    let Policy::Metronome(settings) = &case.setup.policy else { panic!("Metronome") };
    assert_eq!(settings.timeouts, Timeouts::Fixed { short: US(50), long: US(50) });
    // A machine that is busy otherwise may keep the workers away for all of a short time.
    let row = (0..8)
        .map(|longer| {
            let length = case.setup.warm_up + Duration::from_millis(100 << longer);
            let setup = Simulation { length, ..case.setup.clone() };
            let seen = measurement.run(&setup, false).expect("a sound run");
            let case = VacationCase { setup, ..case.clone() };
            VacationRow::of(&case, &profile(), &seen).remove(0)
        })
        .find(|row| row.vacations >= 100 && row.latency_mean_us.is_some() && row.won_by_other > 0.0)
        .expect("workers take turns");
    assert!(!row.simulated && row.figure == "4.3");
    assert!(row.mean_us > 0.0 && row.rho > 0.0 && row.cpu_share > 0.0, "{row:?}");
    assert!(row.tries >= row.vacations && (0.0..=1.0).contains(&row.lost_tries), "{row:?}");
    assert!((0.0..=1.0).contains(&row.ks.unwrap()) && row.won_by_other <= 1.0, "{row:?}");
    assert!(row.latency_p50_us.unwrap() <= row.latency_p99_us.unwrap(), "{row:?}");
    assert!(row.run_delay_ms.is_some() && row.steal_ms.is_some());
}
