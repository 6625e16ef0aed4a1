//! The links that are watched, and what a message of the kernel changes in them.

use super::message::LinkMessage;
use super::{LinkEvent, LinkState};

/// The links that are watched, in the order in which they were named.
#[derive(Debug)]
pub(super) struct KernelLinks(Vec<KernelLink>);

#[derive(Debug)]
struct KernelLink {
    name: String,
    state: Option<LinkState>,
    /// The list that is being received has it.
    is_listed: bool,
}

impl KernelLinks {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> KernelLinks {
        let link = |name| KernelLink { name, state: None, is_listed: false };
        KernelLinks(names.into_iter().map(link).collect())
    }

    pub(super) fn state(&self, link: usize) -> Option<&LinkState> {
        self.0.get(link)?.state.as_ref()
    }

    /// A list of all links is about to be received.
    pub(super) fn begin_list(&mut self) {
        self.0.iter_mut().for_each(|link| link.is_listed = false);
    }

    /// The list is complete: what it does not have is not there.
    pub(super) fn end_list(&mut self, tell: &mut impl FnMut(usize, LinkEvent)) {
        for (number, link) in self.0.iter_mut().enumerate() {
            if !link.is_listed {
                link.vanish(number, tell);
            }
        }
    }

    /// Applies a message and returns what has changed, by the number of the link.
    pub(super) fn handle(
        &mut self,
        message: &LinkMessage,
        tell: &mut impl FnMut(usize, LinkEvent),
    ) {
        for (number, link) in self.0.iter_mut().enumerate() {
            let has_index = |index| link.state.is_some_and(|state| state.index == index);
            match message {
                LinkMessage::There { names, state } if names.contains(&link.name) => {
                    link.update(number, *state, tell);
                }
                LinkMessage::There { state, .. } if has_index(state.index) => {
                    link.vanish(number, tell);
                }
                LinkMessage::Gone(index) if has_index(*index) => link.vanish(number, tell),
                _ => {}
            }
        }
    }
}

impl KernelLink {
    fn vanish(&mut self, number: usize, tell: &mut impl FnMut(usize, LinkEvent)) {
        if self.state.take().is_some() {
            tell(number, LinkEvent::Vanished);
        }
    }

    fn update(&mut self, number: usize, new: LinkState, tell: &mut impl FnMut(usize, LinkEvent)) {
        self.is_listed = true;
        if self.state.is_some_and(|old| old.index != new.index) {
            self.vanish(number, tell);
        }
        let Some(old) = self.state.replace(new) else { return tell(number, LinkEvent::Returned) };
        match (old.is_running(), new.is_running()) {
            (true, false) => tell(number, LinkEvent::Down),
            (false, true) => tell(number, LinkEvent::Up),
            _ => {}
        }
        if old.mtu != new.mtu {
            tell(number, LinkEvent::Mtu(new.mtu));
        }
        if let Some(mac) = new.mac.filter(|_| old.mac != new.mac) {
            tell(number, LinkEvent::Address(mac));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAN: LinkState =
        LinkState { index: 5, mac: Some([2; 6]), mtu: 1_500, is_up: true, has_carrier: true };

    fn there(name: &str, state: LinkState) -> LinkMessage {
        LinkMessage::There { names: vec![name.into()], state }
    }

    fn watched() -> KernelLinks {
        let mut links = KernelLinks::new(["lan".into(), "wan".into()]);
        let _ = events_of(&mut links, &[there("wan", WAN)]);
        links
    }

    fn events_of(links: &mut KernelLinks, messages: &[LinkMessage]) -> Vec<(usize, LinkEvent)> {
        let mut events = Vec::new();
        for message in messages {
            links.handle(message, &mut |link, event| events.push((link, event)));
        }
        events
    }

    #[test]
    fn each_change_is_one_event() {
        let mut links = watched();
        let down = LinkState { has_carrier: false, ..WAN };
        let short = LinkState { mtu: 1_280, ..down };
        let other = LinkState { mac: Some([4; 6]), ..short };
        let back = LinkState { has_carrier: true, ..other };
        let messages = [WAN, down, down, short, other, back].map(|state| there("wan", state));
        let expected =
            [LinkEvent::Down, LinkEvent::Mtu(1_280), LinkEvent::Address([4; 6]), LinkEvent::Up];
        assert_eq!(events_of(&mut links, &messages), expected.map(|event| (1, event)));
        assert_eq!(links.state(1), Some(&back));
        assert_eq!(links.state(0), None);
    }

    #[test]
    fn a_link_vanishes_when_it_is_deleted_renamed_or_not_listed() {
        let vanished = [(1, LinkEvent::Vanished)];
        assert_eq!(events_of(&mut watched(), &[LinkMessage::Gone(5)]), vanished);
        assert_eq!(events_of(&mut watched(), &[LinkMessage::Gone(6)]), []);
        assert_eq!(events_of(&mut watched(), &[there("old", WAN)]), vanished);
        let mut events = Vec::new();
        let mut links = watched();
        links.begin_list();
        links.end_list(&mut |link, event| events.push((link, event)));
        assert_eq!(events, vanished);
    }

    #[test]
    fn a_link_returns_under_its_name_or_an_alternative_one() {
        let mut links = watched();
        let anew = LinkState { index: 9, mac: Some([6; 6]), mtu: 9_000, ..WAN };
        let events = events_of(&mut links, &[LinkMessage::Gone(5), there("wan", anew)]);
        assert_eq!(events, [(1, LinkEvent::Vanished), (1, LinkEvent::Returned)]);
        let names = vec!["veth3".into(), "wan".into()];
        let other = LinkMessage::There { names, state: WAN };
        // The message that said that the last one is gone was lost.
        let events = events_of(&mut links, &[other]);
        assert_eq!(events, [(1, LinkEvent::Vanished), (1, LinkEvent::Returned)]);
    }
}
