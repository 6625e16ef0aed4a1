//! The case studies on simulated lanes, where conflicts come out the same each time: what the profiler advises, and
//! that it helps. And on real ones, that the simulation is like them.
//!
//! Timed: threads, clock.

use rheostat_observe::profile::ScalingProfile;

use super::{Cost, RealLanes, Simulated, SimulatedLanes};
use crate::advice::{AdviceCase, profile_of};

/// Made up, and as it is on no machine: what conflicts with what depends on the ratio of the two alone.
const COST: Cost = Cost { attempt_ns: 40.0, packet_ns: 100.0 };

fn simulate(
    case: AdviceCase,
    lanes: usize,
    advised: bool,
    packets: u64,
) -> (Simulated, ScalingProfile) {
    let pattern = case.pattern(lanes, advised);
    let simulated = SimulatedLanes::new(&*pattern, 32, COST).run(packets);
    let profile = profile_of(&*pattern, &simulated.profile);
    (simulated, profile)
}

/// Follows the first advice on 8 lanes: it is about `object` and names `setting`, and leaves less than three quarters of
/// the aborts.
fn follow(case: AdviceCase, packets: u64, object: &str, recipe: &str, setting: &str) {
    let (before, profile) = simulate(case, 8, false, packets);
    let first = profile.causes.first().unwrap_or_else(|| panic!("{case}: no conflicts"));
    assert_eq!(first.object, object, "{profile}");
    assert_eq!(first.recipe, format!("{recipe}: {setting}"), "{profile}");
    let (after, advised) = simulate(case, 8, true, packets);
    assert!(
        advised.abort_rate < 0.75 * profile.abort_rate,
        "{case}: {} before and {} after\n{profile}\n{advised}",
        profile.abort_rate,
        advised.abort_rate
    );
    assert!(after.mpps() > before.mpps(), "{case}: {} and {}", before.mpps(), after.mpps());
}

#[test]
fn counters_that_may_be_old_end_the_conflicts_of_antiddos() {
    let recipe = "raise the maximum staleness";
    follow(AdviceCase::AntiDdos, 2_000, "antiddos.counters", recipe, "staleness");
}

#[test]
fn a_refresh_interval_ends_the_conflicts_of_a_bridge() {
    let recipe = "raise the refresh interval";
    follow(AdviceCase::Bridge, 2_000, "bridge.entries", recipe, "refresh_interval");
}

#[test]
fn more_addresses_end_the_conflicts_of_a_nat() {
    follow(AdviceCase::Nat, 20_000, "nat.endpoints", "provision more resources", "addresses");
}

#[test]
fn a_lane_alone_has_no_conflicts_and_takes_the_time_it_costs() {
    for case in AdviceCase::ALL {
        let (simulated, profile) = simulate(case, 1, false, 3_200);
        assert_eq!(profile.aborts, 0, "{profile}");
        let expected = COST.packet_ns + COST.attempt_ns / 32.0;
        let nanos = simulated.nanos / simulated.packets as f64;
        assert!((0.97..1.03).contains(&(nanos / expected)), "{case}: {nanos} of {expected} ns");
    }
}

#[test]
fn a_simulation_is_the_same_each_time() {
    let profiles = [0; 2].map(|_| {
        let (simulated, profile) = simulate(AdviceCase::AntiDdos, 4, false, 1_000);
        (simulated.nanos.to_bits(), profile.commits, profile.aborts)
    });
    assert_eq!(profiles[0], profiles[1]);
}

#[test]
fn threads_that_share_cores_lose_nothing_and_are_advised_alike() {
    let pattern = AdviceCase::AntiDdos.pattern(3, false);
    let mut lanes = RealLanes::new(&*pattern, 3, 32, 60).unwrap();
    let measured = lanes.run(20_000, 1).unwrap();
    // Every packet took effect in some transaction of up to 32.
    let commits = measured.profile.total().commits;
    assert!((60_000 / 32..=60_000).contains(&commits), "{commits}");
    let profile = profile_of(&*pattern, &measured.profile);
    // On one core there may be no conflict at all.
    if let Some(first) = profile.causes.first() {
        assert_eq!(first.recipe, "raise the maximum staleness: staleness", "{profile}");
    }
}
