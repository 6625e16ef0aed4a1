//! What happens to the interfaces of live devices while a run goes on: printed, counted and acted upon.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_control::{LinkChange, LinkFollower, LinkHandler};
use rheostat_io::DeviceMonitor;
use rheostat_io::layer::reopen::Reopener;
use rheostat_ip::Network;
use rheostat_kernel::capability::Capability;
use rheostat_kernel::privileges;
use rheostat_kernel::{LinkEvent, LinkState, LinkWatch};
use rheostat_observe::{LinkBoard, LinkWord};

use crate::mtu::Mtus;

/// The thread that follows interfaces, as [`LinkFollower`] names it.
const THREAD: &str = "rheo-links";
/// How often a device is tried to be opened at once when its interface is back, and how long apart: a driver may need a
/// moment. After that it is tried at each look.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// The interface of a live device.
pub(crate) struct WatchedLink {
    /// The device.
    pub(crate) device: String,
    /// Its number.
    pub(crate) id: DeviceId,
    /// The interface.
    pub(crate) interface: String,
    /// What sees the device lose an interface that is still there.
    pub(crate) monitor: Arc<dyn DeviceMonitor>,
    /// Opens the device anew, where the run waits for its interface; otherwise the run ends with it.
    pub(crate) reopener: Option<Reopener>,
}

/// The interfaces of a run, followed until this is dropped.
pub(crate) struct WatchedLinks {
    board: Arc<LinkBoard>,
    is_lost: Arc<AtomicBool>,
    keeps_privileges: bool,
    /// There once the run has started.
    mtus: Arc<OnceLock<Mtus>>,
    _follower: Option<LinkFollower>,
}

impl WatchedLinks {
    /// Begins to follow. The thread keeps the capabilities that devices are opened with if a device is to be opened
    /// anew, and gives up everything otherwise. Neighbours in `network` are requested anew on a link that has
    /// returned.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or no thread.
    pub(crate) fn start(
        watched: Vec<WatchedLink>,
        network: Option<Arc<Network>>,
    ) -> io::Result<WatchedLinks> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let mtus: Arc<OnceLock<Mtus>> = Arc::default();
        let keeps_privileges = watched.iter().any(|link| link.reopener.is_some());
        if watched.is_empty() {
            let board = Arc::default();
            return Ok(WatchedLinks { board, is_lost, keeps_privileges, mtus, _follower: None });
        }
        let watch = LinkWatch::open(watched.iter().map(|link| link.interface.clone()))?;
        let now = watched.iter().enumerate().map(|(place, link)| {
            // One that is missing already is about to be reported.
            let word = watch.state(place).map_or(LinkWord::Up, |state| LinkWord::of(Some(state)));
            (link.device.clone(), link.interface.clone(), word)
        });
        let board = Arc::new(LinkBoard::new(now));
        let state = |place| watch.state(place).copied();
        let names = watched.iter().map(|link| (link.interface.clone(), link.id)).collect();
        let prepare = move || {
            // What it could not give up is found when the run makes sure of it.
            let _ = match keeps_privileges {
                true => privileges::give_up_all_but(&Capability::DEVICES),
                false => privileges::give_up(),
            };
        };
        let links = watched.into_iter().enumerate();
        let links = links.map(|(place, watched)| KeptLink::new(watched, state(place)));
        let keeper = Keeper {
            links: links.collect(),
            network,
            board: board.clone(),
            is_lost: is_lost.clone(),
            mtus: mtus.clone(),
        };
        let follower = LinkFollower::start(names, prepare, keeper)?;
        Ok(WatchedLinks { board, is_lost, keeps_privileges, mtus, _follower: Some(follower) })
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

/// A link, as the keeper knows it.
struct KeptLink {
    watched: WatchedLink,
    /// Its state when it last changed; `None` while there is no such interface.
    state: Option<LinkState>,
    /// The address of the interface at the start, which the device goes on to use.
    mac: Option<[u8; 6]>,
    /// Whether the device has lost its interface.
    is_lost: bool,
    /// Whether the interface is there and the device not open: it is tried until it is.
    is_pending: bool,
    /// Why the device was not opened when it was last tried: each reason is printed once.
    refusal: Option<String>,
}

impl KeptLink {
    fn new(watched: WatchedLink, state: Option<LinkState>) -> KeptLink {
        let mac = state.and_then(|state| state.mac);
        KeptLink { watched, state, mac, is_lost: false, is_pending: false, refusal: None }
    }

    /// How messages begin.
    fn what(&self) -> String {
        format!("device `{}`: interface `{}`", self.watched.device, self.watched.interface)
    }
}

/// Acts upon changes, on the thread that follows.
struct Keeper {
    links: Vec<KeptLink>,
    network: Option<Arc<Network>>,
    board: Arc<LinkBoard>,
    is_lost: Arc<AtomicBool>,
    mtus: Arc<OnceLock<Mtus>>,
}

impl LinkHandler for Keeper {
    fn handle(&mut self, LinkChange { device, event, state }: LinkChange) {
        let Some(place) = self.links.iter().position(|link| link.watched.id == device) else {
            return;
        };
        self.board.note(place, event);
        let link = &mut self.links[place];
        link.state = state;
        let what = link.what();
        match event {
            LinkEvent::Vanished => self.lose(place, "is gone", "it returns"),
            LinkEvent::Returned => {
                link.is_pending = link.watched.reopener.is_some();
                self.open_pending(place, TRIES);
            }
            LinkEvent::Down => {
                let why = match state {
                    Some(state) if state.is_up => "has no carrier",
                    _ => "is down",
                };
                tracing::warn!(target: "links", "{what} {why}; packets to it are dropped (link_down)");
            }
            LinkEvent::Up => {
                tracing::info!(target: "links", "{what} is up");
                self.open_pending(place, TRIES);
            }
            LinkEvent::Mtu(mtu) => {
                if let Some(mtus) = self.mtus.get() {
                    mtus.set(device, mtu);
                }
            }
            LinkEvent::Address(_) => self.tell_address(place),
        }
    }

    fn look(&mut self) {
        for place in 0..self.links.len() {
            let link = &self.links[place];
            if !link.is_lost
                && link.watched.monitor.interface().is_some_and(|interface| interface.is_detached())
            {
                self.board.detached(place);
                self.lose(place, "was detached by another process", "it is attached again");
                let link = &mut self.links[place];
                link.is_pending = link.watched.reopener.is_some();
            }
            self.open_pending(place, 1);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::warn!(target: "links", "interfaces are not followed: {error}");
    }
}

impl Keeper {
    /// A device has lost its interface: the run ends, or the device lets go of it.
    fn lose(&mut self, place: usize, how: &str, until: &str) {
        let link = &mut self.links[place];
        (link.is_lost, link.is_pending, link.refusal) = (true, false, None);
        let what = link.what();
        match &link.watched.reopener {
            Some(reopener) => {
                tracing::warn!(target: "links", "{what} {how}; packets to it are dropped (link_down) until {until}");
                reopener.let_go();
            }
            None => {
                tracing::error!(target: "links", "{what} {how}; the run ends (on_loss = \"exit\")");
                self.is_lost.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Opens a device anew whose interface is there, in at most so many tries. One that is refused stays pending.
    fn open_pending(&mut self, place: usize, tries: usize) {
        let link = &mut self.links[place];
        let Some(reopener) = link.watched.reopener.as_ref().filter(|_| link.is_pending) else {
            return;
        };
        let is_running = link.state.is_some_and(|state| state.is_running());
        let mut outcome = reopener.reopen();
        for _ in 1..tries {
            if outcome.is_ok() || !is_running {
                break;
            }
            std::thread::sleep(PAUSE);
            outcome = reopener.reopen();
        }
        let what = link.what();
        match outcome {
            Ok(true) => {
                (link.is_lost, link.is_pending) = (false, false);
                self.board.reopened(place, link.state);
                if let Some(mtus) = self.mtus.get() {
                    mtus.catch_up();
                }
                if let Some(network) = &self.network {
                    network.renew_link(link.watched.id);
                }
                tracing::info!(target: "links", "{what} is back and in use again");
                self.tell_address(place);
            }
            // The run ends.
            Ok(false) => link.is_pending = false,
            Err(error) => {
                let refusal = match is_running {
                    true => format!("{what} is back; {error}"),
                    false => {
                        format!("{what} is back and down; it is used once it is up ({error})")
                    }
                };
                if link.refusal.as_ref() != Some(&refusal) {
                    match is_running {
                        true => tracing::warn!(target: "links", "{refusal}"),
                        false => tracing::info!(target: "links", "{refusal}"),
                    }
                    link.refusal = Some(refusal);
                }
            }
        }
    }

    /// Warns that an interface has another address than the one that the device uses.
    fn tell_address(&self, place: usize) {
        let link = &self.links[place];
        let (Some(old), Some(new)) = (link.mac, link.state.and_then(|state| state.mac)) else {
            return;
        };
        if old != new {
            let [old, new] = [old, new].map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
            let (what, interface) = (link.what(), &link.watched.interface);
            tracing::warn!(
                target: "links",
                "{what} has the address {new}; the device goes \
                 on with {old}: `ip link set dev {interface} address {old}` if packets do not arrive"
            );
        }
    }
}
