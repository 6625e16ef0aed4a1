//! Bodies of requests.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;

use super::chunked::Decoder;
use super::head::BodyLength;
use super::status::Status;
use super::upload::Upload;

/// Bytes of a body that are one request.
const PIECE: usize = 64 << 10;
/// Bytes of a second that a body brings at least, once it takes longer than [`GRACE`].
const RATE: u64 = 500;
/// How long any body may take.
const GRACE: Duration = Duration::from_secs(30);

/// A body that is still arriving.
#[derive(Debug)]
pub(super) struct Body {
    framing: Framing,
    /// Where it goes; it is skipped if it goes nowhere.
    upload: Option<Arc<Upload>>,
    received: u64,
    longest: u64,
    begun: Time,
    /// Whether the connection ends behind the reply.
    closes: bool,
}

#[derive(Debug)]
enum Framing {
    /// Bytes that are still to come.
    Length(u64),
    Chunked(Decoder),
}

/// A part of a body, as a request.
#[derive(Debug)]
pub struct BodyPiece {
    /// Where it goes; nowhere if the body is skipped.
    pub(super) upload: Option<Arc<Upload>>,
    /// The bytes; none of what is skipped.
    pub(super) bytes: Vec<u8>,
    pub(super) is_last: bool,
    /// Whether the connection ends behind the reply.
    pub(super) closes: bool,
}

impl BodyPiece {
    /// Whether it is the last one.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Its bytes; none of a body that is skipped.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body {
    /// A body of `length` that begins to arrive at `now`, of `longest` bytes at most; none if it is empty.
    pub(super) fn new(
        length: BodyLength,
        upload: Option<Arc<Upload>>,
        longest: u64,
        now: Time,
        closes: bool,
    ) -> Result<Option<Body>, Status> {
        let framing = match length {
            BodyLength::Known(0) => return Ok(None),
            BodyLength::Known(length) if length > longest => return Err(Status::TOO_LONG),
            BodyLength::Known(length) => Framing::Length(length),
            BodyLength::Chunked => Framing::Chunked(Decoder::new()),
        };
        Ok(Some(Body { framing, upload, received: 0, longest, begun: now, closes }))
    }

    /// Takes the next piece from the start of `bytes`, which are not none, and returns it with the bytes it took, at least one.
    pub(super) fn take(&mut self, bytes: &[u8], now: Time) -> Result<(BodyPiece, usize), Status> {
        let permitted = GRACE + Duration::from_secs(self.received / RATE);
        if now.since(self.begun) > permitted {
            return Err(Status::TIMEOUT);
        }
        let (mut data, mut count) = (Vec::new(), 0);
        let is_kept = self.upload.is_some();
        let mut take = |bytes: &[u8]| {
            count += bytes.len() as u64;
            if is_kept {
                data.extend_from_slice(bytes);
            }
        };
        let (len, is_last) = match &mut self.framing {
            Framing::Length(left) => {
                let len = bytes.len().min(PIECE).min(usize::try_from(*left).unwrap_or(usize::MAX));
                take(&bytes[..len]);
                *left -= len as u64;
                (len, *left == 0)
            }
            Framing::Chunked(decoder) => {
                let len = decoder.decode(bytes, PIECE, self.longest - self.received, take)?;
                (len, decoder.is_done())
            }
        };
        self.received += count;
        let (upload, closes) = (self.upload.clone(), self.closes);
        Ok((BodyPiece { upload, bytes: data, is_last, closes }, len))
    }
}
