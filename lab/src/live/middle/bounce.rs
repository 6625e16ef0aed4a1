//! The bare loop over AF_XDP, in a thread of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rheostat_io::backend::af_xdp::Bounce;
use rheostat_kernel::core_set::{CoreSet, pin_current_thread};
use rheostat_packet::{Mempool, MempoolConfig};

use super::RING;
use crate::live::error::LiveError;
use crate::live::programs::Receive;
use crate::live::wires::{LAN, WAN, Wires};

/// How long it sleeps at most before it looks whether it shall end.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The running loop.
#[derive(Debug)]
pub(crate) struct BouncePath {
    _program: Receive,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BouncePath {
    pub(super) fn start(wires: &Wires) -> Result<BouncePath, LiveError> {
        let failed =
            |message: String| LiveError::Program { task: "leads packets to a socket", message };
        let pool = Mempool::new(&MempoolConfig::umem(2 * RING))
            .map_err(|error| failed(error.to_string()))?;
        let opened = wires.middle.enter(|| Bounce::open(pool, LAN, WAN, RING))?;
        let mut bounce = opened.map_err(|error| failed(error.to_string()))?;
        let program = Receive::attach(&wires.middle, LAN, bounce.socket())?;
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let thread = thread::spawn(move || {
            // On the last core, as a lane of rheo would be; the source has the first.
            if let Some(&core) = CoreSet::available().iter().flat_map(CoreSet::cores).last() {
                let _ = pin_current_thread(core);
            }
            while !told.load(Ordering::Relaxed) {
                if bounce.turn() == 0 && bounce.wait(LONGEST_SLEEP).is_err() {
                    return;
                }
            }
        });
        Ok(BouncePath { _program: program, ends, thread: Some(thread) })
    }
}

impl Drop for BouncePath {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has said so.
            let _ = thread.join();
        }
    }
}
