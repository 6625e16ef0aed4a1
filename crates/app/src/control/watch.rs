//! The answers that go on: captures and traces.

use std::io;
use std::thread;
use std::time::Duration;

use rheostat_capture::Mirrors;
use rheostat_observe::capture::PacketCopy;
use rheostat_observe::control::{self, CaptureRequest, Reply, TraceRequest};
use rheostat_observe::trace::TraceLog;

use super::instance::Instance;
use super::peer::Peer;

/// How long to wait when nothing was there.
const PAUSE: Duration = Duration::from_millis(2);
/// Packets of each lane that are sent at once.
const BATCH: usize = 64;

impl Instance {
    /// Sends copies of packets until there are enough, the client closes its side, or the run ends.
    pub(super) fn capture(&self, request: &CaptureRequest, peer: &mut Peer) -> io::Result<()> {
        let devices = self.view.devices();
        let begun = request.wanted(devices).and_then(|wanted| {
            Mirrors::capture(self.view.mirrors(), wanted).map_err(|error| error.to_string())
        });
        let mut capture = match begun {
            Ok(capture) => capture,
            Err(message) => return peer.send(&Reply::Error { message }),
        };
        let meant = |device: &&String| request.device.as_ref().is_none_or(|only| only == *device);
        let shown = devices.iter().filter(meant).cloned().collect();
        peer.send(&Reply::Capturing { devices: shown, files: self.in_use.clone() })?;
        let count = request.count.unwrap_or(u64::MAX);
        let (mut packets, mut lines) = (0, String::new());
        while packets < count {
            // Asked before the rings are emptied: what was copied until then is still sent.
            let last = peer.has_had_enough() || peer.run_is_over();
            let taken = capture.take(BATCH, |copied| {
                if packets < count {
                    packets += 1;
                    let copy = PacketCopy::of(&copied, devices);
                    lines.push_str(&control::line(&Reply::Packet(Box::new(copy))));
                }
            });
            peer.send_lines(&mut lines)?;
            match taken {
                0 if last => break,
                0 => thread::sleep(PAUSE),
                // A client that has stopped the capture gets what waits, and not what comes meanwhile.
                _ if last && taken < BATCH => break,
                _ => {}
            }
        }
        peer.send(&Reply::End { packets, lost: capture.lost() })
    }

    /// Sends the ways of packets until there are enough, the client closes its side, or the run ends.
    pub(super) fn trace(&self, request: &TraceRequest, peer: &mut Peer) -> io::Result<()> {
        let count = request.count();
        let begun = request.expression().and_then(|filter| {
            Mirrors::trace(self.view.mirrors(), filter, count).map_err(|error| error.to_string())
        });
        let mut trace = match begun {
            Ok(trace) => trace,
            Err(message) => return peer.send(&Reply::Error { message }),
        };
        peer.send(&Reply::Tracing)?;
        let mut log = TraceLog::new(self.view.devices().to_vec(), count);
        let mut over = false;
        while !over && !log.is_complete() {
            over = peer.has_had_enough() || peer.run_is_over();
            // Those whose last note was there a round ago.
            let mut lines = String::new();
            let mut finished = log.finished_after(|log| {
                trace.take(|event| log.add(event));
            });
            if over {
                finished.extend(log.unfinished());
            }
            for path in finished {
                lines.push_str(&control::line(&Reply::Path(path)));
            }
            peer.send_lines(&mut lines)?;
            thread::sleep(PAUSE);
        }
        peer.send(&Reply::End { packets: log.reported(), lost: trace.lost() })
    }
}
