//! The protocol under every interleaving: a home and an offloading lane on a thread each. Packets are numbers, and a flow is the
//! list of those that were processed.

use loom::thread;
use rheostat_base::{LaneId, ShardId};

use super::{Away, FlowNumber, Home};
use crate::handoff::link::{Delivery, Receiver, Sender, link};

const SHARD: ShardId = ShardId(0);
const HOME: LaneId = LaneId(0);

type Flow = Box<Vec<u32>>;

enum Control {
    Offload(FlowNumber, Flow),
    Recall(FlowNumber),
    Return(FlowNumber, Flow),
}

/// A packet and the number of its flow.
type Packet = (FlowNumber, Box<u32>);

struct OffloadingLane {
    flows: Away<Flow>,
    inbound: Receiver<Packet, Control>,
    outbound: Sender<Packet, Control>,
    /// The packet that can be processed at home only.
    refuses: u32,
}

impl OffloadingLane {
    /// As `Lane::poll`: packets are processed or sent back in order, and flows that are recalled go home last. Returns how many
    /// did.
    fn poll(&mut self) -> usize {
        let OffloadingLane { flows, inbound, outbound, refuses } = self;
        let (mut refused, mut recalled) = (Vec::new(), Vec::new());
        inbound.take(2, |delivery| match delivery {
            Delivery::Packet((number, packet)) => match flows.get_mut(number) {
                Some(flow) if *packet != *refuses => flow.push(*packet),
                _ => {
                    flows.refuse(number);
                    refused.push((number, packet));
                }
            },
            Delivery::Control(Control::Offload(number, flow)) => flows.begin(number, flow),
            Delivery::Control(Control::Recall(number)) => recalled.push(number),
            Delivery::Control(Control::Return(..)) => unreachable!("its flows come from home"),
        });
        let count = refused.len();
        assert_eq!(outbound.push_all(&mut refused.into_iter()), count, "room for all");
        let count = recalled.len();
        for number in recalled {
            let flow = flows.end(number);
            outbound.send_control(Control::Return(number, flow));
        }
        count
    }
}

struct HomeLane {
    home: Home<Packet>,
    flow: Option<Flow>,
    inbound: Receiver<Packet, Control>,
    outbound: Sender<Packet, Control>,
}

impl HomeLane {
    fn begin(&mut self) -> FlowNumber {
        let number = self.home.begin(SHARD).expect("room for one");
        let flow = self.flow.take().expect("the flow is home");
        self.outbound.send_control(Control::Offload(number, flow));
        number
    }

    /// As `Lane::poll` with one packet of the flow.
    fn receive(&mut self, number: FlowNumber, packet: u32) {
        match (&mut self.flow, Box::new(packet)) {
            (Some(flow), packet) => flow.push(*packet),
            (None, packet) if self.home.is_away(number) => {
                let sent = self.outbound.push_all(&mut [(number, packet)].into_iter());
                assert_eq!(sent, 1, "room");
            }
            (None, packet) => {
                self.home.hold(number, (number, packet)).expect("room for all");
            }
        }
        self.send_recalls();
    }

    fn send_recalls(&mut self) {
        while let Some(number) = self.home.next_recall() {
            self.outbound.send_control(Control::Recall(number));
        }
    }

    /// As `Lane::poll` without packets from devices.
    fn poll(&mut self) {
        let HomeLane { home, inbound, flow, .. } = self;
        inbound.take(2, |delivery| match delivery {
            Delivery::Packet((number, packet)) => home.take_refused(number, (number, packet)),
            Delivery::Control(Control::Return(number, mut back)) => {
                back.extend(home.end(number).into_iter().map(|(_, packet)| *packet));
                *flow = Some(back);
            }
            Delivery::Control(_) => unreachable!("flows are this lane's"),
        });
        self.send_recalls();
    }
}

/// A flow leaves, and has three packets; the offloading lane cannot process `refuses`. The flow is recalled behind the second, or by
/// the refused one.
fn leave_and_come_home(refuses: u32) {
    loom::model(move || {
        let (to_away, from_home) = link(4, 2);
        let (to_home, from_away) = link(4, 2);
        let mut away = OffloadingLane {
            flows: Away::default(),
            inbound: from_home,
            outbound: to_home,
            refuses,
        };
        let other = thread::spawn(move || {
            while away.poll() == 0 {
                thread::yield_now();
            }
            away
        });
        let mut lane = HomeLane {
            home: Home::new(HOME, 1, 1, 4),
            flow: Some(Flow::default()),
            inbound: from_away,
            outbound: to_away,
        };
        let number = lane.begin();
        lane.receive(number, 1);
        lane.receive(number, 2);
        lane.poll();
        lane.home.recall(number);
        lane.send_recalls();
        lane.receive(number, 3);
        while lane.flow.is_none() {
            lane.poll();
            thread::yield_now();
        }
        assert_eq!(lane.flow.as_deref(), Some(&vec![1, 2, 3]));
        assert_eq!((lane.home.away(), lane.home.waiting()), (0, 0));
        assert_eq!(other.join().unwrap().flows.len(), 0);
    });
}

/// Fails when packets that come after the recall are not held.
#[test]
fn a_flow_comes_home_with_its_packets_in_order() {
    leave_and_come_home(0);
}

/// Fails when refused packets go behind held ones, and when one behind a refused one is processed.
#[test]
fn a_flow_that_is_refused_comes_home_with_its_packets_in_order() {
    leave_and_come_home(1);
    leave_and_come_home(2);
}
