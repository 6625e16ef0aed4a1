//! The socket on which the kernel reports, and what it has reported so far.

use std::io;
use std::time::{Duration, Instant};

use super::links::KernelLinks;
use super::message::{GROUP, list_request, read};
use super::{LinkEvent, LinkState};
use crate::netlink::{Content, LONGEST, NetlinkSocket, Received, messages};

/// How long the kernel may take to list its links.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often links are listed anew because they changed meanwhile.
const TRIES: usize = 16;

/// Watches links. Needs no privileges.
#[derive(Debug)]
pub struct LinkWatch {
    socket: NetlinkSocket,
    links: KernelLinks,
}

impl LinkWatch {
    /// Watches the links of these names in the network namespace of the calling thread. Their state now is
    /// [`LinkWatch::state`]; events are what changes from then on. A name that no interface has yet is
    /// watched, too.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or the kernel does not list its links.
    pub fn open(names: impl IntoIterator<Item = String>) -> io::Result<LinkWatch> {
        let mut watch = LinkWatch { socket: open()?, links: KernelLinks::new(names) };
        watch.list(&mut |_, _| {})?;
        Ok(watch)
    }

    /// The state of a link by its number in the order of [`LinkWatch::open`], as of the last event; `None`
    /// while it is not there.
    pub fn state(&self, link: usize) -> Option<&LinkState> {
        self.links.state(link)
    }

    /// Waits at most this long for something to be reported, and appends what has changed, in order, to
    /// `events`, by the number of the link. Reports that were lost are made good by listing all links; only
    /// changes that were undone meanwhile are missed then.
    ///
    /// # Errors
    /// [`io::Error`] when the socket fails or the kernel does not list its links. The next call tries again.
    pub fn wait(
        &mut self,
        longest: Duration,
        events: &mut Vec<(usize, LinkEvent)>,
    ) -> io::Result<()> {
        let mut tell = |link, event| events.push((link, event));
        let mut buffer = [0; LONGEST];
        let mut timeout = longest;
        loop {
            match self.socket.receive(&mut buffer, timeout)? {
                Received::Nothing => return Ok(()),
                Received::Overrun => return self.list(&mut tell),
                Received::Messages(length) => {
                    for message in messages(&buffer[..length]) {
                        match message.content {
                            Content::Overrun => return self.list(&mut tell),
                            Content::Part { kind, body } => self.handle(kind, body, &mut tell),
                            Content::Done { .. } | Content::Acknowledged | Content::Failed(_) => {}
                        }
                    }
                }
            }
            timeout = Duration::ZERO;
        }
    }

    fn handle(&mut self, kind: u16, body: &[u8], tell: &mut impl FnMut(usize, LinkEvent)) {
        if let Some(message) = read(kind, body) {
            self.links.handle(&message, tell);
        }
    }

    /// Lists all links, on a new socket: one that has overrun stays so until all in it is read.
    fn list(&mut self, tell: &mut impl FnMut(usize, LinkEvent)) -> io::Result<()> {
        for _ in 0..TRIES {
            self.socket = open()?;
            self.socket.send(&list_request())?;
            self.links.begin_list();
            if self.receive_list(tell)? {
                self.links.end_list(tell);
                return Ok(());
            }
        }
        Err(io::Error::other("interfaces change faster than they can be listed"))
    }

    /// Receives until the list is complete; whether it holds together.
    fn receive_list(&mut self, tell: &mut impl FnMut(usize, LinkEvent)) -> io::Result<bool> {
        let start = Instant::now();
        let mut buffer = [0; LONGEST];
        while start.elapsed() < TIMEOUT {
            let length = match self.socket.receive(&mut buffer, TIMEOUT)? {
                Received::Messages(length) => length,
                Received::Overrun => return Ok(false),
                Received::Nothing => continue,
            };
            for message in messages(&buffer[..length]) {
                match message.content {
                    Content::Done { is_consistent } => return Ok(is_consistent),
                    Content::Failed(error) => return Err(io::Error::from_raw_os_error(error)),
                    Content::Overrun => return Ok(false),
                    Content::Part { kind, body } => self.handle(kind, body, tell),
                    Content::Acknowledged => {}
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn open() -> io::Result<NetlinkSocket> {
    NetlinkSocket::open(GROUP)
}

#[cfg(test)]
mod tests {
    //! Timed: clock, devices.

    use rheostat_testkit::namespace::{isolated, shell};
    use rheostat_testkit::veth::await_links;

    use super::*;

    /// What is reported about the one link until `last` is.
    fn until(watch: &mut LinkWatch, last: LinkEvent) -> Vec<LinkEvent> {
        let start = Instant::now();
        let mut events = Vec::new();
        while events.last() != Some(&(0, last)) {
            assert!(start.elapsed() < Duration::from_secs(120), "{last:?} is missing: {events:?}");
            watch.wait(Duration::from_millis(50), &mut events).unwrap();
        }
        events.into_iter().map(|(_, event)| event).collect()
    }

    #[test]
    fn an_interface_is_followed_from_its_loss_to_its_return() {
        isolated(module_path!(), "an_interface_is_followed_from_its_loss_to_its_return", || {
            shell(
                "ip link add rw0 type veth peer name rw1; ip link set rw1 up; ip link set rw0 up",
            );
            // A link that has not come up yet raises no event when it goes down.
            await_links(&["rw0", "rw1"]);
            let mut watch = LinkWatch::open(["rw0".into()]).unwrap();
            let first = *watch.state(0).unwrap();
            shell("ip link set rw0 mtu 1400");
            until(&mut watch, LinkEvent::Mtu(1_400));
            shell("ip link set rw1 down");
            until(&mut watch, LinkEvent::Down);
            shell("ip link set rw1 up");
            until(&mut watch, LinkEvent::Up);
            shell("ip link set rw0 address 02:00:00:00:00:09");
            assert_eq!(
                until(&mut watch, LinkEvent::Address([2, 0, 0, 0, 0, 9])),
                [LinkEvent::Address([2, 0, 0, 0, 0, 9])]
            );
            shell("ip link del rw0");
            until(&mut watch, LinkEvent::Vanished);
            assert_eq!(watch.state(0), None);
            shell("ip link add rw0 type veth peer name rw1");
            assert_eq!(until(&mut watch, LinkEvent::Returned), [LinkEvent::Returned]);
            assert_ne!(watch.state(0).unwrap().index, first.index);
            // More than the socket holds, unread: the list states what has become of the link.
            for mtu in 0..40 {
                shell(&format!(
                    "for i in $(seq 40); do echo link set rw1 mtu $((1300 + i + {mtu})); done \
                     | ip -batch -"
                ));
            }
            shell("ip link del rw0");
            until(&mut watch, LinkEvent::Vanished);
        });
    }

    #[test]
    fn the_loopback_interface_is_there_and_another_is_not() {
        let watch = LinkWatch::open(["lo".into(), "no-such-link".into()]).unwrap();
        let loopback = watch.state(0).expect("every namespace has one");
        assert_eq!((loopback.index, loopback.mac), (1, None));
        assert!(loopback.mtu >= 1_280);
        assert_eq!((watch.state(1), watch.state(2)), (None, None));
    }
}
