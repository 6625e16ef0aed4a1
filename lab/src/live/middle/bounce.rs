//! The bare loop over AF_XDP, in a thread of this process.

use std::time::Duration;

use rheostat_io::backend::af_xdp::Bounce;
use rheostat_packet::{Mempool, MempoolConfig};

use super::RING;
use crate::live::error::LiveError;
use crate::live::programs::Receive;
use crate::live::wires::{LAN, WAN, Wires};
use crate::testbed::{Cores, Loops};

/// How long it sleeps at most before it looks whether it shall end.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The running loop.
#[derive(Debug)]
pub(crate) struct BouncePath {
    // Before the program that leads packets to it.
    _running: Loops,
    _program: Receive,
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
        let mut running = Loops::default();
        // On the last core, as a lane of rheo would be; the source has the first.
        let core = Cores::available()?.last();
        let turn = move || bounce.turn() > 0 || bounce.wait(LONGEST_SLEEP).is_ok();
        running.start("bounce", core, turn).map_err(|error| failed(error.to_string()))?;
        Ok(BouncePath { _running: running, _program: program })
    }
}
