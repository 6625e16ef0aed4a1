use std::time::Duration;

use rheostat_base::{LaneId, Time};
use rheostat_run::LaneSample;
use rheostat_state::object::{Distributed, Recipe, Vector};
use rheostat_state::txn::{Objects, Txn};

use super::{Observed, ScalingProfile};

const SETTING: &str = "[function.toy] staleness";

/// A counter that two lanes change and read in turn, and a vector with an element that one lane reads while the
/// other writes it, so that their transactions conflict every time.
struct Toy {
    objects: Objects,
    counter: Distributed<u64>,
    vector: Vector<u64>,
    lanes: [Txn; 2],
}

impl Toy {
    fn new() -> Toy {
        let objects = Objects::new(2);
        let add = |sum: &mut u64, share: &u64| *sum += share;
        let counter = Distributed::new(&objects, "toy.counter", 0, add, Duration::ZERO);
        objects.set_by(counter.id(), Recipe::RaiseStaleness, SETTING);
        let vector = Vector::new(&objects, "toy.vector", [0; 4]);
        let lanes = [0, 1].map(|lane| {
            let mut txn = Txn::new(&objects, LaneId(lane));
            txn.sample_every(1);
            txn
        });
        Toy { objects, counter, vector, lanes }
    }

    /// Lane 0 has read the counter when lane 1 changes it.
    fn conflict_about_counter(&mut self) {
        let [first, second] = &mut self.lanes;
        first.begin(Time::ZERO);
        self.counter.update(first, |count| *count += 1).unwrap();
        self.counter.read(first).unwrap();
        second.begin(Time::ZERO);
        self.counter.update(second, |count| *count += 1).unwrap();
        second.commit().unwrap();
        assert!(first.commit().is_err());
    }

    /// Both lanes change an element that both have read.
    fn conflict_about_element(&mut self) {
        let [first, second] = &mut self.lanes;
        for lane in [&mut *first, &mut *second] {
            lane.begin(Time::ZERO);
            self.vector.update(lane, 2, |element| *element += 1).unwrap();
        }
        first.commit().unwrap();
        assert!(second.commit().is_err());
    }

    fn profile(&self, lanes: &[LaneSample]) -> ScalingProfile {
        let (infos, profile) = (self.objects.infos(), self.objects.profile());
        ScalingProfile::of(&Observed {
            functions: &["toy".to_owned()],
            seconds: 2.0,
            lanes,
            shared: Some((&infos, &profile)),
        })
    }
}

fn lane(received: u64, handoff_out: u64) -> LaneSample {
    LaneSample { received, handoff_out, busy_ns: 1_000_000_000, ..LaneSample::default() }
}

#[test]
fn causes_are_ranked_with_their_lines_and_the_setting_that_helps() {
    let mut toy = Toy::new();
    (0..3).for_each(|_| toy.conflict_about_counter());
    toy.conflict_about_element();
    let profile = toy.profile(&[lane(500, 0), lane(500, 0)]);
    assert_eq!((profile.commits, profile.aborts, profile.sampled), (4, 4, 4));
    assert_eq!((profile.abort_rate, profile.lost_seconds), (0.5, 1.0));
    let [first, second] = profile.causes.as_slice() else { panic!("{profile}") };
    assert_eq!(
        (first.object.as_str(), first.operations.as_str()),
        ("toy.counter", "read / update")
    );
    assert_eq!((first.share, first.aborts, first.lost_seconds), (0.75, 3, 0.75));
    // Of eight attempts, three would not be made any more.
    assert_eq!(first.gain, 8.0 / 5.0);
    assert!(first.recipe.ends_with(&format!("staleness: {SETTING}")), "{}", first.recipe);
    let places: Vec<&str> = first.source.split(" / ").collect();
    assert!(places.len() == 2 && places.iter().all(|place| place.contains("tests.rs:")));
    assert_eq!(
        (second.object.as_str(), second.operations.as_str()),
        ("toy.vector", "update / update")
    );
    assert!(!second.source.contains(" / "), "the same place is named once: {}", second.source);
    let text = profile.to_string();
    for wanted in ["75.0 % of the aborts", SETTING, "1.60 times the rate", &first.source] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
}

#[test]
fn both_orders_of_a_conflict_are_one_cause() {
    let mut toy = Toy::new();
    for aborted in [0, 1] {
        let [first, second] = &mut toy.lanes;
        first.begin(Time::ZERO);
        toy.vector.update(first, 2, |element| *element += 1).unwrap();
        second.begin(Time::ZERO);
        toy.vector.update(second, 2, |element| *element += 2).unwrap();
        toy.lanes[1 - aborted].commit().unwrap();
        assert!(toy.lanes[aborted].commit().is_err());
    }
    let causes = toy.profile(&[]).causes;
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!((causes[0].aborts, causes[0].source.matches(" / ").count()), (2, 1));
}

#[test]
fn the_cause_of_most_aborts_comes_first_even_if_no_two_of_its_lines_do() {
    let mut toy = Toy::new();
    (0..3).for_each(|_| toy.conflict_about_counter());
    // Four times about one element, in two ways.
    (0..2).for_each(|_| toy.conflict_about_element());
    for _ in 0..2 {
        let [first, second] = &mut toy.lanes;
        first.begin(Time::ZERO);
        toy.vector.read(first, 2).unwrap();
        toy.vector.update(first, 3, |element| *element += 1).unwrap();
        second.begin(Time::ZERO);
        toy.vector.update(second, 2, |element| *element += 1).unwrap();
        second.commit().unwrap();
        assert!(first.commit().is_err());
    }
    let causes = toy.profile(&[]).causes;
    let ranked: Vec<_> = causes.iter().map(|cause| (cause.object.as_str(), cause.aborts)).collect();
    assert_eq!(ranked, [("toy.vector", 2), ("toy.vector", 2), ("toy.counter", 3)]);
    // Of 14 attempts, four would not be made any more: that of either pair of lines.
    assert_eq!((causes[0].gain, causes[1].gain), (1.4, 1.4));
}

#[test]
fn uneven_lanes_are_told_and_a_few_packets_are_no_reason() {
    let toy = Toy::new();
    let profile = toy.profile(&[lane(1_000, 600), lane(1_600, 0)]);
    // 400 and 1,600 packets: 1,600 over 1,000.
    assert_eq!(profile.imbalance, Some(1.6));
    let uneven = |profile: &ScalingProfile| profile.notes.iter().any(|n| n.contains("uneven"));
    assert!(uneven(&profile));
    assert!(!uneven(&toy.profile(&[lane(1_000, 0), lane(1_600, 0)])));
    assert!(!uneven(&toy.profile(&[lane(3, 0), lane(0, 0)])));
    assert_eq!(toy.profile(&[lane(0, 0)]).imbalance, None);
}

#[test]
fn functions_without_objects_are_told_so_and_imbalance_is_there_all_the_same() {
    let profile = ScalingProfile::of(&Observed {
        functions: &["firewall".to_owned()],
        seconds: 1.0,
        lanes: &[lane(400, 0), lane(600, 0)],
        shared: None,
    });
    assert_eq!((profile.shares, profile.imbalance), (false, Some(1.2)));
    let text = profile.to_string();
    assert!(text.contains("share no objects") && !text.contains("commits"), "{text}");
}

#[test]
fn a_profile_is_read_as_it_was_written_and_has_the_fields_that_programs_expect() {
    let mut toy = Toy::new();
    toy.conflict_about_counter();
    let profile = toy.profile(&[lane(1, 0)]);
    let text = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<ScalingProfile>(&text).unwrap(), profile);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for field in ["commits", "aborts", "abort_rate", "imbalance"] {
        assert!(json[field].is_number(), "{field} in {json}");
    }
    for field in ["object", "operations", "cause", "source", "recipe"] {
        assert!(json["causes"][0][field].is_string(), "{field} in {json}");
    }
}

#[test]
fn what_happened_before_is_left_out() {
    let mut toy = Toy::new();
    toy.conflict_about_counter();
    let before = toy.objects.profile();
    toy.conflict_about_element();
    let since = toy.objects.profile().since(&before);
    assert_eq!((since.total().commits, since.total().aborts, since.noted()), (1, 1, 1));
    assert_eq!(since.lanes.len(), 2);
}
