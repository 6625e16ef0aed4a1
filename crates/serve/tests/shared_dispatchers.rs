//! Dispatchers whose lanes share receive queues and connections: requests of a connection are given out by different lanes, each to
//! members of its own, and replies leave in order all the same.

use std::time::Duration;

use rheostat_io::ImpairConfig;
use rheostat_run::{PoolQueueing, Sharing};

use crate::dispatcher::{Lines, Random, check_same_as_inline};
use crate::rig::{Client, Members, Plan, QUEUEING, Rig, seeds, shared_dispatchers};

const SECOND: Duration = Duration::from_secs(1);
/// Seeds of a network without faults, and of one with them.
const SEEDS: (u64, u64) = (160, 60);
const SHARED: [Sharing; 4] = [
    Sharing::CENTRAL,
    Sharing::Central { pop: 4 },
    Sharing::STEALING,
    Sharing::Stealing { pop: 4, steal: 2 },
];

/// Clients of two to four lanes, with members however requests wait, as the seed has it.
fn check(seed: u64, faults: Option<ImpairConfig>) {
    let mut random = Random(seed);
    let lanes = 2 + random.below(3) as usize;
    let clients = 1 + random.below(8);
    let lines = random.lines_of(clients, faults.is_some());
    let members = Members {
        each: 1 + random.below(3) as usize,
        queueing: QUEUEING[random.below(4) as usize],
        depth: 1 << random.below(6),
        seed,
        ..Members::default()
    };
    let plan = shared_dispatchers(SHARED[random.below(3) as usize], members);
    check_same_as_inline(Plan { lanes, seed, faults, ..plan }, &lines, seed);
}

#[test]
fn replies_are_those_of_one_worker_whichever_lane_gives_requests_out() {
    seeds(SEEDS.0).for_each(|seed| check(seed, None));
}

#[test]
fn replies_are_those_of_one_worker_over_a_bad_network_whichever_lane_gives_requests_out() {
    for seed in seeds(SEEDS.1) {
        let faults =
            ImpairConfig { seed, loss: 0.02, duplicate: 0.02, reorder: 0.05, ..Default::default() };
        check(20_000 + seed, Some(faults));
    }
}

/// Has one of two lanes alone take what the client sends, from its own hardware queue.
fn send_to(rig: &mut Rig, lane: usize, clients: &mut [Client], text: &[u8]) {
    let other = rig.take_lane(1 - lane);
    let (client, now) = (&mut clients[0], rig.now);
    client.outgoing = text.to_vec();
    client.tick(now);
    while let Some(frame) = client.poll_frame(now) {
        rig.inject(frame, lane);
    }
    rig.pass(clients, SECOND / 10);
    assert_eq!(clients[0].tcp.info().unacknowledged, 0, "the segment was taken");
    rig.put_lane(1 - lane, other);
}

/// A client that has a request with each of two lanes, whose members rest.
fn one_at_each_lane(sharing: Sharing, members: Members) -> (Rig, Vec<Client>) {
    let mut rig = Rig::new(Lines::default(), shared_dispatchers(sharing, members));
    let mut clients = vec![rig.connect(1_000)];
    rig.run_until(&mut clients, SECOND, |all| all[0].tcp.info().send_window > 0);
    rig.members().pause = true;
    send_to(&mut rig, 0, &mut clients, b"a\n");
    send_to(&mut rig, 1, &mut clients, b"b\n");
    (rig, clients)
}

#[test]
fn a_reply_waits_for_that_of_an_earlier_request_which_another_lane_gave_out() {
    for (sharing, queueing) in combinations() {
        let (mut rig, mut clients) =
            one_at_each_lane(sharing, Members { queueing, ..Members::default() });
        // The later request is answered, and the lane of the earlier one does nothing.
        let first = rig.take_lane(0);
        rig.members().pause = false;
        rig.pass(&mut clients, SECOND / 50);
        assert_eq!((rig.control.totals().requests, clients[0].received.len()), (1, 0));
        rig.put_lane(0, first);
        rig.run_until(&mut clients, SECOND, |all| all[0].received == b"0:a\n1:b\n");
        let totals = rig.control.totals();
        assert_eq!((totals.requests, totals.unclaimed, totals.retransmitted), (2, 0, 0));
        rig.control.drain();
        clients[0].finishes = true;
        rig.run_until(&mut clients, 2 * SECOND, |all| all[0].closed.is_some());
        rig.finish();
    }
}

#[test]
fn what_comes_of_requests_at_two_lanes_whose_client_has_vanished_is_counted() {
    for (sharing, queueing) in combinations() {
        let (mut rig, mut clients) =
            one_at_each_lane(sharing, Members { queueing, ..Members::default() });
        clients[0].tcp.abort();
        rig.pass(&mut clients, SECOND / 10);
        assert_eq!(rig.control.connections(), 0, "its place is free");
        // Another connection has the place by then, and its requests the places of those.
        let mut later = [rig.connect(1_000)];
        later[0].outgoing = b"c\nd\n".to_vec();
        rig.pass(&mut later, SECOND / 10);
        rig.members().pause = false;
        rig.run_until(&mut later, SECOND, |all| all[0].received == b"0:c\n1:d\n");
        rig.pass(&mut later, SECOND / 10);
        let totals = rig.control.totals();
        assert_eq!((totals.requests, totals.unclaimed), (4, 2), "{sharing:?}, {queueing:?}");
        rig.finish();
    }
}

#[test]
fn requests_at_several_lanes_that_no_member_has_done_are_counted_once_each() {
    for (sharing, queueing) in combinations() {
        let (rig, _) = one_at_each_lane(sharing, Members { queueing, ..Members::default() });
        let control = rig.control.clone();
        rig.finish();
        let totals = control.totals();
        assert_eq!((totals.requests, totals.unanswered), (0, 2), "{sharing:?}, {queueing:?}");
    }
}

fn combinations() -> impl Iterator<Item = (Sharing, PoolQueueing)> {
    let with = |sharing| QUEUEING.into_iter().map(move |queueing| (sharing, queueing));
    [Sharing::CENTRAL, Sharing::STEALING].into_iter().flat_map(with)
}
