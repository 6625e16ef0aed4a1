//! SYN cookies: handshakes of which a listener keeps nothing (RFC 4987, 3.6).
//!
//! The number of the SYN with ACK is a hash of both ends, the peer's number and what the peer offered, in whose last three bits
//! the peer's segment size lies. The acknowledgement brings it back. What else was offered has a place only where the peer sends
//! time stamps: the last five bits of ours are the shift of its windows and whether it understands SACK, and the peer echoes them.
//!
//! ```text
//!  number   |          hash           | class ^ hash |      32 bits; 29 of them prove that the number was sent
//!  stamp    |   clock, rounded down   | SACK | shift |      the last 5 of 32 bits; a shift of 15 means none
//! ```
//!
//! The hash is SipHash-2-4 with a key of its minute. An acknowledgement may use the key of the minute at hand or of the one before,
//! so that a cookie is good for one to two minutes, and of 2^32 numbers 16 are.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use rheostat_base::Time;
use siphasher::sip::SipHasher24;

use crate::config::Config;
use crate::connection::Agreement;
use crate::half_open::HalfOpen;
use crate::initial::Initial;
use crate::options::{Options, Timestamps};
use crate::receive::Stamps;
use crate::segment::{Header, Segment};
use crate::sequence::SequenceNumber;

/// How long a key makes cookies.
const PERIOD: Duration = Duration::from_secs(60);
/// How long a cookie may be good at most.
pub const COOKIE_LIFETIME: Duration = Duration::from_secs(120);
/// How far the clock that made a stamp may be ahead, and how much earlier the stamp may be by its last bits, in milliseconds.
const AHEAD: u32 = 1_000;
/// Segment sizes that a cookie can carry: the largest that the peer takes counts. They are those of small links, of the defaults of
/// IPv4 and IPv6, of tunnels, of Ethernet with IPv6, PPPoE and IPv4, and of jumbo frames with IPv6.
const SIZES: [u16; 8] = [88, 536, 1_220, 1_360, 1_440, 1_452, 1_460, 8_940];
/// The bits of a stamp that carry what the peer offered.
const STAMP_BITS: u32 = 0b1_1111;
/// The shift of a peer that does not scale windows.
const NO_SHIFT: u8 = 15;
const SACK: u8 = 1 << 4;
/// What the hash has for a peer without time stamps.
const NO_STAMPS: u8 = u8::MAX;

/// Makes and checks cookies by a secret, which the caller draws at random and shares among all that may see either segment of a
/// handshake. It reads no clock: keys follow the time of the calls.
#[derive(Clone, Copy)]
pub struct SynCookies {
    secret: SipHasher24,
    /// Keys by the minute they are of, the even and the odd one.
    keys: [(u64, SipHasher24); 2],
}

impl SynCookies {
    /// With this secret.
    pub fn new(secret: &[u8; 16]) -> SynCookies {
        let secret = SipHasher24::new_with_key(secret);
        SynCookies { secret, keys: [0, 1].map(|period| (period, key(secret, period))) }
    }

    /// The SYN with ACK that answers a SYN from `remote`. `stamp_offset` is that of
    /// [`InitialNumbers`](crate::InitialNumbers).
    pub fn answer(
        &mut self,
        syn: &Header,
        (local, remote): (SocketAddr, SocketAddr),
        stamp_offset: u32,
        config: &Config,
        now: Time,
    ) -> Header {
        let agreement = Agreement::new(config, &syn.options);
        let (agreement, offers) = match agreement.timestamps {
            true => (agreement, offers_of(&agreement)),
            false => (Agreement { sack: false, shifts: None, ..agreement }, NO_STAMPS),
        };
        let class = class_of(agreement.mss);
        let hash = self.hash(period(now), local, remote, syn.seq, offers);
        let initial = Initial { sequence: SequenceNumber(hash ^ class), stamp_offset };
        let clock = Stamps::clock(stamp_offset, now);
        HalfOpen::of(syn, initial, agreement, now).syn_ack(config, stamp_with(clock, offers))
    }

    /// The handshake that a segment completes, if what it acknowledges is a cookie of the last minute or two: it is for the
    /// connection of [`HalfOpen::establish`]. The connection may send segments of up to the size of the cookie's class. Costs two
    /// hashes. An echo that is no stamp of that time is none of ours.
    pub fn check(
        &mut self,
        segment: &Segment<'_>,
        (local, remote): (SocketAddr, SocketAddr),
        stamp_offset: u32,
        config: &Config,
        now: Time,
    ) -> Option<HalfOpen> {
        let header = &segment.header;
        let ack = header.ack.filter(|_| !header.syn && !header.rst)?;
        let (cookie, theirs) = (ack - 1, header.seq - 1);
        let stamps = header.options.timestamps.filter(|_| config.timestamps);
        let is_foreign = |stamps: Timestamps| {
            // The lane that answered may be ahead of this one by part of a poll.
            let age =
                Stamps::clock(stamp_offset, now).wrapping_add(AHEAD).wrapping_sub(stamps.echo);
            u128::from(age) > COOKIE_LIFETIME.as_millis() + u128::from(2 * AHEAD)
        };
        if stamps.is_some_and(is_foreign) {
            return None;
        }
        let offers = stamps.map_or(NO_STAMPS, |stamps| (stamps.echo & STAMP_BITS) as u8);
        let latest = period(now);
        let size =
            [Some(latest), latest.checked_sub(1)].into_iter().flatten().find_map(|period| {
                let hash = self.hash(period, local, remote, theirs, offers);
                SIZES.get((cookie.0 ^ hash) as usize).copied()
            })?;
        let options = match stamps {
            None => Options { mss: Some(size), ..Options::default() },
            Some(Timestamps { value, .. }) => Options {
                mss: Some(size),
                window_scale: Some(offers & NO_SHIFT).filter(|shift| *shift != NO_SHIFT),
                sack_permitted: offers & SACK != 0,
                // The stamp of the SYN is not known; that of this segment is no earlier.
                timestamps: Some(Timestamps { value, echo: 0 }),
                ..Options::default()
            },
        };
        let agreement = Agreement::new(config, &options);
        let initial = Initial { sequence: cookie, stamp_offset };
        let syn = Header { seq: theirs, window: header.window, options, ..Header::default() };
        Some(HalfOpen::of(&syn, initial, agreement, now))
    }

    fn hash(
        &mut self,
        period: u64,
        local: SocketAddr,
        remote: SocketAddr,
        theirs: SequenceNumber,
        offers: u8,
    ) -> u32 {
        let (of, cached) = &mut self.keys[(period % 2) as usize];
        if *of != period {
            (*of, *cached) = (period, key(self.secret, period));
        }
        let mut hasher = *cached;
        (local, remote, theirs, offers).hash(&mut hasher);
        hasher.finish() as u32
    }
}

impl std::fmt::Debug for SynCookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SynCookies").finish_non_exhaustive()
    }
}

/// The minute that a time is in.
fn period(now: Time) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

fn key(secret: SipHasher24, period: u64) -> SipHasher24 {
    let part = |part: u8| {
        let mut hasher = secret;
        ("SYN cookies", period, part).hash(&mut hasher);
        hasher.finish()
    };
    SipHasher24::new_with_keys(part(0), part(1))
}

/// The largest size that is at most `mss`. Agreed sizes are no smaller than the first.
fn class_of(mss: u16) -> u32 {
    let smaller = SIZES.iter().skip(1).take_while(|size| **size <= mss);
    smaller.count() as u32
}

fn offers_of(agreement: &Agreement) -> u8 {
    let shift = agreement.shifts.map_or(NO_SHIFT, |(_, theirs)| theirs);
    shift | if agreement.sack { SACK } else { 0 }
}

/// The latest stamp up to `clock` that ends with these bits, so that no later stamp of the connection is earlier.
fn stamp_with(clock: u32, offers: u8) -> u32 {
    let bits = u32::from(offers) & STAMP_BITS;
    clock.wrapping_sub(clock.wrapping_sub(bits) & STAMP_BITS)
}
