//! From creation to the grave: keys, generations, states and their drops, arrivals.
//!
//! Timed: threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rheostat_base::DeviceId;

use super::*;

/// A state that counts how many of its kind are alive.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, Ordering::Relaxed);
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_table_takes_its_capacity_and_not_one_more() {
    let sizes: &[usize] = if cfg!(miri) { &[1, 8, 40] } else { &[1, 2, 8, 9, 16, 100, 4_096] };
    for &capacity in sizes {
        let mut table = table(capacity, StateLayout::new());
        for number in 0..capacity as u32 {
            let id = table.insert_key(&key(number), Time::ZERO).expect("there is room");
            // As many aliases as there can be fill the index to what it is sized for.
            let alias = key(3 * number + 1_000_000 - 1_000_000 % 3);
            let aliased = table.alias(id, hash(&alias), &alias);
            assert_eq!(aliased.is_ok(), key(number).family() == Family::V4, "{aliased:?}");
        }
        assert_eq!(table.insert_key(&key(4_999_998), Time::ZERO), Err(TableFull));
        for number in 0..capacity as u32 {
            let id = table.look_up(&key(number)).expect("every flow is found");
            assert_eq!(table.flow(id).unwrap().key(), key(number));
        }
        assert_eq!(table.counts().live, capacity as u64);
    }
}

#[test]
fn what_is_taken_back_was_never_there() {
    let mut layout = StateLayout::new();
    let handle = layout.reserve::<Counted>().unwrap();
    let alive = Arc::new(AtomicUsize::new(0));
    let mut table = table(2, layout);
    let old = table.insert_key(&key(0), Time::ZERO).unwrap();
    table.flow(old).unwrap().set_deadline(Time::from_nanos(1_024));
    let marks = table.flow(old).unwrap().marks();
    // More often than there are entries, and the burst does not end.
    for number in 1..300 {
        let id = table.insert_key(&key(number), Time::ZERO).expect("there is room for one");
        let alias = key(number + 3_000);
        // Where both are of IPv6, they take two entries.
        let _ = table.alias(id, hash(&alias), &alias);
        let mut flow = table.flow(id).unwrap();
        flow.init(handle, Counted::new(&alive));
        flow.set_deadline(Time::from_nanos(5));
        flow.set_evictable(true);
        let mut flow = table.flow(old).unwrap();
        flow.set_deadline(Time::from_nanos(u64::from(number)));
        assert!(!flow.note_arrival(true, DeviceId(1), number));
        assert!(table.retract(id) && !table.retract(id), "only once");
        assert!(table.flow(id).is_none());
        assert_eq!((table.look_up(&key(number)), table.look_up(&alias)), (None, None));
        assert_eq!((alive.load(Ordering::Relaxed), table.oldest_evictable()), (0, None));
        table.flow(old).unwrap().set_marks(marks);
    }
    let mut flow = table.flow(old).unwrap();
    assert_eq!(flow.deadline(), Time::from_nanos(1_024));
    assert!(!flow.note_arrival(true, DeviceId(1), 1), "no packet came before");
    let TableCounts { created, expired, live, .. } = table.counts();
    assert_eq!((created, expired, live), (1, 0, 1));
}

#[test]
fn deadlines_are_kept_in_units_of_256_ns_rounded_up() {
    let mut table = table(1, StateLayout::new());
    let id = table.insert_key(&key(0), Time::ZERO).unwrap();
    let kept = |table: &mut FlowTable, deadline| {
        let mut flow = table.flow(id).unwrap();
        flow.set_deadline(deadline);
        flow.deadline()
    };
    assert_eq!(kept(&mut table, Time::ZERO), Time::ZERO);
    assert_eq!(kept(&mut table, Time::from_nanos(1)), Time::from_nanos(256));
    assert_eq!(kept(&mut table, Time::from_nanos(256)), Time::from_nanos(256));
    let second = Time::from_secs(1_700_000_000);
    assert_eq!(kept(&mut table, second), second, "whole seconds are whole units");
    // What lies beyond the last unit never comes.
    let last = u64::MAX - 511;
    assert_eq!(kept(&mut table, Time::from_nanos(last)), Time::from_nanos(last));
    assert_eq!(kept(&mut table, Time::from_nanos(last + 1)), Time::NEVER);
    assert_eq!(kept(&mut table, Time::NEVER), Time::NEVER);
    assert!(!table.flow(id).unwrap().is_expired(Time::from_nanos(u64::MAX - 1)));
}

#[test]
fn a_recycled_entry_is_another_flow() {
    let mut table = table(1, StateLayout::new());
    let mut old = table.insert_key(&key(0), Time::ZERO).unwrap();
    for number in 1..200 {
        assert!(table.remove(old));
        assert!(!table.remove(old), "only once");
        assert!(table.flow(old).is_none());
        assert_eq!(table.look_up(&key(number - 1)), None);
        let new = table.insert_key(&key(number), Time::ZERO).expect("the spare entries serve");
        assert_ne!(new.index, old.index, "the entry rests until the burst is over");
        table.end_burst();
        assert!(table.flow(old).is_none());
        old = new;
    }
    assert_eq!(table.entries.used(), 2, "freed entries are used before fresh ones");
    let counts = table.counts();
    assert_eq!((counts.created, counts.expired, counts.live, counts.peak), (200, 199, 1, 1));
}

#[test]
fn a_burst_of_new_flows_fits_into_a_table_that_was_full() {
    let mut table = table(64, StateLayout::new());
    for number in 0..64 {
        table.insert_key(&key(number), Time::ZERO).unwrap();
    }
    table.end_burst();
    for number in 0..64 {
        let old = table.look_up(&key(number)).unwrap();
        assert!(table.remove(old));
        table.insert_key(&key(number + 64), Time::ZERO).expect("as many spare entries");
    }
}

#[test]
fn each_state_is_dropped_once() {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut layout = StateLayout::new();
    let plain = layout.reserve::<u16>().unwrap();
    let counted = layout.reserve::<Counted>().unwrap();
    let text = layout.reserve::<String>().unwrap();
    let mut table = table(4, layout);
    let ids: Vec<FlowId> =
        (0..4).map(|number| table.insert_key(&key(number), Time::ZERO).unwrap()).collect();
    for &id in &ids {
        let mut flow = table.flow(id).unwrap();
        assert!(flow.state(counted).is_none());
        *flow.init(plain, 7) += 1;
        flow.init(counted, Counted::new(&alive));
        flow.init(text, "state".to_owned()).push('s');
    }
    assert_eq!(alive.load(Ordering::Relaxed), 4);

    let mut flow = table.flow(ids[0]).unwrap();
    flow.init(counted, Counted::new(&alive));
    assert_eq!(alive.load(Ordering::Relaxed), 4, "the state that was there is dropped");
    assert_eq!(flow.take(text).as_deref(), Some("states"));
    assert_eq!(flow.take(text), None);
    assert_eq!(flow.state(plain), Some(&mut 8));

    assert!(table.remove(ids[0]));
    assert_eq!(alive.load(Ordering::Relaxed), 3);
    table.end_burst();
    let again = table.insert_key(&key(9), Time::ZERO).unwrap();
    assert!(table.flow(again).unwrap().state(counted).is_none(), "a new flow has no state");
    drop(table.flow(ids[1]).unwrap().take(counted));
    assert_eq!(alive.load(Ordering::Relaxed), 2);
    drop(table);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn a_state_that_panics_when_dropped_leaves_the_table_in_order() {
    struct Bomb(#[expect(dead_code, reason = "owned, to be leaked or freed")] Box<u8>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a drop that panics");
        }
    }

    let mut layout = StateLayout::new();
    let bomb = layout.reserve::<Bomb>().unwrap();
    let mut table = table(2, layout);
    let id = table.insert_key(&key(0), Time::ZERO).unwrap();
    table.flow(id).unwrap().init(bomb, Bomb(Box::new(1)));
    assert!(catch_unwind(AssertUnwindSafe(|| table.remove(id))).is_err());
    assert_eq!(table.counts().live, 0);
    assert_eq!(table.look_up(&key(0)), None);
    table.end_burst();
    assert!(table.insert_key(&key(0), Time::ZERO).is_ok());
}

#[test]
#[should_panic(expected = "a table of another layout")]
fn a_handle_of_another_layout_is_refused() {
    let mut foreign = StateLayout::new();
    let handle = foreign.reserve::<Box<u64>>().unwrap();
    let mut own = StateLayout::new();
    let number = own.reserve::<u64>().unwrap();
    let mut table = table(1, own);
    let id = table.insert_key(&key(0), Time::ZERO).unwrap();
    table.flow(id).unwrap().init(number, 1);
    table.flow(id).unwrap().state(handle);
}

#[test]
fn aliases_lead_to_their_flow_and_end_with_it() {
    let mut table = table(8, StateLayout::new());
    let inside = table.insert_key(&key(0), Time::ZERO).unwrap();
    let other = table.insert_key(&key(1), Time::ZERO).unwrap();
    let six = table.insert_key(&key(2), Time::ZERO).unwrap();
    let outside = key(100);
    let alias = |table: &mut FlowTable, id, key: &FlowKey| table.alias(id, hash(key), key);
    assert_eq!(alias(&mut table, inside, &outside), Ok(()));
    assert_eq!(table.look_up(&outside), Some(inside));
    assert_eq!(table.flow(inside).unwrap().alias(), Some(outside));
    assert_eq!(alias(&mut table, other, &outside), Err(AliasError::Taken));
    assert_eq!(alias(&mut table, other, &key(0)), Err(AliasError::Taken));
    assert_eq!(alias(&mut table, inside, &key(103)), Err(AliasError::NoRoom));
    assert_eq!(alias(&mut table, six, &key(103)), Err(AliasError::NoRoom));
    assert_eq!(alias(&mut table, other, &key(104)), Err(AliasError::NoRoom));
    assert!(table.remove(inside));
    assert_eq!(table.look_up(&outside), None);
    assert_eq!(alias(&mut table, inside, &outside), Err(AliasError::Ended));
    assert_eq!(alias(&mut table, other, &outside), Ok(()), "the key is free again");
}

#[test]
fn late_arrivals_are_noticed_per_direction_and_device() {
    let mut table = table(1, StateLayout::new());
    let id = table.insert_key(&key(0), Time::ZERO).unwrap();
    let mut flow = table.flow(id).unwrap();
    let (lan, wan) = (DeviceId(0), DeviceId(1));
    assert!(!flow.note_arrival(true, lan, u32::MAX - 1));
    assert!(!flow.note_arrival(false, wan, 5), "the other direction counts for itself");
    assert!(!flow.note_arrival(true, lan, 3), "stamps wrap around");
    assert!(flow.note_arrival(true, lan, u32::MAX));
    assert!(!flow.note_arrival(true, lan, 3), "the same stamp again is not late");
    assert!(!flow.note_arrival(true, wan, 1), "stamps of two devices do not compare");
    assert!(flow.note_arrival(false, wan, 4));
}

#[test]
fn evictable_flows_go_oldest_first() {
    let mut table = table(4, StateLayout::new());
    let ids: Vec<FlowId> =
        (0..4).map(|number| table.insert_key(&key(number), Time::ZERO).unwrap()).collect();
    for &id in &ids {
        table.flow(id).unwrap().set_evictable(true);
        table.flow(id).unwrap().set_evictable(true);
    }
    table.flow(ids[0]).unwrap().set_evictable(false);
    table.flow(ids[1]).unwrap().set_evictable(false);
    table.flow(ids[1]).unwrap().set_evictable(true);
    assert!(table.remove(ids[3]));
    let order: Vec<FlowId> = std::iter::from_fn(|| {
        let id = table.oldest_evictable()?;
        assert!(table.evict(id));
        Some(id)
    })
    .collect();
    assert_eq!(order, [ids[2], ids[1]]);
    assert_eq!((table.counts().evicted, table.counts().expired, table.counts().live), (2, 3, 1));
}

#[test]
fn tables_of_one_arena_live_apart() {
    let mut layout = StateLayout::new();
    let handle = layout.reserve::<[u64; 12]>().unwrap();
    let config = TableConfig { capacity: 20, aliases: false };
    let arena = Arena::new(3, config, Arc::new(layout), FlowHasher::fixed()).unwrap();
    let mut tables = arena.into_tables();
    for (number, table) in (0..).zip(&mut tables) {
        for flow in 0..20 {
            let id = table.insert_key(&key(flow), Time::ZERO).unwrap();
            table.flow(id).unwrap().init(handle, [u64::from(number * 100 + flow); 12]);
        }
    }
    let mut last = tables.pop().unwrap();
    drop(tables);
    let last = std::thread::spawn(move || {
        for flow in 0..20 {
            let id = last.look_up(&key(flow)).unwrap();
            assert_eq!(
                last.flow(id).unwrap().state(handle),
                Some(&mut [u64::from(200 + flow); 12])
            );
        }
        last
    });
    assert_eq!(last.join().unwrap().counts().live, 20);
}

#[test]
fn arenas_of_no_or_absurd_size_are_refused() {
    let arena = |shards, capacity| {
        let config = TableConfig { capacity, aliases: false };
        Arena::new(shards, config, Arc::new(StateLayout::new()), FlowHasher::fixed())
    };
    assert!(matches!(arena(0, 1), Err(ArenaError::Empty)));
    assert!(matches!(arena(1, 0), Err(ArenaError::Empty)));
    assert!(matches!(arena(1, usize::MAX), Err(ArenaError::TooLarge(_))));
    assert!(matches!(arena(usize::MAX, 1 << 20), Err(ArenaError::TooLarge(_))));
}

#[test]
fn the_ending_of_a_flow_sees_its_state() {
    let mut layout = StateLayout::new();
    let handle = layout.reserve::<u32>().unwrap();
    let mut table = table(4, layout);
    let start = Time::from_secs(1_700_000_000);
    for number in 0..4 {
        let id = table.insert_key(&key(number), start).unwrap();
        let mut flow = table.flow(id).unwrap();
        flow.init(handle, number);
        flow.set_deadline(start + Duration::from_secs(10 * u64::from(number)));
    }
    let now = start + Duration::from_secs(15);
    let mut ended = Vec::new();
    let reclaimed = table.expire(now, usize::MAX, |mut flow| {
        assert!(flow.is_expired(now));
        ended.push((flow.key(), *flow.state(handle).unwrap()));
    });
    assert_eq!(reclaimed, Reclaimed { flows: 2, looked_at: 2, complete: true });
    assert_eq!(ended, [(key(0), 0), (key(1), 1)]);
    assert!(table.next_due().is_some_and(|due| due > now));
}

#[test]
fn a_flow_whose_deadline_is_put_off_when_it_has_come_lives_on_until_then() {
    let mut layout = StateLayout::new();
    let place = layout.reserve_time().unwrap();
    let mut table = table(4, layout);
    for number in [1, 2] {
        let id = table.insert_key(&key(number), Time::ZERO).unwrap();
        let mut flow = table.flow(id).unwrap();
        flow.set_deadline(Time::from_secs(number.into()));
        // Only the first has a second deadline.
        flow.set_time(place, Time::from_secs(if number == 1 { 10 } else { 0 }));
    }
    let mut visited = Vec::new();
    let mut expire = |table: &mut FlowTable, now| {
        let ended = table.expire(Time::from_secs(now), usize::MAX, |mut flow| {
            visited.push((flow.key(), flow.deadline()));
            let later = flow.time(place);
            flow.set_time(place, Time::ZERO);
            if later > Time::ZERO {
                flow.set_deadline(later);
            }
        });
        table.end_burst();
        ended.flows
    };
    assert_eq!(expire(&mut table, 5), 1);
    assert_eq!(table.counts().live, 1);
    assert_eq!(expire(&mut table, 9), 0);
    assert_eq!(expire(&mut table, 12), 1);
    // Where both deadlines have passed, the flow is visited for each.
    let id = table.insert_key(&key(1), Time::from_secs(12)).unwrap();
    let mut flow = table.flow(id).unwrap();
    flow.set_deadline(Time::from_secs(13));
    flow.set_time(place, Time::from_secs(14));
    assert_eq!(expire(&mut table, 20), 1);
    let at = |flow, seconds| (key(flow), Time::from_secs(seconds));
    assert_eq!(visited.len(), 5);
    for (visited, (key, due)) in
        visited.iter().zip([at(1, 1), at(2, 2), at(1, 10), at(1, 13), at(1, 14)])
    {
        assert_eq!(visited.0, key);
        let late = visited.1.since(due);
        assert!(late < Duration::from_nanos(256), "{late:?}");
    }
}
