//! Whether it matters when the wheel is advanced. It must not: lanes with many shards do it rarely,
//! and their packets must fare as those of lanes with few.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const CAPACITY: usize = if cfg!(miri) { 4 } else { 16 };

/// Packets in a row.
const ARRIVALS: usize = if cfg!(miri) { 30 } else { 120 };

/// One packet: how long after the last, of which flow, and the time-out it gives it.
#[derive(Clone, Debug)]
struct Arrival {
    after: Duration,
    flow: u32,
    timeout: Duration,
    evictable: bool,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let timeout = prop_oneof![Just(2_u64), Just(30), Just(240), Just(7_440)];
    (0..20_000_u64, 0..40_u32, timeout, any::<bool>()).prop_map(
        |(after, flow, timeout, evictable)| Arrival {
            after: Duration::from_millis(after),
            flow,
            timeout: Duration::from_secs(timeout),
            evictable,
        },
    )
}

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Known,
    New,
    /// New, and a flow of this key made room.
    Evicted(FlowKey),
    Refused,
}

/// Serves one packet as a chain does: find, or make room and create.
fn serve(table: &mut FlowTable, arrival: &Arrival, now: Time) -> Fate {
    let key = key(arrival.flow);
    let mut fate = Fate::Known;
    let mut id = table.look_up(&key);
    if let Some(old) = id
        && table.flow(old).unwrap().is_expired(now)
    {
        table.remove(old);
        id = None;
    }
    if id.is_none() {
        fate = Fate::New;
        id = table.insert_key(&key, now).ok();
    }
    if id.is_none() {
        let reclaimed = table.expire(now, usize::MAX, |_| ());
        assert!(reclaimed.complete);
        if reclaimed.flows == 0 {
            let Some(oldest) = table.oldest_evictable() else { return Fate::Refused };
            fate = Fate::Evicted(table.flow(oldest).unwrap().key());
            table.evict(oldest);
        }
        id = Some(table.insert_key(&key, now).expect("room was made"));
    }
    let mut flow = table.flow(id.unwrap()).unwrap();
    flow.set_deadline(now + arrival.timeout);
    flow.set_evictable(arrival.evictable);
    table.end_burst();
    fate
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn packets_fare_the_same_however_the_wheel_is_advanced(
        arrivals in prop::collection::vec((arrival(), 0..4_usize), 1..ARRIVALS),
    ) {
        let mut eager = table(CAPACITY, StateLayout::new());
        let mut lazy = table(CAPACITY, StateLayout::new());
        let mut now = Time::from_secs(1_700_000_000);
        for (arrival, budget) in &arrivals {
            now += arrival.after;
            let _ = eager.expire(now, *budget, |_| ());
            prop_assert_eq!(serve(&mut eager, arrival, now), serve(&mut lazy, arrival, now));
        }
        let (mut left, mut as_left) = (Vec::new(), Vec::new());
        for (table, left) in [(&mut eager, &mut left), (&mut lazy, &mut as_left)] {
            prop_assert!(table.expire(now, usize::MAX, |_| ()).complete);
            let found = (0..40).filter_map(|number| table.look_up(&key(number)));
            let found: Vec<FlowId> = found.collect();
            left.extend(found.into_iter().map(|id| table.flow(id).unwrap().key().to_string()));
        }
        prop_assert_eq!(left, as_left);
    }
}
