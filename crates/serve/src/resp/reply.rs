//! Replies, which are written in pieces.

use std::collections::VecDeque;
use std::io::Write;

use super::clients::Protocol;
use super::value::{SharedValue, StoredValue};
use crate::application::ReplyBuffer;

/// A reply: text, and stored values between its bytes. What was written of it is passed over, and values that were written are let go
/// of.
#[derive(Debug, Default)]
pub struct RespReply {
    text: Vec<u8>,
    /// Bytes of the text that were written.
    written: usize,
    /// Values that were not written, with the place in the text where each belongs.
    values: VecDeque<(usize, SharedValue)>,
    /// Bytes of the first value that were written.
    of_value: usize,
    /// How it is written.
    pub(super) protocol: Protocol,
    /// Whether the connection ends behind the reply.
    pub(super) ends: bool,
}

impl RespReply {
    /// A line of text, for the status that it begins with.
    pub(super) fn line(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.text.extend_from_slice(b"\r\n");
    }

    pub(super) fn integer(&mut self, number: i64) {
        let _ = write!(self.text, ":{number}\r\n");
    }

    /// A string, or that there is none.
    pub(super) fn bulk(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else { return self.null("$-1") };
        let _ = write!(self.text, "${}\r\n", bytes.len());
        self.text.extend_from_slice(bytes);
        self.text.extend_from_slice(b"\r\n");
    }

    /// Two strings: a key of a map, and its value.
    pub(super) fn pair(&mut self, key: &str, value: &str) {
        self.bulk(Some(key.as_bytes()));
        self.bulk(Some(value.as_bytes()));
    }

    /// Text for people, such as that of `INFO`.
    pub(super) fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(Some(text.as_bytes())),
            Protocol::Resp3 => {
                let _ = write!(self.text, "={}\r\ntxt:{text}\r\n", text.len() + 4);
            }
        }
    }

    /// Begins an array of so many values.
    pub(super) fn array(&mut self, len: usize) {
        let _ = write!(self.text, "*{len}\r\n");
    }

    /// There is no array.
    pub(super) fn no_array(&mut self) {
        self.null("*-1");
    }

    /// Begins a set of so many values.
    pub(super) fn set(&mut self, len: usize) {
        self.aggregate('~', len, 1);
    }

    /// Begins a map of so many keys and values in turn.
    pub(super) fn map(&mut self, len: usize) {
        self.aggregate('%', len, 2);
    }

    /// Begins what is an array in RESP2, with so many values for each entry.
    fn aggregate(&mut self, sign: char, len: usize, values: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len * values),
            Protocol::Resp3 => {
                let _ = write!(self.text, "{sign}{len}\r\n");
            }
        }
    }

    fn null(&mut self, resp2: &str) {
        self.line(if self.protocol == Protocol::Resp3 { "_" } else { resp2 });
    }

    /// A stored value, or that there is none. A long one is not copied.
    pub(super) fn value(&mut self, value: Option<&StoredValue>) {
        match value {
            Some(StoredValue::Shared(value)) => {
                let _ = write!(self.text, "${}\r\n", value.len());
                self.values.push_back((self.text.len(), value.clone()));
                self.text.extend_from_slice(b"\r\n");
            }
            value => self.bulk(value.map(|value| &**value)),
        }
    }

    /// Takes everything back.
    pub(super) fn clear(&mut self) {
        *self = RespReply { protocol: self.protocol, ..RespReply::default() };
    }

    /// Writes as much as there is room for; returns whether that was all that was left.
    pub(super) fn write(&mut self, out: &mut ReplyBuffer<'_>) -> bool {
        loop {
            let end = self.values.front().map_or(self.text.len(), |(place, _)| *place);
            self.written += out.put_piece(&self.text[self.written..end]);
            if self.written < end {
                return false;
            }
            let Some((_, value)) = self.values.front() else { return true };
            self.of_value += out.put_piece(&value[self.of_value..]);
            if self.of_value < value.len() {
                return false;
            }
            self.values.pop_front();
            self.of_value = 0;
        }
    }

    /// Bytes of memory that the reply takes. Values count for the store.
    pub(super) fn memory(&self) -> usize {
        self.text.capacity() + self.values.capacity() * size_of::<(usize, SharedValue)>()
    }
}

impl From<String> for RespReply {
    fn from(text: String) -> RespReply {
        RespReply { text: text.into_bytes(), ..RespReply::default() }
    }
}
