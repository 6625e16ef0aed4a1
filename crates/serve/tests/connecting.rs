//! Connections that a service opens: from ports that lead answers home, as many as there are, and no more.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheostat_base::LaneId;
use rheostat_serve::{
    ConnectError, ConnectionId, Handler, ListenerConfig, OutgoingConfig, ServeConfig, SocketEvent,
    Sockets,
};
use rheostat_tcp::CloseReason;

use crate::rig::{LOCAL_V4, OTHER_V4, Plan, Rig};

/// Opens connections whenever one is accepted, until none can be opened any more.
struct Opener {
    to: SocketAddr,
    most: usize,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    error: Option<ConnectError>,
    locals: Vec<SocketAddr>,
    closed: Vec<CloseReason>,
    connected: usize,
}

impl Handler for Opener {
    /// Whether it was opened here.
    type Data = bool;
    type Worker = ();

    fn worker(&self, _: LaneId) {}

    fn accept(&self, (): &mut (), _: SocketAddr, _: SocketAddr) -> bool {
        false
    }

    fn handle(
        &self,
        (): &mut (),
        id: ConnectionId,
        event: SocketEvent,
        sockets: &mut Sockets<'_, bool>,
    ) {
        let mut seen = self.seen.lock().unwrap();
        match event {
            SocketEvent::Accepted => {
                for _ in 0..self.most {
                    match sockets.connect(self.to, true) {
                        Ok(opened) => {
                            assert_eq!(opened.shard, id.shard);
                            seen.locals.push(sockets.addresses(opened).unwrap().0);
                        }
                        Err(error) => {
                            seen.error = Some(error);
                            break;
                        }
                    }
                }
            }
            SocketEvent::Connected => seen.connected += 1,
            SocketEvent::Closed(reason) if sockets.data(id) == Some(&mut true) => {
                seen.closed.push(reason);
            }
            _ => {}
        }
    }
}

fn rig(to: &str, most: usize, outgoing: OutgoingConfig, plan: Plan) -> (Rig, Arc<Mutex<Seen>>) {
    let seen = Arc::<Mutex<Seen>>::default();
    let handler = Opener { to: to.parse().unwrap(), most, seen: seen.clone() };
    let mut rig = Rig::with_handler(handler, outgoing, plan);
    rig.accepting = Some(9_000);
    (rig, seen)
}

/// Lets a client connect, so that the service opens its connections.
fn provoke(rig: &mut Rig) {
    let mut clients = [rig.connect(5_000)];
    rig.pass(&mut clients, Duration::from_millis(100));
}

#[test]
fn answers_come_home_without_visiting_another_lane() {
    let (mut rig, seen) = rig("10.0.0.2:9000", 20, OutgoingConfig::default(), Plan::default());
    provoke(&mut rig);
    assert_eq!(seen.lock().unwrap().connected, 20);
    assert_eq!(rig.control.totals().connected, 20);
    rig.finish();
}

#[test]
fn ports_run_out_with_an_error_and_further_addresses_have_more() {
    // Of each class as many, whatever the address.
    let range = 32_768..=33_791;
    let mut counts = Vec::new();
    for addresses in [vec![LOCAL_V4], vec![LOCAL_V4, OTHER_V4]] {
        let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let outgoing =
            OutgoingConfig { addresses, ports: range.clone(), ..OutgoingConfig::default() };
        let (mut rig, seen) = rig("10.0.0.2:9000", 1_000, outgoing, Plan::default());
        provoke(&mut rig);
        let to = "10.0.0.2:9000".parse().unwrap();
        let guard = seen.lock().unwrap();
        assert_eq!(guard.error, Some(ConnectError::PortsExhausted(to)));
        assert!(guard.locals.iter().all(|local| range.contains(&local.port())));
        let mut distinct = guard.locals.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), guard.locals.len());
        assert_eq!(guard.connected, distinct.len());
        counts.push(distinct.len());
        drop(guard);
        assert_eq!(rig.control.totals().ports_exhausted, 1);
        rig.finish();
    }
    // A sixteenth of the ports, as there are 16 shards.
    assert_eq!(counts, [64, 128]);
}

#[test]
fn each_reason_not_to_connect_has_an_error_of_its_own() {
    let error = |to: &str, outgoing: OutgoingConfig, plan: Plan| {
        let (mut rig, seen) = rig(to, 3, outgoing, plan);
        provoke(&mut rig);
        let error = seen.lock().unwrap().error;
        rig.finish();
        error
    };
    let far = "203.0.113.5".parse().unwrap();
    let default = OutgoingConfig::default;
    assert_eq!(
        error("203.0.113.5:80", default(), Plan::default()),
        Some(ConnectError::NoRoute(far))
    );
    let own = LOCAL_V4.parse().unwrap();
    assert_eq!(error("10.0.0.1:80", default(), Plan::default()), Some(ConnectError::NoRoute(own)));
    let peer = "10.0.0.2".parse().unwrap();
    assert_eq!(error("10.0.0.2:0", default(), Plan::default()), Some(ConnectError::NoRoute(peer)));
    let only_v6 =
        OutgoingConfig { addresses: vec!["fd00::1".parse().unwrap()], ..OutgoingConfig::default() };
    assert_eq!(error("10.0.0.2:80", only_v6, Plan::default()), Some(ConnectError::NoAddress(peer)));
    let limits = ServeConfig { connections: 2, ..ServeConfig::default() };
    let plan = Plan { limits, listener: ListenerConfig::new(crate::rig::PORT), ..Plan::default() };
    assert_eq!(error("10.0.0.2:9000", default(), plan), Some(ConnectError::ConnectionLimit));
}

#[test]
fn a_peer_that_refuses_and_one_that_is_silent_are_told_apart() {
    let mut outgoing = OutgoingConfig::default();
    outgoing.tcp.connect_timeout = Duration::from_secs(2);
    let (mut rig, seen) = rig("10.0.0.2:9001", 1, outgoing, Plan::default());
    provoke(&mut rig);
    let mut clients = [];
    rig.pass(&mut clients, Duration::from_secs(3));
    assert_eq!(seen.lock().unwrap().closed, [CloseReason::ConnectTimeout]);
    assert_eq!(rig.control.totals().connect_failed, 1);
    rig.finish();
}

#[test]
fn connections_within_a_vlan_are_opened_with_its_tag() {
    let plan = Plan { vlan: Some(42), ..Plan::default() };
    let (mut rig, seen) = rig("10.0.0.2:9000", 5, OutgoingConfig::default(), plan);
    provoke(&mut rig);
    assert_eq!(seen.lock().unwrap().connected, 5);
    rig.finish();
}
