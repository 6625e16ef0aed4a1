//! Samples packets of a run, to know its heaviest flows while somebody looks.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rheostat_capture::{Capture, Copied, Mirrors, Wanted};
use rheostat_observe::explain::Breakdown;
use rheostat_run::RunView;

/// Packets of a sample at most.
const MOST: u64 = 512;
/// Up to so many packets per second, all are looked at; beyond, those of a short time at each call.
const FEW: f64 = 1_000.0;
/// This time, at most.
const WINDOW: Duration = Duration::from_millis(20);
/// How often rings are emptied in it.
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes of a packet that its flow is read from, extension headers and the packet in an ICMP error included.
const HEADERS: usize = 256;

/// Samples packets. Between samples of a busy run, lanes copy nothing.
pub(super) struct FlowSampler {
    view: Arc<RunView>,
    /// Of a run with few packets, from one sample to the next.
    open: Option<Capture>,
}

impl FlowSampler {
    pub(super) fn new(view: Arc<RunView>) -> FlowSampler {
        FlowSampler { view, open: None }
    }

    /// Nobody looks: no packet is copied until the next sample.
    pub(super) fn stop(&mut self) {
        self.open = None;
    }

    /// The packets of an interval in which so many per second arrived; none where as many captures run as may.
    pub(super) fn sample(&mut self, rate: f64) -> Option<Breakdown> {
        let mut sample = Breakdown::new(self.view.steering().clone());
        if let Some(mut open) = self.open.take() {
            take(&mut open, &mut sample);
        }
        match rate <= FEW {
            true => self.open = self.capture(),
            false => {
                let mut capture = self.capture()?;
                let end = Instant::now() + WINDOW;
                while sample.packets() < MOST && Instant::now() < end {
                    thread::sleep(PAUSE);
                    take(&mut capture, &mut sample);
                }
            }
        }
        Some(sample)
    }

    fn capture(&self) -> Option<Capture> {
        let wanted = Wanted { after: false, snaplen: HEADERS, ..Wanted::default() };
        Mirrors::capture(self.view.mirrors(), wanted).ok()
    }
}

fn take(capture: &mut Capture, sample: &mut Breakdown) {
    capture.take(usize::MAX, |copied: Copied| {
        if sample.packets() < MOST {
            let wire_len = copied.wire_len as usize;
            sample.count(copied.device, copied.link, wire_len, &copied.bytes);
        }
    });
}
