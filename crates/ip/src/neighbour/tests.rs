//! The machine of states in virtual time, and its bounds.

use super::*;
use crate::neighbour::entry::Visible;
use proptest::prelude::*;
use rheostat_base::Time;
use rheostat_packet::wire::MacAddress;

const MAC: MacAddress = [2, 0, 0, 0, 0, 7];
const OTHER: MacAddress = [2, 0, 0, 0, 0, 8];

fn key(host: u32) -> NeighbourKey {
    NeighbourKey::new(DeviceId(0), std::net::Ipv4Addr::from_bits(0x0a00_0000 + host).into())
}

fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn state(table: &Neighbours, key: NeighbourKey) -> Option<NeighbourState> {
    table.iter().find(|(other, ..)| *other == key).map(|(_, state, _)| state)
}

fn asks(table: &mut Neighbours, now: Time) -> Vec<Option<MacAddress>> {
    let mut questions = Vec::new();
    table.advance(now, &mut questions);
    questions.into_iter().map(|question| question.to).collect()
}

fn table() -> Neighbours {
    Neighbours::new(NeighbourLimits::default())
}

#[test]
fn three_requests_are_not_answered() {
    let mut table = table();
    let mut questions = Vec::new();
    assert_eq!(table.resolve(key(1), s(0), &mut questions), Resolution::Asked);
    let first = Solicitation { device: DeviceId(0), target: key(1).address(), to: None };
    assert_eq!(questions, [first]);
    // A second packet asks no second question.
    assert_eq!(table.resolve(key(1), s(0), &mut questions), Resolution::Asked);
    assert_eq!(questions.len(), 1);
    assert_eq!(table.next_deadline(), Some(s(1)));
    assert_eq!(asks(&mut table, s(1)), [None]);
    assert_eq!(asks(&mut table, s(2)), [None]);
    assert_eq!(asks(&mut table, s(3)), []);
    assert_eq!((state(&table, key(1)), table.next_deadline()), (None, None));
}

#[test]
fn a_neighbour_lives_through_all_states() {
    let mut table = table();
    table.resolve(key(1), s(0), &mut Vec::new());
    table.reply(key(1), MAC, s(1));
    assert_eq!(state(&table, key(1)), Some(NeighbourState::Reachable));
    assert_eq!(asks(&mut table, s(31)), []);
    assert_eq!(state(&table, key(1)), Some(NeighbourState::Stale));
    table.note_use(key(1), s(40));
    assert_eq!(state(&table, key(1)), Some(NeighbourState::Delay));
    assert_eq!(asks(&mut table, s(44)), []);
    assert_eq!(asks(&mut table, s(45)), [Some(MAC)]);
    assert_eq!(state(&table, key(1)), Some(NeighbourState::Probe));
    table.reply(key(1), MAC, s(46));
    assert_eq!(state(&table, key(1)), Some(NeighbourState::Reachable));
    // Without an answer, it is removed.
    asks(&mut table, s(76));
    table.note_use(key(1), s(80));
    for (now, asked) in [(85, 1), (86, 1), (87, 1), (88, 0)] {
        assert_eq!(asks(&mut table, s(now)).len(), asked, "{now}");
    }
    assert_eq!(state(&table, key(1)), None);
}

#[test]
fn without_packets_for_it_it_is_forgotten() {
    let mut table = table();
    table.learn(key(1), MAC, s(0));
    assert_eq!(state(&table, key(1)), Some(NeighbourState::Stale));
    assert_eq!(asks(&mut table, s(599)), []);
    assert_eq!(asks(&mut table, s(600)), []);
    assert_eq!(state(&table, key(1)), None);
}

#[test]
fn advertisements_count_as_rfc_4861_7_2_5_has_it() {
    let say = |mac, solicited, overrides| Advertisement { mac, solicited, overrides };
    let after = |start: NeighbourState, advertised: Advertisement| {
        let mut table = table();
        table.resolve(key(1), s(0), &mut Vec::new());
        if start != NeighbourState::Incomplete {
            table.advertise(key(1), say(Some(MAC), start == NeighbourState::Reachable, true), s(0));
        }
        table.advertise(key(1), advertised, s(1));
        let (_, state, mac) = table.iter().next().unwrap();
        (state, mac)
    };
    use NeighbourState::{Incomplete, Reachable, Stale};
    for (start, advertised, expected) in [
        // Without a link address, an answer to the first question states nothing.
        (Incomplete, say(None, true, true), (Incomplete, [0; 6])),
        (Incomplete, say(Some(MAC), true, false), (Reachable, MAC)),
        (Incomplete, say(Some(MAC), false, true), (Stale, MAC)),
        // Another link address that does not override: doubt, at most.
        (Reachable, say(Some(OTHER), true, false), (Stale, MAC)),
        (Stale, say(Some(OTHER), true, false), (Stale, MAC)),
        (Reachable, say(Some(OTHER), false, true), (Stale, OTHER)),
        (Stale, say(Some(OTHER), true, true), (Reachable, OTHER)),
        (Stale, say(Some(MAC), true, false), (Reachable, MAC)),
        (Stale, say(None, true, false), (Reachable, MAC)),
        (Reachable, say(Some(MAC), false, true), (Reachable, MAC)),
        // No host has the address of a group.
        (Stale, say(Some([1, 0, 0, 0, 0, 0]), true, true), (Stale, MAC)),
    ] {
        assert_eq!(after(start, advertised), expected, "{start:?} {advertised:?}");
    }
}

#[test]
fn strangers_are_not_learned() {
    let mut table = table();
    table.merge(key(1), MAC, s(0));
    table.reply(key(2), MAC, s(0));
    assert_eq!(table.iter().count(), 0);
    table.learn(key(1), MAC, s(0));
    table.merge(key(1), OTHER, s(1));
    assert_eq!(table.iter().next().unwrap().2, OTHER);
    table.learn(key(3), [0xff; 6], s(0));
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn what_is_configured_stays() {
    let mut table = table();
    table.set_permanent(key(1), MAC);
    table.reply(key(1), OTHER, s(0));
    table.learn(key(1), OTHER, s(0));
    assert_eq!(asks(&mut table, s(9_999)), []);
    assert_eq!(table.iter().next().unwrap(), (key(1), NeighbourState::Permanent, MAC));
}

#[test]
fn a_scan_fills_neither_table_nor_link_and_the_gateway_is_still_found() {
    let limits = NeighbourLimits { entries: 32, incomplete: 8, questions_per_second: 1_000 };
    let mut table = Neighbours::new(limits);
    let gateway = key(0xffff);
    table.set_gateways([gateway]);
    let mut questions = Vec::new();
    let asked = (0..10_000)
        .filter(|host| table.resolve(key(*host), s(0), &mut questions) == Resolution::Asked)
        .count();
    assert_eq!((asked, questions.len()), (8, 8));
    assert_eq!(table.resolve(gateway, s(0), &mut questions), Resolution::Asked);
    table.reply(gateway, MAC, s(0));
    // A crowd that introduces itself takes the places of the oldest, never the gateway's.
    asks(&mut table, s(31));
    for host in 0..1_000 {
        table.learn(key(host), OTHER, s(40 + u64::from(host)));
    }
    assert_eq!(table.iter().count(), 32);
    assert_eq!(state(&table, gateway), Some(NeighbourState::Stale));
    assert_eq!(state(&table, key(999)), Some(NeighbourState::Stale));
    assert_eq!(state(&table, key(9)), None);
}

#[test]
fn questions_are_few_per_second() {
    let limits = NeighbourLimits { entries: 4_096, incomplete: 4_096, questions_per_second: 100 };
    let mut table = Neighbours::new(limits);
    let mut questions = Vec::new();
    for host in 0..4_000 {
        // Over a second.
        table.resolve(key(host), Time::from_millis(u64::from(host) / 4), &mut questions);
    }
    assert!((100..=151).contains(&questions.len()), "{}", questions.len());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Resolve(u32),
    Learn(u32, bool),
    Reply(u32, bool),
    Use(u32),
    Advance,
    Follow,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u32).prop_map(Step::Resolve),
        (0..6_u32, any::<bool>()).prop_map(|(host, other)| Step::Learn(host, other)),
        (0..6_u32, any::<bool>()).prop_map(|(host, other)| Step::Reply(host, other)),
        (0..6_u32).prop_map(Step::Use),
        Just(Step::Advance),
        Just(Step::Follow),
    ]
}

proptest! {
    /// Whatever happens, every entry has one timer, the counts agree, and a view that follows now and
    /// then shows what the table states.
    #[test]
    fn views_follow_and_the_books_balance(
        steps in prop::collection::vec((step(), 0_u64..9), 1..120),
    ) {
        let limits = NeighbourLimits { entries: 4, incomplete: 3, ..NeighbourLimits::default() };
        let mut table = Neighbours::new(limits);
        table.set_gateways([key(0)]);
        let mut view = View::default();
        let mut now = s(0);
        for (step, seconds) in steps {
            now = Time::from_nanos(now.as_nanos() + seconds * 1_000_000_000);
            let mac = |other| if other { OTHER } else { MAC };
            match step {
                Step::Resolve(host) => { table.resolve(key(host), now, &mut Vec::new()); }
                Step::Learn(host, other) => table.learn(key(host), mac(other), now),
                Step::Reply(host, other) => table.reply(key(host), mac(other), now),
                Step::Use(host) => table.note_use(key(host), now),
                Step::Advance => table.advance(now, &mut Vec::new()),
                Step::Follow => view.follow(&table),
            }
            prop_assert!(table.iter().count() <= 4);
            table.check();
        }
        view.follow(&table);
        for host in 0..6 {
            let expected = match table.visible(&key(host)) {
                Visible::Known { mac, stale } => Some(Seen { mac, stale }),
                _ => None,
            };
            prop_assert_eq!(view.get(&key(host)), expected);
        }
    }
}

#[test]
fn a_view_that_is_far_behind_reads_everything() {
    let mut table = table();
    let mut view = View::default();
    table.learn(key(1), MAC, s(0));
    view.follow(&table);
    for round in 0..3_000_u64 {
        table.learn(key(2), if round % 2 == 0 { MAC } else { OTHER }, s(round));
    }
    asks(&mut table, s(601));
    view.follow(&table);
    assert_eq!((view.get(&key(1)), view.get(&key(2)).unwrap().mac), (None, OTHER));
}

#[test]
fn on_another_link_neighbours_are_asked_again_and_permanent_ones_stay() {
    let mut table = table();
    let elsewhere = NeighbourKey::new(DeviceId(1), key(1).address());
    for key in [key(1), elsewhere] {
        table.resolve(key, s(0), &mut Vec::new());
        table.reply(key, MAC, s(0));
    }
    table.set_permanent(key(2), OTHER);
    table.resolve(key(3), s(0), &mut Vec::new());
    table.forget(DeviceId(0));
    table.check();
    assert_eq!(state(&table, key(1)), None);
    assert_eq!(state(&table, elsewhere), Some(NeighbourState::Reachable));
    assert_eq!(state(&table, key(2)), Some(NeighbourState::Permanent));
    assert_eq!(state(&table, key(3)), Some(NeighbourState::Incomplete));
    assert_eq!(table.resolve(key(1), s(1), &mut Vec::new()), Resolution::Asked);
}
