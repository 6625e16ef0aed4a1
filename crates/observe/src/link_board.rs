//! What has happened to the interfaces of live devices, for the summary and for status requests during the run.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rheostat_kernel::{LinkEvent, LinkState};
use serde::{Deserialize, Serialize};

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkWord {
    /// Packets pass.
    Up,
    /// The interface is put down, or has no carrier.
    Down,
    /// There is no such interface, or the device is not open on it yet.
    Gone,
    /// Another process has detached the device from the interface, which is there.
    Detached,
}

/// The link of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLine {
    /// The device.
    pub device: String,
    /// Its interface.
    pub interface: String,
    /// How it stands.
    pub state: LinkWord,
    /// How often it has vanished since the start.
    pub vanished: u64,
    /// How often it was taken up again.
    pub returned: u64,
    /// How often it went down.
    pub down: u64,
}

/// The links of a run's live devices.
#[derive(Debug, Default)]
pub struct LinkBoard(Mutex<Vec<LinkLine>>);

impl LinkBoard {
    /// A board for these devices with their interfaces, as they stand now.
    pub fn new(links: impl IntoIterator<Item = (String, String, LinkWord)>) -> LinkBoard {
        let line = |(device, interface, state)| LinkLine {
            device,
            interface,
            state,
            vanished: 0,
            returned: 0,
            down: 0,
        };
        LinkBoard(Mutex::new(links.into_iter().map(line).collect()))
    }

    /// Notes what has happened to a link, by its place; a return is noted when the device is open again, by
    /// [`LinkBoard::reopened`].
    pub fn note(&self, link: usize, event: LinkEvent) {
        let mut lines = self.locked();
        let Some(line) = lines.get_mut(link) else { return };
        match event {
            LinkEvent::Vanished => {
                line.state = LinkWord::Gone;
                line.vanished += 1;
            }
            LinkEvent::Down => {
                line.down += 1;
                if !line.state.is_lost() {
                    line.state = LinkWord::Down;
                }
            }
            LinkEvent::Up if !line.state.is_lost() => line.state = LinkWord::Up,
            LinkEvent::Up | LinkEvent::Returned | LinkEvent::Mtu(_) | LinkEvent::Address(_) => {}
        }
    }

    /// Notes that another process has detached a device from its interface.
    pub fn detached(&self, link: usize) {
        if let Some(line) = self.locked().get_mut(link) {
            line.state = LinkWord::Detached;
            line.vanished += 1;
        }
    }

    /// Notes that a device has its interface again.
    pub fn reopened(&self, link: usize, state: Option<LinkState>) {
        if let Some(line) = self.locked().get_mut(link) {
            line.state = LinkWord::of(state.as_ref());
            line.returned += 1;
        }
    }

    /// All links, in the order of the devices.
    pub fn lines(&self) -> Vec<LinkLine> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<LinkLine>> {
        // Words and numbers only: a panic cannot leave them half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinkWord {
    /// How a link stands that is in this state.
    pub fn of(state: Option<&LinkState>) -> LinkWord {
        match state {
            None => LinkWord::Gone,
            Some(state) if state.is_running() => LinkWord::Up,
            Some(_) => LinkWord::Down,
        }
    }

    /// Whether the device is without the interface, however that stands.
    pub fn is_lost(self) -> bool {
        matches!(self, LinkWord::Gone | LinkWord::Detached)
    }
}

impl LinkLine {
    /// Whether there is anything to report about it.
    pub fn is_eventful(&self) -> bool {
        self.state != LinkWord::Up || self.vanished + self.returned + self.down > 0
    }
}

impl fmt::Display for LinkLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinkLine { device, interface, state, vanished, returned, down } = self;
        let state = match state {
            LinkWord::Up => "up",
            LinkWord::Down => "down",
            LinkWord::Gone => "gone",
            LinkWord::Detached => "detached",
        };
        write!(
            f,
            "{device}: {interface} is {state}; vanished {vanished}, returned {returned}, went down \
             {down} times"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_link_is_gone_until_its_device_is_open_again() {
        let board = LinkBoard::new([("wan".into(), "eth1".into(), LinkWord::Up)]);
        let line = |board: &LinkBoard| board.lines().remove(0);
        assert!(!line(&board).is_eventful());
        for event in [LinkEvent::Down, LinkEvent::Vanished, LinkEvent::Returned, LinkEvent::Up] {
            board.note(0, event);
        }
        assert_eq!(line(&board).state, LinkWord::Gone, "the device does not have it yet");
        // An interface that is renamed may be put down and up before its device is open.
        for event in [LinkEvent::Down, LinkEvent::Up] {
            board.note(0, event);
            assert_eq!(line(&board).state, LinkWord::Gone, "the device does not have it yet");
        }
        let up = LinkState { index: 7, mac: None, mtu: 1_500, is_up: true, has_carrier: true };
        board.reopened(0, Some(up));
        let text = line(&board).to_string();
        assert_eq!(text, "wan: eth1 is up; vanished 1, returned 1, went down 2 times");
        let json = serde_json::to_value(line(&board)).unwrap();
        assert_eq!((&json["state"], &json["vanished"]), (&"up".into(), &1.into()));
        board.detached(0);
        board.note(0, LinkEvent::Up);
        let json = serde_json::to_value(line(&board)).unwrap();
        assert_eq!((&json["state"], &json["vanished"]), (&"detached".into(), &2.into()));
    }
}
