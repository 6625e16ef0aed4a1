//! A table some of whose flows are detached does what one does none of whose flows ever is.
//!
//! Timed: threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::DeviceId;

use super::*;

/// Keys in play, and flows there is room for: keys contend for both.
const KEYS: u32 = if cfg!(miri) { 8 } else { 40 };
const CAPACITY: usize = if cfg!(miri) { 5 } else { 20 };
const STEPS: usize = if cfg!(miri) { 30 } else { 150 };

#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    Alias(u32, u32),
    /// A packet: its stamp, and how far ahead it sets the deadline.
    Packet(u32, u32, Duration),
    Evictable(u32, bool),
    Detach(u32),
    Attach(u32),
    Remove(u32),
    EvictOldest,
    Expire(Duration),
    EndBurst,
}

fn step() -> impl Strategy<Value = Step> {
    let span = prop_oneof![
        (0..3_000_u64).prop_map(Duration::from_millis),
        (0..90_u64).prop_map(Duration::from_secs),
        (0..700_u64).prop_map(Duration::from_secs),
    ];
    prop_oneof![
        6 => (0..KEYS).prop_map(Step::Insert),
        3 => (0..KEYS, 0..KEYS).prop_map(|(flow, key)| Step::Alias(flow, key)),
        8 => (0..KEYS, 0..20_u32, span.clone()).prop_map(|(flow, stamp, ahead)| Step::Packet(flow, stamp, ahead)),
        2 => (0..KEYS, any::<bool>()).prop_map(|(flow, on)| Step::Evictable(flow, on)),
        6 => (0..KEYS).prop_map(Step::Detach),
        3 => (0..KEYS).prop_map(Step::Attach),
        2 => (0..KEYS).prop_map(Step::Remove),
        1 => Just(Step::EvictOldest),
        4 => span.prop_map(Step::Expire),
        2 => Just(Step::EndBurst),
    ]
}

/// A table and the flows of it that are detached, by their numbers.
struct Lending {
    table: FlowTable,
    away: HashMap<u32, DetachedFlow>,
}

impl Lending {
    fn attach(&mut self, number: u32) {
        let flow = self.away.remove(&number).expect("a detached flow is somewhere");
        self.table.attach(flow);
    }

    /// Takes the flow of a key back, so that the table can do with it what it likes.
    fn bring(&mut self, key: &FlowKey) {
        if let Some(detached) = self.table.detached(hash(key), key) {
            self.attach(detached.number);
        }
    }
}

/// A flow in both tables, whose entries may have other numbers.
fn ids(lending: &Lending, oracle: &FlowTable, number: u32) -> Option<(FlowId, FlowId)> {
    Some((lending.table.look_up(&key(number))?, oracle.look_up(&key(number))?))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn detaching_flows_changes_nothing(steps in prop::collection::vec(step(), 1..STEPS)) {
        let (mut layout, mut other) = (StateLayout::new(), StateLayout::new());
        let (mine, theirs) = (layout.reserve::<Box<u64>>().unwrap(), other.reserve::<Box<u64>>().unwrap());
        let mut lending = Lending { table: table(CAPACITY, layout), away: HashMap::new() };
        let mut oracle = table(CAPACITY, other);
        let mut now = Time::from_secs(1_000_000);
        let mut numbers = 0..;
        for step in steps {
            match step {
                Step::Insert(number) => {
                    let key = key(number);
                    if oracle.look_up(&key).is_some() {
                        continue;
                    }
                    let made = lending.table.insert_key(&key, now);
                    let other = oracle.insert_key(&key, now);
                    prop_assert_eq!(made.is_ok(), other.is_ok());
                    if let (Ok(id), Ok(other)) = (made, other) {
                        lending.table.flow(id).unwrap().init(mine, Box::new(0));
                        oracle.flow(other).unwrap().init(theirs, Box::new(0));
                        lending.table.flow(id).unwrap().set_deadline(now + Duration::from_secs(60));
                        oracle.flow(other).unwrap().set_deadline(now + Duration::from_secs(60));
                    }
                }
                Step::Alias(flow, number) => {
                    let (key, alias) = (key(flow), key(number));
                    let Some((id, other)) = ids(&lending, &oracle, flow) else { continue };
                    lending.bring(&key);
                    let done = lending.table.alias(id, hash(&alias), &alias);
                    prop_assert_eq!(done, oracle.alias(other, hash(&alias), &alias));
                }
                Step::Packet(number, stamp, ahead) => {
                    let (key, deadline) = (key(number), now + ahead);
                    let Some((id, other)) = ids(&lending, &oracle, number) else { continue };
                    let mut flow = oracle.flow(other).unwrap();
                    **flow.state(theirs).unwrap() += u64::from(stamp);
                    let late = flow.note_arrival(true, DeviceId(0), stamp);
                    flow.set_deadline(deadline);
                    let detached = lending.table.detached(hash(&key), &key);
                    let noted = match detached {
                        Some(detached) => {
                            prop_assert_eq!(detached.flow, id);
                            prop_assert!(lending.table.flow(id).is_none());
                            lending.table.note_sent(detached, deadline);
                            let flow = lending.away.get_mut(&detached.number).unwrap();
                            let mut flow = flow.open(mine).expect("its state is there");
                            **flow.states += u64::from(stamp);
                            flow.set_deadline(deadline);
                            flow.note_arrival(true, DeviceId(0), stamp)
                        }
                        None => {
                            let mut flow = lending.table.flow(id).unwrap();
                            **flow.state(mine).unwrap() += u64::from(stamp);
                            flow.set_deadline(deadline);
                            flow.note_arrival(true, DeviceId(0), stamp)
                        }
                    };
                    prop_assert_eq!(noted, late);
                }
                Step::Evictable(number, on) => {
                    let key = key(number);
                    let Some((id, other)) = ids(&lending, &oracle, number) else { continue };
                    lending.bring(&key);
                    oracle.flow(other).unwrap().set_evictable(on);
                    lending.table.flow(id).unwrap().set_evictable(on);
                }
                Step::Detach(number) => {
                    let Some((id, _)) = ids(&lending, &oracle, number) else { continue };
                    let name = numbers.next().unwrap();
                    let was_away = lending.table.detached(hash(&key(number)), &key(number)).is_some();
                    let flow = lending.table.detach(id, name);
                    prop_assert_eq!(flow.is_none(), was_away);
                    lending.away.extend(flow.map(|flow| (name, flow)));
                }
                Step::Attach(number) => lending.bring(&key(number)),
                Step::Remove(number) => {
                    let Some((id, other)) = ids(&lending, &oracle, number) else { continue };
                    let is_away = lending.table.detached(hash(&key(number)), &key(number)).is_some();
                    prop_assert_eq!(lending.table.remove(id), !is_away);
                    lending.bring(&key(number));
                    prop_assert!(oracle.remove(other));
                    prop_assert_eq!(lending.table.remove(id), is_away);
                }
                Step::EvictOldest => {
                    let oldest = lending.table.oldest_evictable();
                    prop_assert_eq!(oldest.is_some(), oracle.oldest_evictable().is_some());
                    let (Some(oldest), Some(other)) = (oldest, oracle.oldest_evictable()) else { continue };
                    if let Some(detached) = lending.table.oldest_evictable_detached() {
                        prop_assert_eq!(detached.flow, oldest);
                        prop_assert!(!lending.table.evict(oldest));
                        lending.attach(detached.number);
                    }
                    prop_assert!(lending.table.evict(oldest) && oracle.evict(other));
                }
                Step::Expire(pass) => {
                    now += pass;
                    while let Some(detached) = lending.table.overdue(now) {
                        lending.attach(detached.number);
                    }
                    let (mut ended, mut expected) = (Vec::new(), Vec::new());
                    let _ = lending.table.expire(now, usize::MAX, |flow| ended.push(flow.key()));
                    let _ = oracle.expire(now, usize::MAX, |flow| expected.push(flow.key()));
                    let sort = |keys: &mut Vec<FlowKey>| keys.sort_by_key(|key| *key.raw());
                    sort(&mut ended);
                    sort(&mut expected);
                    prop_assert_eq!(ended, expected);
                }
                Step::EndBurst => {
                    lending.table.end_burst();
                    oracle.end_burst();
                }
            }
            prop_assert_eq!(lending.table.counts(), oracle.counts());
            prop_assert_eq!(lending.table.detached_len(), lending.away.len());
            for number in 0..KEYS {
                let found = lending.table.look_up(&key(number)).is_some();
                prop_assert_eq!(found, oracle.look_up(&key(number)).is_some());
            }
        }
        let numbers: Vec<_> = lending.away.keys().copied().collect();
        numbers.into_iter().for_each(|number| lending.attach(number));
        for number in 0..KEYS {
            let Some((id, other)) = ids(&lending, &oracle, number) else { continue };
            let (mut flow, mut other) = (lending.table.flow(id).unwrap(), oracle.flow(other).unwrap());
            prop_assert_eq!((flow.key(), flow.alias()), (other.key(), other.alias()));
            prop_assert_eq!(flow.deadline(), other.deadline());
            prop_assert_eq!(flow.state(mine), other.state(theirs));
        }
    }
}

/// A state that counts how many of its kind are alive.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_detached_flow_outlives_its_table_and_drops_its_states_once() {
    let mut layout = StateLayout::new();
    let place = layout.reserve::<Counted>().unwrap();
    let alive = Arc::new(AtomicUsize::new(2));
    let mut table = table(4, layout);
    for number in [0, 1] {
        let id = table.insert_key(&key(number), Time::ZERO).unwrap();
        table.flow(id).unwrap().init(place, Counted(alive.clone()));
    }
    let id = table.look_up(&key(0)).unwrap();
    let mut flow = table.detach(id, 7).expect("it has all states");
    assert!(table.detach(id, 8).is_none(), "only once");
    drop(table);
    assert_eq!(alive.load(Ordering::Relaxed), 1, "the other flow's");
    assert!(flow.open(place).is_some());
    drop(flow);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn a_flow_without_all_its_states_is_not_detached() {
    let mut layout = StateLayout::new();
    let (_, place) = (layout.reserve::<u32>().unwrap(), layout.reserve::<u32>().unwrap());
    let mut table = table(4, layout);
    let id = table.insert_key(&key(0), Time::ZERO).unwrap();
    table.flow(id).unwrap().init(place, 1);
    assert!(table.detach(id, 0).is_none());
}

#[test]
#[should_panic(expected = "back to the table that it came from")]
fn a_flow_is_not_attached_to_another_table() {
    let [mut mine, mut other] = [(); 2].map(|()| table(4, StateLayout::new()));
    for table in [&mut mine, &mut other] {
        table.insert_key(&key(0), Time::ZERO).unwrap();
    }
    let id = mine.look_up(&key(0)).unwrap();
    other.attach(mine.detach(id, 0).unwrap());
}

/// Another thread works on a flow while the table looks others up, follows old probes and evicts: for Miri.
#[test]
fn two_threads_share_an_entry() {
    let mut layout = StateLayout::new();
    let place = layout.reserve::<[u8; 100]>().unwrap();
    let mut table = table(8, layout);
    for number in 0..3 {
        let id = table.insert_key(&key(number), Time::ZERO).unwrap();
        table.flow(id).unwrap().init(place, [0; 100]);
        table.flow(id).unwrap().set_evictable(true);
        table.flow(id).unwrap().set_deadline(Time::from_secs(5));
    }
    let mine = key(0);
    let probe = table.probe(hash(&mine), mine.family());
    let id = table.look_up(&mine).unwrap();
    let mut flow = table.detach(id, 0).unwrap();
    let other = std::thread::spawn(move || {
        for round in 0..50_u32 {
            let mut open = flow.open(place).unwrap();
            open.states[99] += 1;
            open.note_arrival(true, DeviceId(0), round);
            open.set_deadline(Time::from_secs(u64::from(round)));
        }
        flow
    });
    for _ in 0..50 {
        assert!(table.probed(&mine, probe).is_none());
        assert_eq!(table.find(hash(&mine), &mine, probe), Some(id));
        assert!(table.flow(id).is_none() && !table.remove(id));
    }
    for number in [1, 2] {
        let id = table.look_up(&key(number)).unwrap();
        assert!(table.evict(id), "its neighbours in lists may be away");
    }
    let id = table.attach(other.join().unwrap());
    assert_eq!(table.flow(id).unwrap().state(place).unwrap()[99], 50);
    assert_eq!(table.flow(id).unwrap().deadline(), Time::from_secs(49));
}
