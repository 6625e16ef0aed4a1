//! The protocol under every interleaving: one lane gives a shard away on a thread of its own; the lane
//! that gets it and the migrator take turns on another. Packets are numbers, and a shard is the list of those
//! that were processed.

use loom::thread;
use rheostat_base::{LaneId, ShardId, Time};

use super::{Command, LaneMailbox, MigratorMailbox, Ownership, Place, Report, Watermark, mailbox};
use crate::handoff::link::{Delivery, Receiver, Sender, link};

const SHARD: ShardId = ShardId(0);
const A: LaneId = LaneId(0);
const B: LaneId = LaneId(1);

type Processed = Box<Vec<u32>>;

enum Control {
    Redirected,
    Shard(Processed),
}

/// The lane that has the shard and gives it away.
struct Owner {
    ownership: Ownership,
    shard: Option<Processed>,
    mailbox: LaneMailbox,
    inbound: Receiver<u32, Control>,
    outbound: Sender<u32, Control>,
}

impl Owner {
    /// As `Lane::poll`: commands, what other lanes sent, and last what may be released.
    fn poll(&mut self) {
        while let Some(Command::Release { shard, to, redirects }) = self.mailbox.next() {
            self.ownership.release(shard, to, redirects, Watermark::default());
        }
        let Owner { ownership, shard, inbound, outbound, .. } = self;
        inbound.take(2, |delivery| match delivery {
            Delivery::Packet(number) => match (ownership.place(SHARD), shard.as_mut()) {
                (Place::Local, Some(shard)) => shard.push(number),
                _ => drop(outbound.push_all(&mut [number].into_iter())),
            },
            Delivery::Control(_) => ownership.note_redirected(SHARD),
        });
        if ownership.next_due(|_, _| true).is_some() {
            let shard = shard.take().expect("the owner has it");
            outbound.send_control(Control::Shard(shard));
        }
    }
}

/// The lane that gets the shard, and the migrator beside it.
struct Heir {
    ownership: Ownership,
    held: Vec<u32>,
    shard: Option<Processed>,
    mailbox: LaneMailbox,
    migrator: MigratorMailbox,
    inbound: Receiver<u32, Control>,
    outbound: Sender<u32, Control>,
}

impl Heir {
    /// A packet of the shard reaches the lane by way of another.
    fn receive(&mut self, number: u32) {
        match self.ownership.place(SHARD) {
            Place::Local => self.shard.as_mut().expect("it is here").push(number),
            Place::Incoming => self.held.push(number),
            Place::Remote(_) => {
                assert_eq!(self.outbound.push_all(&mut [number].into_iter()), 1);
            }
        }
    }

    fn poll(&mut self) {
        while let Some(command) = self.mailbox.next() {
            match command {
                Command::Expect { shard, pending_acks, .. } => {
                    self.ownership.expect(shard, pending_acks);
                    self.mailbox.report(Report::Ready(shard));
                }
                Command::Redirect { shard, to, .. } => {
                    self.ownership.redirect(shard, to);
                    self.outbound.send_control(Control::Redirected);
                }
                Command::Release { .. } => unreachable!("it has no shard"),
                Command::Offload { .. }
                | Command::OffloadShares { .. }
                | Command::Tick
                | Command::Count(_) => {
                    unreachable!("no flow leaves")
                }
            }
        }
        let Heir { ownership, held, shard, inbound, .. } = self;
        inbound.take(2, |delivery| match delivery {
            // Whatever the owner sends back was late.
            Delivery::Packet(number) => held.push(number),
            Delivery::Control(Control::Shard(mut came)) => {
                ownership.arrive(SHARD);
                came.append(held);
                *shard = Some(came);
            }
            Delivery::Control(Control::Redirected) => unreachable!("the owner does not switch"),
        });
    }
}

fn lanes() -> (Owner, Heir, MigratorMailbox) {
    let (outbound, to_heir) = link(2, 1);
    let (to_owner, inbound) = link(2, 1);
    let (owner_orders, owner_mailbox) = mailbox(1);
    let (heir_orders, heir_mailbox) = mailbox(1);
    let owner = Owner {
        ownership: Ownership::new(A, vec![A]),
        shard: Some(Box::default()),
        mailbox: owner_mailbox,
        inbound,
        outbound,
    };
    let heir = Heir {
        ownership: Ownership::new(B, vec![A]),
        held: Vec::new(),
        shard: None,
        mailbox: heir_mailbox,
        migrator: heir_orders,
        inbound: to_heir,
        outbound: to_owner,
    };
    (owner, heir, owner_orders)
}

/// Packets that reach the next owner before, while and after the shard moves are processed once and in
/// order. Fails when the owner does not wait for the other lane to redirect, when a message may overtake
/// packets, and when an ordering of the ring is weakened.
#[test]
fn a_shard_moves_between_two_packets() {
    loom::model(|| {
        let (mut owner, mut heir, mut owner_orders) = lanes();
        let owner = thread::spawn(move || {
            while owner.shard.is_some() {
                owner.poll();
                if owner.shard.is_some() {
                    thread::yield_now();
                }
            }
            owner
        });
        heir.receive(1);
        heir.migrator.send(Command::Expect { shard: SHARD, pending_acks: 0, sent: Time::ZERO });
        heir.poll();
        heir.receive(2);
        assert_eq!(heir.migrator.next(), Some(Report::Ready(SHARD)));
        heir.migrator.send(Command::Redirect { shard: SHARD, from: A, to: B });
        owner_orders.send(Command::Release { shard: SHARD, to: B, redirects: 1 });
        heir.poll();
        heir.receive(3);
        while heir.shard.is_none() {
            heir.poll();
            if heir.shard.is_none() {
                thread::yield_now();
            }
        }
        heir.receive(4);
        assert_eq!(heir.shard.as_deref(), Some(&vec![1, 2, 3, 4]));
        drop(owner.join().unwrap());
    });
}
