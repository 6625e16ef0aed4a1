use super::*;

fn bench<'a>(costs: &'a Costs, policies: &[&str]) -> SloBench<'a> {
    let micros = Duration::from_micros;
    let waiting = Objectives::waiting(micros(100), micros(500));
    SloBench {
        costs,
        noisy: false,
        lanes: 8,
        policies: policies.iter().map(|name| (*name).to_owned()).collect(),
        phase: Duration::from_millis(300),
        objectives: Objectives { latency: policy::Latency::Total, ..waiting },
        zipf: 1.2,
        seed: 1,
    }
}

#[test]
fn flows_leave_and_shards_move_and_no_packet_is_lost_doubled_or_overtaken() {
    let costs = Costs::built_in();
    let rows = bench(&costs, &["rsspp", "dyssect"]).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(rows.len(), 2 * PHASES.len());
    assert!(rows.iter().all(|row| row.faults == 0), "{rows:?}");
    let (rsspp, dyssect) = rows.split_at(PHASES.len());
    assert!(rsspp.iter().all(|row| row.offloaded == 0 && row.predicted_us.is_none()));
    assert!(dyssect.iter().any(|row| row.offloaded > 0 && row.offloading > 0.0), "{dyssect:?}");
    assert!(dyssect.iter().any(|row| row.predicted_us.is_some()));
    for rows in [rsspp, dyssect] {
        assert!(rows.iter().any(|row| row.migrations > 0), "{rows:?}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let costs = Costs::built_in();
    let good = bench(&costs, &["rsspp"]);
    let refused = |bench: SloBench<'_>| bench.run().unwrap_err().to_string();
    assert!(refused(SloBench { lanes: 2, ..good.clone() }).contains("from 3 to 64"));
    assert!(refused(SloBench { phase: Duration::ZERO, ..good.clone() }).contains("100 ms"));
    assert!(refused(SloBench { zipf: f64::NAN, ..good.clone() }).contains("exponent"));
    let objectives = Objectives { percentile: 1.0, ..good.objectives };
    assert!(refused(SloBench { objectives, ..good.clone() }).contains("percentile 1"));
    let policies = vec!["rss++".to_owned()];
    assert!(refused(SloBench { policies, ..good }).contains("did you mean `rsspp`?"));
}
