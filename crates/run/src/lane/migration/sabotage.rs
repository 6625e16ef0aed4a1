//! Each step of a move was seen to matter: left out, the account names what comes of it. The same moves
//! with nothing left out are sound.

use rheostat_base::{LaneId, ShardId};
use rheostat_packet::HashKind;

use super::fixture::{A, B, C, Fixture, shard};
use crate::handoff::Control;
use crate::invariant::Violation;

/// A packet takes the way over lane C; the owner waits for so many lanes to switch.
fn by_way_of_a_third(redirects: u16) -> Vec<Violation> {
    let mut fixture = Fixture::new(false);
    fixture.expect();
    fixture.poll(B);
    // The commands to A and C are under way, and C is slow.
    fixture.release(redirects);
    fixture.poll(A);
    fixture.arrive(C, 1);
    fixture.poll(C);
    fixture.redirect();
    fixture.arrive(C, 1);
    fixture.poll(C);
    fixture.poll(B);
    fixture.poll(A);
    fixture.finish()
}

#[test]
fn an_owner_that_does_not_wait_for_every_lane_lets_packets_pass() {
    assert_eq!(by_way_of_a_third(2), []);
    assert_eq!(by_way_of_a_third(1), [Violation::Reordered { packets: 1 }]);
}

/// More packets wait in the owner's queue than it takes at once.
fn with_a_backlog(lies: bool) -> (Vec<Violation>, u64) {
    let mut fixture = Fixture::new(lies);
    fixture.arrive(A, 40);
    fixture.expect();
    fixture.poll(B);
    fixture.redirect();
    fixture.poll(C);
    // The table leads to B now.
    fixture.arrive(B, 1);
    fixture.poll(B);
    fixture.release(2);
    fixture.poll(A);
    fixture.poll(B);
    let late = fixture.lanes[A].counters();
    let violations = fixture.finish();
    (violations, late.late_handoff.get())
}

#[test]
fn an_owner_that_does_not_wait_for_its_queue_lets_packets_pass() {
    assert_eq!(with_a_backlog(false), (vec![], 0));
    assert_eq!(with_a_backlog(true), (vec![Violation::Reordered { packets: 8 }], 8));
}

/// Packets reach their owner, A, by way of C, since the device places them by the buckets of another shard; then
/// that one moves from C to B, and A is slow. Before B looks whether the shard has come, `meddle` has its way.
fn over_a_bucket_that_moves(kind: HashKind, meddle: impl FnOnce(&mut Fixture)) -> Vec<Violation> {
    let mut fixture = Fixture::misdirecting(kind);
    // More than A takes at once.
    fixture.arrive(C, 40);
    fixture.expect_misdirected();
    fixture.poll(B);
    // The table leads to B now.
    fixture.arrive(B, 1);
    fixture.poll(B);
    fixture.release_misdirected();
    fixture.lanes[A].apply_commands();
    fixture.poll(C);
    fixture.poll(C);
    meddle(&mut fixture);
    fixture.poll(B);
    fixture.poll(A);
    fixture.poll(A);
    fixture.finish()
}

#[test]
fn a_device_whose_packets_do_not_tell_their_bucket_lets_them_pass() {
    assert_eq!(over_a_bucket_that_moves(HashKind::Addresses, |_| ()), []);
    let passed = over_a_bucket_that_moves(HashKind::None, |_| ());
    assert_eq!(passed, [Violation::Reordered { packets: 40 }]);
}

#[test]
fn an_heir_that_does_not_wait_for_those_between_lets_packets_pass() {
    let passed = over_a_bucket_that_moves(HashKind::Addresses, |fixture| {
        // The word of A, before A has taken anything; its own reaches no lane.
        let misdirected = fixture.misdirected;
        fixture.lanes[C].handoff.send_control(LaneId(B as u16), Control::Drained(misdirected));
        fixture.poll(B);
        fixture.poll(A);
        fixture.poll(A);
        fixture.lanes[B].handoff.take(8, |_| ());
    });
    assert_eq!(passed, [Violation::Reordered { packets: 40 }]);
}

/// The flow's shard changes places with that by whose buckets its packets come. The oldest packet comes to C, before
/// C has redirected or after; younger ones to A, more than it takes at once, so that the flow's shard leaves it last.
fn two_that_change_places(has_switched: bool) -> Vec<Violation> {
    let mut fixture = Fixture::misdirecting(HashKind::Addresses);
    fixture.expect_swap();
    fixture.poll(A);
    fixture.poll(C);
    if has_switched {
        fixture.switch_swap(C);
        fixture.lanes[C].apply_commands();
    }
    fixture.arrive(C, 1);
    fixture.poll(C);
    fixture.arrive(A, 40);
    if !has_switched {
        fixture.switch_swap(C);
    }
    fixture.switch_swap(A);
    fixture.switch_swap(B);
    fixture.poll(B);
    fixture.poll(C);
    fixture.poll(A);
    // Now C knows that all have redirected, and lets the one shard go; A has the other still.
    fixture.poll(C);
    fixture.poll(B);
    fixture.poll(A);
    fixture.finish()
}

#[test]
fn shards_that_change_places_keep_the_order_of_packets_between_them() {
    assert_eq!(two_that_change_places(false), []);
    assert_eq!(two_that_change_places(true), []);
}

/// The shard moves while packets of it wait on both lanes, on a device that stamps packets as lanes receive
/// them; then `meddle` has its way.
fn on_a_live_device(meddle: impl FnOnce(&mut Fixture)) -> Vec<Violation> {
    let mut fixture = Fixture::live();
    fixture.expect();
    fixture.poll(B);
    fixture.redirect();
    fixture.poll(C);
    // One more for the owner, then the table leads to B, which is the first to receive.
    fixture.arrive(A, 1);
    fixture.arrive(B, 1);
    fixture.poll(B);
    fixture.release(2);
    fixture.poll(A);
    fixture.poll(B);
    meddle(&mut fixture);
    fixture.finish()
}

#[test]
fn stamps_given_at_receipt_do_not_hide_what_comes_late() {
    assert_eq!(on_a_live_device(|_| ()), []);
    let late = on_a_live_device(|fixture| {
        fixture.arrive(A, 1);
        fixture.poll(A);
        fixture.poll(B);
    });
    assert_eq!(late, [Violation::Reordered { packets: 1 }]);
}

/// A shard moves while a packet is on hold for it, and `meddle` has its way in between.
fn with_a_packet_on_hold(meddle: impl FnOnce(&mut Fixture)) -> Vec<Violation> {
    let mut fixture = Fixture::new(false);
    fixture.expect();
    fixture.poll(B);
    fixture.arrive(B, 1);
    fixture.poll(B);
    fixture.redirect();
    fixture.poll(C);
    fixture.release(2);
    fixture.poll(A);
    meddle(&mut fixture);
    fixture.poll(B);
    fixture.finish()
}

#[test]
fn a_packet_that_is_lost_on_hold_is_named() {
    assert_eq!(with_a_packet_on_hold(|_| ()), []);
    let lost = with_a_packet_on_hold(|fixture| {
        let lane = &mut fixture.lanes[B];
        let (placed, _) = lane.migration.hold.take(fixture.shard).pop().expect("a packet on hold");
        lane.out.pool().free(placed.packet);
    });
    assert_eq!(lost, [Violation::LaneUnbalanced { lane: B, entered: 1, left: 0 }]);
}

#[test]
fn a_box_that_is_lost_is_named() {
    let mut shard = ShardId(0);
    let lost = with_a_packet_on_hold(|fixture| {
        shard = fixture.shard;
        let mut messages = 0;
        fixture.lanes[B].handoff.take(8, |_| messages += 1);
        assert_eq!(messages, 1, "the box was on its way");
    });
    let stranded = Violation::Stranded { lane: B, packets: 1 };
    let unowned = Violation::Ownership { shard, owners: 0 };
    assert!(lost.contains(&stranded) && lost.contains(&unowned), "{lost:?}");
}

#[test]
fn a_second_box_is_named() {
    let mut id = ShardId(0);
    let doubled = with_a_packet_on_hold(|fixture| {
        id = fixture.shard;
        fixture.lanes[C].shards.install(shard(id));
    });
    assert_eq!(doubled, [Violation::Ownership { shard: id, owners: 2 }]);
}

#[test]
#[should_panic(expected = "comes to a lane that awaits it")]
fn a_second_box_is_not_taken() {
    with_a_packet_on_hold(|fixture| {
        let second = shard(fixture.shard);
        fixture.lanes[A]
            .handoff
            .send_control(LaneId(C as u16), Control::Shard { shard: second, ownership_epoch: 0 });
        fixture.poll(C);
    });
}
