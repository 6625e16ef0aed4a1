//! How segments leave: as packets of the network layer beside the service.

use std::net::{IpAddr, SocketAddr};

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_ip::Stack;
use rheostat_packet::Mbuf;
use rheostat_packet::build::{FrameBuilder, MIN_FRAME, Payload, Transport};
use rheostat_run::{Output, Step};
use rheostat_tcp::Header;

use crate::ends::Ends;
use crate::entry::{Entry, KnownRoute};

/// Bytes of the headers of IP and TCP without options, in packets to an address like `to`.
pub(crate) fn headers_towards(to: IpAddr) -> u16 {
    if to.is_ipv4() { 40 } else { 60 }
}

/// A segment that is to leave.
pub(crate) struct Outgoing<'a> {
    pub(crate) header: &'a Header,
    pub(crate) payload: [&'a [u8]; 2],
    pub(crate) label: Label,
}

/// What readers are told of a segment that is to leave.
#[derive(Debug, Default)]
pub(crate) struct Label {
    /// The mark of its packet, if it is traced; otherwise zero.
    pub(crate) mark: u8,
    /// Why it is sent, if packets are copied.
    pub(crate) comment: Option<String>,
}

/// A lane's way out.
#[derive(Debug)]
pub(crate) struct Egress {
    pub(crate) stack: Box<Stack>,
    /// For payload that lies in two pieces.
    joined: Vec<u8>,
    /// For packets that take more than one buffer.
    frame: Vec<u8>,
}

impl Egress {
    pub(crate) fn new(stack: Stack) -> Egress {
        Egress { stack: Box::new(stack), joined: Vec::new(), frame: Vec::new() }
    }

    /// The way to `remote` for connections whose packets arrive on `device`.
    pub(crate) fn route(&self, remote: SocketAddr, device: DeviceId, now: Time) -> KnownRoute {
        let path = self.stack.path_to(remote.ip(), device);
        let longest = self.stack.longest_along(&path, remote.ip(), device, now);
        let mss = longest.saturating_sub(headers_towards(remote.ip()));
        KnownRoute { path, changes: self.stack.changes(), mss }
    }

    /// Looks up the way of a connection again when the network has changed; the size of its segments follows.
    #[inline]
    pub(crate) fn follow<S>(&self, entry: &mut Entry<S>, now: Time) {
        if entry.route.changes != self.stack.changes() {
            let remote = Ends::of(&entry.key).remote;
            entry.route = self.route(remote, entry.device, now);
            entry.tcp.set_path_mss(entry.route.mss);
        }
    }

    /// Sends a segment between these ends, the way that is known.
    pub(crate) fn send(
        &mut self,
        ends: &Ends,
        device: DeviceId,
        route: &KnownRoute,
        Outgoing { header, payload, label }: Outgoing<'_>,
        out: &mut Output,
    ) {
        let payload = match payload {
            [whole, []] => whole,
            [first, second] => {
                self.joined.clear();
                self.joined.extend_from_slice(first);
                self.joined.extend_from_slice(second);
                &self.joined
            }
        };
        let options = header.options.write();
        let tcp = header.with_ports((ends.local.port(), ends.remote.port()), &options);
        let transport = Transport::Tcp(tcp);
        let (from, to) = (ends.local.ip(), ends.remote.ip());
        let built = FrameBuilder::new(from, to, transport, Payload::Bytes(payload));
        let start = self.stack.network_offset(device);
        let len = (start + built.len()).max(MIN_FRAME);
        let Some(mut packet) = originate(len, &mut self.frame, out, |frame| {
            let (_, ip) = frame.split_at_mut(start);
            let written = built.write(ip);
            ip[written..].fill(0);
        }) else {
            if label.mark != 0 {
                out.mirror().note_mark(label.mark, Step::Dropped(DropReason::NoBuffer));
            }
            return;
        };
        packet.set_mark(label.mark);
        if let Some(comment) = label.comment {
            out.mirror().comment_on_sent(&packet, comment);
        }
        packet.set_timestamp(out.now());
        packet.set_device(device);
        self.stack.send(packet, route.path, out);
    }
}

/// A packet of `len` bytes that `write` fills but for the link header: in place where one buffer holds it.
fn originate(
    len: usize,
    frame: &mut Vec<u8>,
    out: &mut Output,
    write: impl FnOnce(&mut [u8]),
) -> Option<Mbuf> {
    if out.pool().pool().buffer_room() >= len {
        let mut packet = out.originate_blank(len)?;
        write(packet.data_mut());
        return Some(packet);
    }
    frame.clear();
    frame.resize(len, 0);
    write(frame);
    out.originate(frame)
}
