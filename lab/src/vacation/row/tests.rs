//! Rows of observations that are made up, so that every number is known.

use rheostat_run::poll::metronome::Timeouts;

use super::*;
use crate::vacation::figure::VacationFigure;
use crate::vacation::observation::Vacations;
use crate::vacation::simulation::{Policy, Simulation};
use crate::vacation::tests::{profile, settings, simulation};

/// Two lanes of so many workers, in rows of this kind.
fn case(workers: usize, rows: CaseRows) -> VacationCase {
    let long = Duration::from_micros(500);
    let policy = Policy::Metronome(settings(Timeouts::Adaptive { long, follows: false }));
    let setup = Simulation {
        interval: Some(Duration::from_millis(10)),
        ..simulation(workers, &[100_000.0; 2], policy)
    };
    let figure = VacationFigure::TARGETS;
    VacationCase { figure, name: "made up", setup, is_real: true, is_disturbed: false, rows }
}

fn lane(rate: f64, tries: u64, lost_tries: u64) -> LaneObservation {
    LaneObservation {
        rate,
        rho: rate / 1e6,
        vacation_mean: 40e-6,
        vacation_mean_square: 2e-9,
        vacations: 1_000,
        won_by_other: 250,
        tries,
        lost_tries,
        busy_mean: 5e-6,
    }
}

fn seen() -> Observation {
    Observation {
        lanes: vec![lane(100_000.0, 1_000, 50), lane(300_000.0, 3_000, 350)],
        vacations: Vacations::Binned(vec![(40e-6, 1_000)]),
        service: 1e-6,
        found: Some(12.5),
        latency_mean: Some(30e-6),
        latency_p50: Some(25e-6),
        latency_p99: Some(80e-6),
        packets: 4_000,
        cpu_share: 0.375,
        loss: 0.001,
        disturbance: Some((Duration::from_micros(1_500), Duration::from_millis(2))),
    }
}

#[test]
fn a_row_of_all_lanes_has_their_means_and_shares_of_their_sums() {
    let rows = VacationRow::of(&case(3, CaseRows::Whole), &profile(), &seen());
    let [row] = &rows[..] else { panic!("one row, not {rows:?}") };
    assert_eq!((row.workers, row.lanes, row.lane, row.simulated), (3, 2, None, false));
    assert_eq!((row.rate_pps, row.rho, row.mean_us, row.busy_us), (200_000.0, 0.2, 40.0, 5.0));
    assert_eq!((row.vacations, row.tries, row.found), (1_000, 4_000, Some(12.5)));
    assert_eq!((row.lost_tries, row.won_by_other), (0.1, 0.25));
    assert_eq!(row.lost_tries_in_aim, Some(true), "a tenth is within the aim");
    let latencies = (row.latency_mean_us, row.latency_p50_us, row.latency_p99_us);
    assert_eq!(latencies, (Some(30.0), Some(25.0), Some(80.0)));
    assert_eq!((row.cpu_share, row.loss), (0.375, Some(0.001)));
    assert_eq!((row.run_delay_ms, row.steal_ms), (Some(1.5), Some(2.0)));
    // The service of a packet, and what arrives at a lane on average, with the moments of V that were seen.
    let service = LaneService { rate: 200_000.0, mean: 1e-6, mean_square: 1e-12 };
    let (mean, square) = (40e-6, 2e-9);
    assert_eq!(row.latency_model_us, Some(us(service.mean_latency(mean, square))));
    assert_eq!(row.latency_burst_us, Some(us(mean_latency_in_bursts(&service, mean, square))));
    assert_eq!(row.latency_paper_us, Some(us(mean_latency_of_original(&service, mean))));
}

#[test]
fn lost_tries_have_an_aim_up_to_two_workers_per_lane_and_no_latency_is_modelled_without_packets() {
    let mut seen = seen();
    seen.lanes[0].lost_tries += 1;
    let row = |workers, seen: &Observation| {
        VacationRow::of(&case(workers, CaseRows::Whole), &profile(), seen).remove(0)
    };
    assert_eq!(row(4, &seen).lost_tries_in_aim, Some(false));
    assert_eq!(row(5, &seen).lost_tries_in_aim, None);
    let idle = Observation { latency_mean: None, ..seen };
    assert_eq!(row(3, &idle).latency_model_us, None);
    assert_eq!(row(3, &idle).latency_mean_us, None);
}

#[test]
fn a_row_of_a_lane_has_what_the_lane_had() {
    let rows = VacationRow::of(&case(3, CaseRows::Lanes), &profile(), &seen());
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.lane, row.rate_pps, row.rho, row.tries, row.lost_tries, row.won_by_other))
        .collect();
    let expected = [
        (Some(0), 100_000.0, 0.1, 1_000, 0.05, 0.25),
        (Some(1), 300_000.0, 0.3, 3_000, 0.116_667, 0.25),
    ];
    assert_eq!(found, expected);
    assert!(rows.iter().all(|row| row.cpu_share == 0.375 && row.vacations == 1_000));
}

#[test]
fn rows_of_intervals_are_per_second_and_lane() {
    let interval = |packets| Interval {
        packets,
        vacations: 100,
        vacation_sum: 4e-3,
        busy_sum: 1e-3,
        cpu: 5e-3,
    };
    let case = case(3, CaseRows::Intervals);
    assert_eq!(VacationRow::of(&case, &profile(), &seen()), []);
    let rows = VacationRow::of_course(&case, &[interval(1_000), interval(4_000)]);
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.at_ms, row.rate_pps, row.rho, row.mean_us, row.busy_us, row.cpu_share))
        .collect();
    // 10 ms and two lanes: 1,000 packets of 1 us are 50,000 packets per second and lane.
    let expected = [
        (Some(0.0), 50_000.0, 0.05, 40.0, 10.0, 0.25),
        (Some(10.0), 200_000.0, 0.2, 40.0, 10.0, 0.25),
    ];
    assert_eq!(found, expected);
}
