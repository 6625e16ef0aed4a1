//! What happens to the interfaces of live devices while a run goes on: printed, counted and acted upon.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rheostat_base::capability::Capability;
use rheostat_base::{DeviceId, privileges};
use rheostat_control::{LinkChange, LinkFollower};
use rheostat_io::layer::reopen::Reopener;
use rheostat_io::{LinkEvent, LinkState, LinkWatch};
use rheostat_ip::Network;
use rheostat_observe::{LinkBoard, LinkWord};

use crate::mtu::Mtus;

/// The thread that follows interfaces, as [`LinkFollower`] names it.
const THREAD: &str = "rheo-links";
/// How often a device is tried to be opened when its interface is back, and how long apart: a driver may need a
/// moment.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// The interface of a live device.
pub(crate) struct Watched {
    /// The device.
    pub(crate) device: String,
    /// Its number.
    pub(crate) id: DeviceId,
    /// The interface.
    pub(crate) interface: String,
    /// Opens the device anew, where the run waits for its interface; otherwise the run ends with it.
    pub(crate) reopener: Option<Reopener>,
}

/// The interfaces of a run, followed until this is dropped.
pub(crate) struct Links {
    board: Arc<LinkBoard>,
    is_lost: Arc<AtomicBool>,
    keeps_privileges: bool,
    /// There once the run has started.
    mtus: Arc<OnceLock<Mtus>>,
    _follower: Option<LinkFollower>,
}

impl Links {
    /// Begins to follow. The thread keeps the capabilities that devices are opened with if a device is to be opened
    /// anew, and gives up everything otherwise. Neighbours in `network` are requested anew on a link that has
    /// returned.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or no thread.
    pub(crate) fn start(watched: Vec<Watched>, network: Option<Arc<Network>>) -> io::Result<Links> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let mtus: Arc<OnceLock<Mtus>> = Arc::default();
        let keeps_privileges = watched.iter().any(|link| link.reopener.is_some());
        if watched.is_empty() {
            let board = Arc::default();
            return Ok(Links { board, is_lost, keeps_privileges, mtus, _follower: None });
        }
        let watch = LinkWatch::open(watched.iter().map(|link| link.interface.clone()))?;
        let now = watched.iter().enumerate().map(|(place, link)| {
            // One that is missing already is about to be reported.
            let word = watch.state(place).map_or(LinkWord::Up, |state| LinkWord::of(Some(state)));
            (link.device.clone(), link.interface.clone(), word)
        });
        let board = Arc::new(LinkBoard::new(now));
        let macs = (0..watched.len()).map(|place| watch.state(place).and_then(|state| state.mac));
        let macs = macs.collect();
        drop(watch);
        let names = watched.iter().map(|link| (link.interface.clone(), link.id)).collect();
        let prepare = move || {
            // What it could not give up is found when the run makes sure of it.
            let _ = match keeps_privileges {
                true => privileges::give_up_all_but(&Capability::DEVICES),
                false => privileges::give_up(),
            };
        };
        let mut keeper = Keeper {
            is_pending: vec![false; watched.len()],
            watched,
            macs,
            network,
            board: board.clone(),
            is_lost: is_lost.clone(),
            mtus: mtus.clone(),
        };
        let follower = LinkFollower::start(
            names,
            prepare,
            move |change| keeper.handle(change),
            |error| err!("warning: interfaces are not followed: {error}"),
        )?;
        Ok(Links { board, is_lost, keeps_privileges, mtus, _follower: Some(follower) })
    }

    /// Makes the run apply changes of its interfaces' MTUs from now on.
    pub(crate) fn go_by(&self, mtus: Mtus) {
        // Changes since the devices were opened raised no event.
        self.mtus.get_or_init(|| mtus).catch_up();
    }

    /// What has happened so far.
    pub(crate) fn board(&self) -> Arc<LinkBoard> {
        self.board.clone()
    }

    /// Whether an interface has gone without which the run is to end.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// The thread that has kept its privileges, if one has.
    pub(crate) fn keeper(&self) -> Option<&'static str> {
        self.keeps_privileges.then_some(THREAD)
    }
}

/// Acts upon changes, on the thread that follows.
struct Keeper {
    watched: Vec<Watched>,
    /// By link: whether its interface is back and the device not open yet.
    is_pending: Vec<bool>,
    /// By link: the address of the interface at the start, which the device goes on to use.
    macs: Vec<Option<[u8; 6]>>,
    network: Option<Arc<Network>>,
    board: Arc<LinkBoard>,
    is_lost: Arc<AtomicBool>,
    mtus: Arc<OnceLock<Mtus>>,
}

impl Keeper {
    fn handle(&mut self, LinkChange { device, event, state }: LinkChange) {
        let Some(place) = self.watched.iter().position(|link| link.id == device) else { return };
        self.board.note(place, event);
        let Watched { device, interface, reopener, .. } = &self.watched[place];
        let what = format!("device `{device}`: interface `{interface}`");
        match event {
            LinkEvent::Vanished => {
                self.is_pending[place] = false;
                match reopener {
                    Some(reopener) => {
                        err!(
                            "warning: {what} is gone; packets to it are dropped (link_down) until it \
                             returns"
                        );
                        reopener.let_go();
                    }
                    None => {
                        err!("error: {what} is gone; the run ends (on_loss = \"exit\")");
                        self.is_lost.store(true, Ordering::Relaxed);
                    }
                }
            }
            LinkEvent::Returned => {
                self.is_pending[place] = reopener.is_some();
                self.open_pending(place, state);
            }
            LinkEvent::Down => {
                let why = match state {
                    Some(state) if state.is_up => "has no carrier",
                    _ => "is down",
                };
                err!("warning: {what} {why}; packets to it are dropped (link_down)");
            }
            LinkEvent::Up => {
                err!("note: {what} is up");
                self.open_pending(place, state);
            }
            LinkEvent::Mtu(mtu) => {
                if let Some(mtus) = self.mtus.get() {
                    mtus.set(self.watched[place].id, mtu);
                }
            }
            LinkEvent::Address(_) => self.tell_address(place, state),
        }
    }

    /// Opens a device anew whose interface is back. One that is refused while the interface is down is tried again
    /// once it is up.
    fn open_pending(&mut self, place: usize, state: Option<LinkState>) {
        let Watched { device, interface, reopener: Some(reopener), .. } = &self.watched[place]
        else {
            return;
        };
        if !self.is_pending[place] {
            return;
        }
        let what = format!("device `{device}`: interface `{interface}`");
        let is_running = state.is_some_and(|state| state.is_running());
        let mut outcome = reopener.reopen();
        for _ in 1..TRIES {
            if outcome.is_ok() || !is_running {
                break;
            }
            std::thread::sleep(PAUSE);
            outcome = reopener.reopen();
        }
        match outcome {
            Ok(true) => {
                self.is_pending[place] = false;
                self.board.reopened(place, state);
                if let Some(mtus) = self.mtus.get() {
                    mtus.catch_up();
                }
                if let Some(network) = &self.network {
                    network.renew_link(self.watched[place].id);
                }
                err!("note: {what} is back and in use again");
                self.tell_address(place, state);
            }
            // The run ends.
            Ok(false) => self.is_pending[place] = false,
            Err(error) if is_running => err!("warning: {what} is back; {error}"),
            Err(error) => {
                err!("note: {what} is back and down; it is used once it is up ({error})");
            }
        }
    }

    /// Warns that an interface has another address than the one that the device uses.
    fn tell_address(&self, place: usize, state: Option<LinkState>) {
        let Watched { device, interface, .. } = &self.watched[place];
        let (Some(old), Some(new)) = (self.macs[place], state.and_then(|state| state.mac)) else {
            return;
        };
        if old != new {
            let [old, new] = [old, new].map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
            err!(
                "warning: device `{device}`: interface `{interface}` has the address {new}; the device goes \
                 on with {old}: `ip link set dev {interface} address {old}` if packets do not arrive"
            );
        }
    }
}
