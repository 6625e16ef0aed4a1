//! ICMP errors about segments of connections (RFC 1122, 4.2.3.9; RFC 5927).

use rheostat_base::DropReason;
use rheostat_ip::TooBig;
use rheostat_packet::Mbuf;
use rheostat_run::{Output, PacketInfo, ShardSet};
use rheostat_tcp::{PathReport, SequenceNumber};

use super::TcpService;
use crate::connections::{Connections, Found};
use crate::driver::Driver;
use crate::egress::headers_towards;
use crate::ends::Ends;

impl<D: Driver> TcpService<D> {
    /// Handles an ICMP error that quotes a segment of TCP. It counts only if it says that a segment in flight of a live connection
    /// was too big: then the connection sends it again in smaller pieces, and what the path carries is known to all. No error
    /// ends a connection (RFC 5927, 5.2).
    pub(super) fn handle_error(
        &mut self,
        packet: Mbuf,
        info: &PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let shard = shards.get_mut(info.shard);
        let connections = shard.map(|shard| shard.split::<Connections<D::Stream>>().1);
        let outcome = connections.ok_or(DropReason::IcmpUnrelated).and_then(|connections| {
            let Found::Live(slot, entry) = connections.find(&info.key(), info.hash) else {
                return Err(DropReason::IcmpUnrelated);
            };
            let bytes = packet.data().get(usize::from(info.headers.l3)..).unwrap_or_default();
            let report = TooBig::parse(bytes);
            let Some((report, mtu)) = report.and_then(|report| Some((report, report.path_mtu()?)))
            else {
                self.counters.errors_ignored.increment();
                if self.noted.is_watched {
                    self.note_words("an error about a segment: changes nothing", None, out);
                }
                return Ok(());
            };
            let mss = mtu.saturating_sub(headers_towards(report.destination.0));
            let quoted = SequenceNumber(report.sequence);
            if entry.tcp.handle_too_big(quoted, mss) == PathReport::Implausible {
                return Err(DropReason::IcmpUnrelated);
            }
            self.counters.too_big.increment();
            if self.noted.is_watched {
                let words =
                    format!("segment {} was too big: {mss} bytes at most from now on", quoted.0);
                self.note_error(&Ends::of(&info.key()), &words, out);
            }
            if self.around.egress.stack.network().note_too_big(&report, out.now()) {
                // What is sent now goes by it already.
                self.around.egress.stack.refresh(out);
            }
            self.advance(slot, None, connections, out);
            Ok(())
        });
        self.end_packet(packet, outcome, out);
    }
}
