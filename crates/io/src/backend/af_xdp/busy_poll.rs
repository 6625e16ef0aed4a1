//! Kernel busy polling: lanes have the kernel poll the driver's queues, and interrupts stay off while they do
//! (Documentation/networking/napi.rst, af_xdp.rst).

use std::io;
use std::time::Duration;

use rheostat_kernel::netdev::{Napi, NapiSettings, napis, set_napi};

use crate::sys::xdp_socket::XdpSocket;

/// Polls of the kernel's own without packets after which the interrupt is on again.
const DEFERRALS: u32 = 2;
/// When the kernel polls if no lane has. A packet that comes right after a lane went to sleep waits for as long.
const TIMER: Duration = Duration::from_micros(200);

/// NAPI instances that wait for lanes to poll them. Dropping it restores their settings, if the process still may.
#[derive(Debug)]
pub(super) struct BusyPoll {
    /// The instances as they were.
    before: Vec<(u32, NapiSettings)>,
}

impl BusyPoll {
    /// Has each call of the sockets poll the queue of the interface of this index for up to `budget` packets.
    ///
    /// Sockets learn which instance to poll when they are bound, from the driver. Where it links none, the kernel would poll
    /// nothing, and the deferred interrupts would only delay packets: refused.
    pub(super) fn start<'a>(
        index: u32,
        sockets: impl IntoIterator<Item = &'a XdpSocket>,
        budget: u16,
    ) -> io::Result<BusyPoll> {
        let mut napis = napis(index)?;
        napis.retain(|napi| napi.queue.is_some());
        if napis.is_empty() {
            let why = "the driver links none of its queues with a NAPI instance";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        sockets.into_iter().try_for_each(|socket| socket.poll_driver(budget))?;
        BusyPoll::defer(&napis)
    }

    /// Defers the interrupts of these instances.
    fn defer(napis: &[Napi]) -> io::Result<BusyPoll> {
        let mut deferred = BusyPoll { before: Vec::new() };
        for Napi { id, settings, .. } in napis {
            let Some(before) = *settings else {
                let why = "single NAPI instances have no settings (Linux 6.13 and newer have)";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            };
            set_napi(*id, NapiSettings { deferrals: DEFERRALS, timer: TIMER, ..before })?;
            deferred.before.push((*id, before));
        }
        Ok(deferred)
    }
}

impl Drop for BusyPoll {
    fn drop(&mut self) {
        for (id, settings) in self.before.drain(..) {
            // Refused after the rights were given up, and where the instance is gone.
            let _ = set_napi(id, settings);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: processes, devices.

    use rheostat_testkit::namespace::{isolated, shell};

    use super::*;

    #[test]
    fn interrupts_are_deferred_until_it_is_dropped() {
        isolated(module_path!(), "interrupts_are_deferred_until_it_is_dropped", || {
            shell(
                "ip link add near type veth peer name far; ethtool -K near gro on; ip link set near up",
            );
            let index = shell("cat /sys/class/net/near/ifindex").trim().parse().unwrap();
            let before = match napis(index) {
                Ok(napis) if napis.iter().all(|napi| napi.settings.is_some()) => napis,
                other => {
                    println!(
                        "not run: this kernel has no settings of single instances ({other:?})"
                    );
                    return;
                }
            };
            assert!(!before.is_empty(), "GRO takes an instance");
            let deferred = BusyPoll::defer(&before).unwrap();
            for napi in napis(index).unwrap() {
                let NapiSettings { deferrals, timer, .. } = napi.settings.unwrap();
                assert_eq!((deferrals, timer), (DEFERRALS, TIMER));
            }
            drop(deferred);
            assert_eq!(napis(index).unwrap(), before);
            let sockets: [&XdpSocket; 0] = [];
            let refused = BusyPoll::start(index, sockets, 64).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::Unsupported, "a veth pair links no queue");
            assert_eq!(napis(index).unwrap(), before);
        });
    }
}
