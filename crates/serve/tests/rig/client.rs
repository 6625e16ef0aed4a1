//! A client: a connection of the protocol core, whose segments are frames.

use std::net::IpAddr;
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::wire::TcpSegment;
use rheostat_packet::{Headers, LinkType};
use rheostat_tcp::{CloseReason, Config, Connection, Event, Header, InitialNumbers, Segment};

use super::{MAC, PORT};

const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A client. It writes what is in `outgoing` and reads all that comes, when it may.
pub(crate) struct Client {
    pub(crate) tcp: Connection,
    far: IpAddr,
    far_port: u16,
    own: IpAddr,
    port: u16,
    vlan: Option<u16>,
    /// To be written.
    pub(crate) outgoing: Vec<u8>,
    /// Whether to finish behind it.
    pub(crate) finishes: bool,
    pub(crate) received: Vec<u8>,
    /// Bytes that it leaves unread at most; reads everything by default.
    pub(crate) reads: bool,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) peer_finished: bool,
}

impl Client {
    pub(crate) fn connect(
        server: &str,
        own: &str,
        port: u16,
        vlan: Option<u16>,
        now: Time,
    ) -> Client {
        let (server, own): (IpAddr, IpAddr) = (server.parse().unwrap(), own.parse().unwrap());
        let numbers = InitialNumbers::new(&[3; 16]);
        let initial = numbers.of((own, port).into(), (server, PORT).into(), now);
        // No larger, so that tests of the service's bounds see those of the service.
        let (send_buffer, receive_buffer) = (256 << 10, 256 << 10);
        let config =
            Config { nagle: false, mss: 1_440, send_buffer, receive_buffer, ..Config::default() };
        let tcp = Connection::connect(Arc::new(config), initial, now);
        Client { far: server, far_port: PORT, own, port, ..Client::with(tcp, vlan) }
    }

    /// The end that a frame with a SYN to `port` opens a connection to, if it is one.
    pub(crate) fn accept(
        frame: &[u8],
        port: u16,
        vlan: Option<u16>,
        window: usize,
        now: Time,
    ) -> Option<Client> {
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).ok()?;
        let transport = frame.get(usize::from(headers.l4)..headers.end as usize)?;
        let view = TcpSegment::new(transport).ok()?;
        let segment = Segment::parse(&view, &[]);
        if view.destination_port() != port || !segment.header.syn {
            return None;
        }
        let ip = &frame[usize::from(headers.l3)..];
        let v4 = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).expect("4 bytes"));
        let v6 =
            |at: usize| IpAddr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).expect("16 bytes"));
        let (far, own) = if ip[0] >> 4 == 4 { (v4(12), v4(16)) } else { (v6(8), v6(24)) };
        let far_port = view.source_port();
        let initial =
            InitialNumbers::new(&[5; 16]).of((own, port).into(), (far, far_port).into(), now);
        let config =
            Config { nagle: false, mss: 1_440, receive_buffer: window, ..Config::default() };
        let tcp = Connection::accept(Arc::new(config), initial, &segment, now)?;
        Some(Client { far, far_port, own, port, ..Client::with(tcp, vlan) })
    }

    fn with(tcp: Connection, vlan: Option<u16>) -> Client {
        let nowhere = IpAddr::from([0, 0, 0, 0]);
        Client {
            tcp,
            far: nowhere,
            far_port: 0,
            own: nowhere,
            port: 0,
            vlan,
            outgoing: Vec::new(),
            finishes: false,
            received: Vec::new(),
            reads: true,
            closed: None,
            peer_finished: false,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Does what is due, and what the program wants.
    pub(crate) fn tick(&mut self, now: Time) {
        if self.tcp.next_deadline().is_some_and(|due| due <= now) {
            self.tcp.handle_timeout(now);
        }
        if let Ok(written) = self.tcp.write(&self.outgoing, now) {
            self.outgoing.drain(..written);
        }
        if self.finishes && self.outgoing.is_empty() {
            self.tcp.finish(now);
            self.finishes = false;
        }
        self.look();
    }

    fn look(&mut self) {
        let mut piece = [0; 8_192];
        while self.reads
            && let Ok(read @ 1..) = self.tcp.read(&mut piece)
        {
            self.received.extend_from_slice(&piece[..read]);
        }
        while let Some(event) = self.tcp.poll_event() {
            match event {
                Event::Closed(reason) => self.closed = Some(reason),
                Event::PeerFinished => self.peer_finished = true,
                _ => {}
            }
        }
    }

    /// The next frame to send.
    pub(crate) fn poll_frame(&mut self, now: Time) -> Option<Vec<u8>> {
        let transmit = self.tcp.poll_transmit(now)?;
        let payload = transmit.payload.concat();
        let header = transmit.header;
        Some(self.frame(&header, &payload))
    }

    /// A frame with this segment.
    pub(crate) fn frame(&self, header: &Header, payload: &[u8]) -> Vec<u8> {
        let options = header.options.write();
        let tcp = header.with_ports((self.port, self.far_port), &options);
        let link = Ethernet { source: OWN_MAC, destination: MAC, vlan: self.vlan };
        FrameBuilder::new(self.own, self.far, Transport::Tcp(tcp), Payload::Bytes(payload))
            .with_ethernet(link)
            .to_vec()
    }

    /// Takes a frame, if it is for this client.
    pub(crate) fn take(&mut self, frame: &[u8], now: Time) -> bool {
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).expect("IP");
        let transport = &frame[usize::from(headers.l4)..headers.end as usize];
        let view = TcpSegment::new(transport).expect("a segment");
        if view.destination_port() != self.port || view.source_port() != self.far_port {
            return false;
        }
        assert_eq!(
            headers.zone,
            u32::from(self.vlan.unwrap_or(0)),
            "the VLAN is that of the client"
        );
        let sum = rheostat_packet::checksum::evaluate(
            self.far,
            self.own,
            6,
            view.checksum(),
            [transport],
        );
        assert_eq!(sum, rheostat_packet::checksum::Validity::Valid);
        let segment = Segment::parse(&view, &transport[view.header_len()..]);
        self.tcp.handle_segment(&segment, now);
        self.look();
        true
    }
}
