//! Requests and replies as bytes.
//!
//! Both have a head of 40 bytes, big-endian, and zeros behind it up to their length. A reply is as long as its request.
//!
//! ```text
//! request   0 "RWRQ"   4 length u32   8 number u64   16 draw u64     24 time u64   32 class u8   33 zeros
//! reply     0 "RWRP"   4 length u32   8 number u64   16 target u64   24 took u64   32 class u8   33 zeros
//! ```
//!
//! *number* comes back as it was sent. *draw* is a uniform random number, of which the server makes class and service time by its
//! distribution: the client has the seed, the server the distribution, and the reply says what came of it. With a *time* of its own
//! (nanoseconds, not 0), a request takes that long and has the *class* it names. *target* is what the request should have taken,
//! *took* what it took, in nanoseconds.

use thiserror::Error;

use super::service_times::LONGEST;

/// Bytes of a head, and of the shortest request.
pub const HEAD: usize = 40;
/// Bytes of the longest request.
pub const LONGEST_FRAME: u32 = 64 << 10;

const REQUEST: [u8; 4] = *b"RWRQ";
const REPLY: [u8; 4] = *b"RWRP";

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// Comes back in the reply.
    pub number: u64,
    /// Bytes in all.
    pub length: u32,
    /// A uniform random number.
    pub draw: u64,
    /// Nanoseconds that it is to take; 0 where the server draws.
    pub time: u64,
    /// The class, where the time is not 0.
    pub class: u8,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkReply {
    /// That of the request.
    pub number: u64,
    /// Bytes in all.
    pub length: u32,
    /// The class of the request.
    pub class: u8,
    /// Nanoseconds that the request should have taken.
    pub target: u64,
    /// Nanoseconds that it took.
    pub took: u64,
}

/// Why bytes are no request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// They may become one, with so many.
    #[error("{0} bytes are needed")]
    Partial(usize),
    /// They cannot.
    #[error("{0}")]
    Wrong(&'static str),
}

impl WorkRequest {
    /// Writes it in pieces.
    pub fn write(&self, put: impl FnMut(&[u8])) {
        let words = [self.number, self.draw, self.time];
        write(REQUEST, self.length, words, self.class, put);
    }

    /// Reads the request at the beginning of `bytes`, if all of it is there.
    ///
    /// # Errors
    /// [`FrameError`] when it is not, or is none.
    pub fn parse(bytes: &[u8]) -> Result<WorkRequest, FrameError> {
        let (length, [number, draw, time], class) = parse(bytes, REQUEST)?;
        if time > LONGEST {
            return Err(FrameError::Wrong("a request names too long a time"));
        }
        Ok(WorkRequest { number, length, draw, time, class })
    }
}

impl WorkReply {
    /// Writes it in pieces.
    pub fn write(&self, put: impl FnMut(&[u8])) {
        let words = [self.number, self.target, self.took];
        write(REPLY, self.length, words, self.class, put);
    }

    /// Reads the reply at the beginning of `bytes`, if all of it is there.
    ///
    /// # Errors
    /// [`FrameError`] when it is not, or is none.
    pub fn parse(bytes: &[u8]) -> Result<WorkReply, FrameError> {
        let (length, [number, target, took], class) = parse(bytes, REPLY)?;
        Ok(WorkReply { number, length, class, target, took })
    }
}

fn write(magic: [u8; 4], length: u32, words: [u64; 3], class: u8, mut put: impl FnMut(&[u8])) {
    let length = length.clamp(HEAD as u32, LONGEST_FRAME);
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&magic);
    head[4..8].copy_from_slice(&length.to_be_bytes());
    for (place, word) in head[8..32].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    head[32] = class;
    put(&head);
    let zeros = [0; 256];
    let mut rest = length as usize - HEAD;
    while rest > 0 {
        let piece = rest.min(zeros.len());
        put(&zeros[..piece]);
        rest -= piece;
    }
}

fn parse(bytes: &[u8], magic: [u8; 4]) -> Result<(u32, [u64; 3], u8), FrameError> {
    let known = bytes.len().min(magic.len());
    if bytes[..known] != magic[..known] {
        return Err(FrameError::Wrong("it does not begin as a frame does"));
    }
    if known < magic.len() {
        // The next byte may show that it is no frame.
        return Err(FrameError::Partial(known + 1));
    }
    if bytes.len() < HEAD {
        return Err(FrameError::Partial(HEAD));
    }
    let word =
        |at: usize| bytes[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let length = word(0) as u32;
    if !(HEAD as u32..=LONGEST_FRAME).contains(&length) {
        return Err(FrameError::Wrong("its length is out of range"));
    }
    match bytes.len() < length as usize {
        true => Err(FrameError::Partial(length as usize)),
        false => Ok((length, [word(8), word(16), word(24)], bytes[32])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(frame: &WorkRequest) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.write(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    #[test]
    fn frames_are_read_back_and_only_when_whole() {
        for length in [40, 41, 128, 1_000, LONGEST_FRAME] {
            let request =
                WorkRequest { number: 1 << 60 | 7, length, draw: 3, time: 1_000, class: 9 };
            let bytes = bytes(&request);
            assert_eq!(bytes.len(), length as usize);
            assert_eq!(WorkRequest::parse(&bytes), Ok(request));
            for cut in [0, 3, 39, 40, length as usize - 1] {
                let cut = cut.min(length as usize - 1);
                let error = WorkRequest::parse(&bytes[..cut]);
                let needed = match cut {
                    0..4 => cut + 1,
                    4..HEAD => HEAD,
                    _ => length as usize,
                };
                assert_eq!(error, Err(FrameError::Partial(needed)), "{cut} of {length}");
            }
            assert!(matches!(WorkReply::parse(&bytes), Err(FrameError::Wrong(_))));
        }
    }

    #[test]
    fn lengths_out_of_range_are_wrong() {
        let mut bytes = bytes(&WorkRequest { number: 0, length: 128, draw: 0, time: 0, class: 0 });
        for length in [0, 39, LONGEST_FRAME + 1, u32::MAX] {
            bytes[4..8].copy_from_slice(&length.to_be_bytes());
            assert!(matches!(WorkRequest::parse(&bytes), Err(FrameError::Wrong(_))), "{length}");
        }
    }
}
