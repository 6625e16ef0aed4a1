//! One direction between two lanes: a bounded ring of packets and, beside it, a ring of parcels, which
//! take effect between two packets.
//!
//! A parcel carries the number of packets sent before it, and the receiver does not open it before it has
//! taken as many. So a parcel cannot overtake packets, nor can a full ring of packets refuse it; and a
//! packet costs what it costs without parcels. A parcel may take effect later than its position: whoever
//! sends parcels must not depend on the contrary.

use rheostat_base::sync::spsc::{self, Consumer, Producer};

/// What a receiver takes.
#[derive(Debug)]
pub(crate) enum Delivery<T, P> {
    /// A packet.
    Packet(T),
    /// A parcel, behind the packets that were sent before it.
    Parcel(P),
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender<T, P> {
    packets: Producer<T>,
    /// Packets sent so far.
    sent: u64,
    parcels: Producer<Positioned<P>>,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver<T, P> {
    packets: Consumer<T>,
    /// Packets taken so far.
    taken: u64,
    parcels: Consumer<Positioned<P>>,
    /// A parcel whose position has not been reached.
    next: Option<Positioned<P>>,
}

/// A parcel and its position.
#[derive(Debug)]
struct Positioned<P> {
    /// Packets sent before it.
    after: u64,
    parcel: P,
}

/// Bytes of a parcel in its ring.
pub(super) const fn parcel_bytes<P>() -> usize {
    size_of::<Positioned<P>>()
}

/// Connects two lanes by a ring for at least `packets` packets and one for at least `parcels` parcels.
pub(crate) fn link<T, P>(packets: usize, parcels: usize) -> (Sender<T, P>, Receiver<T, P>) {
    let (packets_in, packets_out) = spsc::ring(packets);
    let (parcels_in, parcels_out) = spsc::ring(parcels);
    (
        Sender { packets: packets_in, sent: 0, parcels: parcels_in },
        Receiver { packets: packets_out, taken: 0, parcels: parcels_out, next: None },
    )
}

impl<T, P> Sender<T, P> {
    /// Sends packets from `packets` until it ends or the ring is full. Returns how many went in.
    pub(crate) fn push_all(&mut self, packets: &mut impl Iterator<Item = T>) -> usize {
        let sent = self.packets.push_all(packets);
        self.sent += sent as u64;
        sent
    }

    /// Sends a parcel behind all packets sent so far.
    ///
    /// # Panics
    /// When more parcels are under way than the link was made for.
    pub(crate) fn post(&mut self, parcel: P) {
        let parcel = Positioned { after: self.sent, parcel };
        assert!(
            self.parcels.push(parcel).is_ok(),
            "fewer parcels are under way than there is room for"
        );
    }
}

impl<T, P> Receiver<T, P> {
    /// Takes up to `limit` packets, and the parcels between them, in the order they were sent.
    #[inline]
    pub(crate) fn take(&mut self, limit: usize, mut f: impl FnMut(Delivery<T, P>)) {
        let mut left = self.packets.len().min(limit);
        loop {
            self.next = self.next.take().or_else(|| self.parcels.pop());
            let run = match self.next.take_if(|next| next.after <= self.taken) {
                Some(due) => {
                    f(Delivery::Parcel(due.parcel));
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

    /// Packets and parcels that wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.packets.len() + self.parcels.len() + usize::from(self.next.is_some())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn taken(receiver: &mut Receiver<u32, char>, limit: usize) -> String {
        let mut text = String::new();
        receiver.take(limit, |delivery| match delivery {
            Delivery::Packet(number) => text += &number.to_string(),
            Delivery::Parcel(letter) => text.push(letter),
        });
        text
    }

    #[test]
    fn parcels_take_effect_between_the_packets_they_were_sent_between() {
        let (mut sender, mut receiver) = link(8, 8);
        sender.post('a');
        sender.push_all(&mut [1, 2].into_iter());
        sender.post('b');
        sender.post('c');
        sender.push_all(&mut [3].into_iter());
        assert_eq!(receiver.waiting(), 6);
        assert_eq!(taken(&mut receiver, 8), "a12bc3");
        assert_eq!(receiver.waiting(), 0);
    }

    #[test]
    fn a_parcel_waits_for_packets_beyond_the_limit() {
        let (mut sender, mut receiver) = link(8, 8);
        sender.push_all(&mut [1, 2, 3].into_iter());
        sender.post('a');
        assert_eq!(taken(&mut receiver, 2), "12");
        assert_eq!(receiver.waiting(), 2);
        assert_eq!(taken(&mut receiver, 2), "3a");
        assert_eq!(taken(&mut receiver, 2), "");
    }

    #[test]
    fn a_full_ring_of_packets_refuses_no_parcel() {
        let (mut sender, mut receiver) = link(2, 2);
        assert_eq!(sender.push_all(&mut [1, 2, 3].into_iter()), 2);
        sender.post('a');
        sender.post('b');
        assert_eq!(taken(&mut receiver, 8), "12ab");
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// However the two sides run, a parcel is opened behind the packets sent before it, and before
    /// those sent after it when those are there to be seen. Fails when a parcel's position is not
    /// looked at, and when an ordering of the ring is weakened.
    #[test]
    fn a_parcel_overtakes_no_packet() {
        loom::model(|| {
            let (mut sender, mut receiver) = link(2, 1);
            let writer = thread::spawn(move || {
                sender.push_all(&mut [Box::new(1)].into_iter());
                sender.post(Box::new('a'));
                sender.push_all(&mut [Box::new(2)].into_iter());
                sender
            });
            let mut seen = Vec::new();
            while seen.len() < 3 {
                receiver.take(2, |delivery| {
                    seen.push(match delivery {
                        Delivery::Packet(number) => char::from_digit(*number, 10).expect("a digit"),
                        Delivery::Parcel(letter) => *letter,
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
