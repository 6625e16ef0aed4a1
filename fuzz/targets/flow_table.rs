//! Any sequence of operations on a flow table, against a map.
#![no_main]

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rheostat_base::Time;
use rheostat_packet::FlowKey;
use rheostat_state::{FlowHasher, FlowTable, Probe, StateLayout, TableConfig};

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u8),
    Remove(u8),
    Write(u8, u64),
    Deadline(u8, u16),
    Evictable(u8, bool),
    Evict,
    Expire(u16),
    EndBurst,
}

const CAPACITY: usize = 20;

fn key(number: u8) -> FlowKey {
    let end = (Ipv4Addr::new(192, 0, 2, 1), 443);
    FlowKey::v4((Ipv4Addr::new(10, 0, 0, number % 50), 1_000), end, 6, 0)
}

struct Known {
    state: u64,
    deadline: Time,
}

fuzz_target!(|input: (u64, Vec<Step>)| {
    let (seed, steps) = input;
    let hasher =
        FlowHasher::new(std::array::from_fn(|i| seed.rotate_left(9 * i as u32) ^ i as u64));
    let mut layout = StateLayout::new();
    let handle = layout.reserve::<u64>().unwrap();
    let config = TableConfig { capacity: CAPACITY, aliases: false };
    let mut table = FlowTable::new(config, Arc::new(layout), hasher).unwrap();
    let mut known: HashMap<FlowKey, Known> = HashMap::new();
    let mut now = Time::from_secs(1);
    // Entries freed in a burst rest until its end.
    let mut buried = 0_usize;
    for step in steps {
        match step {
            Step::Insert(number) if !known.contains_key(&key(number)) => {
                let key = key(number);
                let inserted = table.insert(hasher.hash(&key), &key, now);
                let has_room = known.len() < CAPACITY;
                assert!(inserted.is_err() || has_room, "more flows than the table may hold");
                assert!(inserted.is_ok() || !has_room || buried > 0, "no room in an empty place");
                if let Ok(flow) = inserted {
                    table.flow(flow).unwrap().init(handle, number.into());
                    let state = number.into();
                    known.insert(key, Known { state, deadline: Time::NEVER });
                }
            }
            Step::Remove(number) => {
                let key = key(number);
                let found = table.find_now(hasher.hash(&key), &key);
                let was_there = known.remove(&key).is_some();
                assert_eq!(found.is_some(), was_there);
                if let Some(flow) = found {
                    assert!(table.remove(flow) && !table.remove(flow));
                    assert!(table.flow(flow).is_none(), "a flow that has ended is found");
                    buried += 1;
                }
            }
            Step::Write(number, value) => {
                let key = key(number);
                if let Some(mut flow) = table.find_flow(hasher.hash(&key), &key, Probe::default()) {
                    *flow.state(handle).unwrap() = value;
                    known.get_mut(&key).unwrap().state = value;
                }
            }
            Step::Deadline(number, ahead) => {
                let key = key(number);
                if let Some(mut flow) = table.find_flow(hasher.hash(&key), &key, Probe::default()) {
                    let deadline = now + Duration::from_millis(u64::from(ahead) * 20);
                    flow.set_deadline(deadline);
                    known.get_mut(&key).unwrap().deadline = deadline;
                }
            }
            Step::Evictable(number, evictable) => {
                let key = key(number);
                if let Some(mut flow) = table.find_flow(hasher.hash(&key), &key, Probe::default()) {
                    flow.set_evictable(evictable);
                }
            }
            Step::Evict => {
                if let Some(flow) = table.oldest_evictable() {
                    let key = table.flow(flow).unwrap().key();
                    assert!(table.evict(flow));
                    assert!(known.remove(&key).is_some());
                    buried += 1;
                }
            }
            Step::Expire(ahead) => {
                now += Duration::from_millis(u64::from(ahead) * 10);
                let mut ended = Vec::new();
                let reclaimed = table.expire(now, usize::MAX, |flow| ended.push(flow.key()));
                assert!(reclaimed.complete && reclaimed.flows == ended.len());
                buried += ended.len();
                for key in ended {
                    let flow = known.remove(&key).expect("a flow ended twice");
                    assert!(flow.deadline <= now, "a flow ended before its time");
                }
            }
            Step::EndBurst => {
                table.end_burst();
                buried = 0;
            }
            Step::Insert(_) => {}
        }
        assert_eq!(table.counts().live, known.len() as u64);
    }
    for number in 0..50 {
        let key = key(number);
        let flow = table.find_flow(hasher.hash(&key), &key, Probe::default());
        let state = flow.map(|mut flow| *flow.state(handle).unwrap());
        assert_eq!(state, known.get(&key).map(|flow| flow.state));
    }
});
