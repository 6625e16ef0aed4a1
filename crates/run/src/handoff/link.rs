//! One direction between two lanes: a bounded ring of packets and, beside it, a ring of control messages, which
//! take effect between two packets.
//!
//! A message carries the number of packets sent before it, and the receiver does not open it before it has
//! taken as many. So a message cannot overtake packets, nor can a full ring of packets refuse it; and a
//! packet costs what it costs without messages. A message may take effect later than its position, so
//! senders must not rely on when it does.

use rheostat_base::sync::spsc::{self, Consumer, Producer};

/// What a receiver takes.
#[derive(Debug)]
pub(crate) enum Delivery<T, P> {
    /// A packet.
    Packet(T),
    /// A message, behind the packets that were sent before it.
    Control(P),
}

impl<T, P> Delivery<T, P> {
    /// The same with another form of packets.
    #[inline(always)]
    pub(crate) fn map<U>(self, unpack: impl FnOnce(T) -> U) -> Delivery<U, P> {
        match self {
            Delivery::Packet(packet) => Delivery::Packet(unpack(packet)),
            Delivery::Control(message) => Delivery::Control(message),
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender<T, P> {
    packets: Producer<T>,
    /// Packets sent so far.
    sent: u64,
    messages: Producer<Positioned<P>>,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver<T, P> {
    packets: Consumer<T>,
    /// Packets taken so far.
    taken: u64,
    messages: Consumer<Positioned<P>>,
    /// A message whose position has not been reached.
    next: Option<Positioned<P>>,
}

/// A message and its position.
#[derive(Debug)]
struct Positioned<P> {
    /// Packets sent before it.
    after: u64,
    message: P,
}

/// Bytes of a message in its ring.
pub(super) const fn control_bytes<P>() -> usize {
    size_of::<Positioned<P>>()
}

/// Connects two lanes by a ring for at least `packets` packets and one for at least `messages` messages.
pub(crate) fn link<T, P>(packets: usize, messages: usize) -> (Sender<T, P>, Receiver<T, P>) {
    let (packets_in, packets_out) = spsc::ring(packets);
    let (messages_in, messages_out) = spsc::ring(messages);
    (
        Sender { packets: packets_in, sent: 0, messages: messages_in },
        Receiver { packets: packets_out, taken: 0, messages: messages_out, next: None },
    )
}

impl<T, P> Sender<T, P> {
    /// Sends packets from `packets` until it ends or the ring is full. Returns how many went in.
    pub(crate) fn push_all(&mut self, packets: &mut impl Iterator<Item = T>) -> usize {
        let sent = self.packets.push_all(packets);
        self.sent += sent as u64;
        sent
    }

    /// Sends a message behind all packets sent so far.
    ///
    /// # Panics
    /// When more messages are under way than the link was made for.
    pub(crate) fn send_control(&mut self, message: P) {
        let message = Positioned { after: self.sent, message };
        assert!(
            self.messages.push(message).is_ok(),
            "fewer messages are under way than there is room for"
        );
    }
}

impl<T, P> Receiver<T, P> {
    /// Takes up to `limit` packets, and the messages between them, in the order they were sent.
    #[inline]
    pub(crate) fn take(&mut self, limit: usize, mut f: impl FnMut(Delivery<T, P>)) {
        let mut left = self.packets.len().min(limit);
        loop {
            self.next = self.next.take().or_else(|| self.messages.pop());
            let run = match self.next.take_if(|next| next.after <= self.taken) {
                Some(due) => {
                    f(Delivery::Control(due.message));
                    continue;
                }
                None => self.next.as_ref().map_or(left, |next| {
                    left.min(usize::try_from(next.after - self.taken).unwrap_or(usize::MAX))
                }),
            };
            if run == 0 {
                return;
            }
            let taken = self.packets.pop_each(run, |packet| f(Delivery::Packet(packet)));
            self.taken += taken as u64;
            left -= taken;
        }
    }

    /// Packets and messages that wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.packets.len() + self.messages.len() + usize::from(self.next.is_some())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn taken(receiver: &mut Receiver<u32, char>, limit: usize) -> String {
        let mut text = String::new();
        receiver.take(limit, |delivery| match delivery {
            Delivery::Packet(number) => text += &number.to_string(),
            Delivery::Control(message) => text.push(message),
        });
        text
    }

    #[test]
    fn messages_take_effect_between_the_packets_they_were_sent_between() {
        let (mut sender, mut receiver) = link(8, 8);
        sender.send_control('a');
        sender.push_all(&mut [1, 2].into_iter());
        sender.send_control('b');
        sender.send_control('c');
        sender.push_all(&mut [3].into_iter());
        assert_eq!(receiver.waiting(), 6);
        assert_eq!(taken(&mut receiver, 8), "a12bc3");
        assert_eq!(receiver.waiting(), 0);
    }

    #[test]
    fn a_message_waits_for_packets_beyond_the_limit() {
        let (mut sender, mut receiver) = link(8, 8);
        sender.push_all(&mut [1, 2, 3].into_iter());
        sender.send_control('a');
        assert_eq!(taken(&mut receiver, 2), "12");
        assert_eq!(receiver.waiting(), 2);
        assert_eq!(taken(&mut receiver, 2), "3a");
        assert_eq!(taken(&mut receiver, 2), "");
    }

    #[test]
    fn a_full_ring_of_packets_refuses_no_message() {
        let (mut sender, mut receiver) = link(2, 2);
        assert_eq!(sender.push_all(&mut [1, 2, 3].into_iter()), 2);
        sender.send_control('a');
        sender.send_control('b');
        assert_eq!(taken(&mut receiver, 8), "12ab");
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// However the two sides run, a message is opened behind the packets sent before it, and before
    /// those sent after it when those are there to be seen. Fails when a message's position is not
    /// looked at, and when an ordering of the ring is weakened.
    #[test]
    fn a_message_overtakes_no_packet() {
        loom::model(|| {
            let (mut sender, mut receiver) = link(2, 1);
            let writer = thread::spawn(move || {
                sender.push_all(&mut [Box::new(1)].into_iter());
                sender.send_control(Box::new('a'));
                sender.push_all(&mut [Box::new(2)].into_iter());
                sender
            });
            let mut seen = Vec::new();
            while seen.len() < 3 {
                receiver.take(2, |delivery| {
                    seen.push(match delivery {
                        Delivery::Packet(number) => char::from_digit(*number, 10).expect("a digit"),
                        Delivery::Control(message) => *message,
                    });
                });
                if seen.len() < 3 {
                    thread::yield_now();
                }
            }
            let seen: String = seen.into_iter().collect();
            assert_eq!(seen, "1a2");
            drop(writer.join().unwrap());
        });
    }
}
