//! Urgent data (RFC 9293, 3.8.5; RFC 6093). It is part of the stream; new protocols do without it (RFC 6093, 6).

use rheostat_base::Time;

use super::{Connection, WriteError};

impl Connection {
    /// Writes as [`Connection::write`] does, and tells the peer that what has been written so far is urgent.
    ///
    /// # Errors
    /// [`WriteError`] when nothing can be written.
    pub fn write_urgent(&mut self, data: &[u8], now: Time) -> Result<usize, WriteError> {
        let taken = self.write(data, now)?;
        let end = self.sender.written_end();
        self.sender.urgent().set(end);
        Ok(taken)
    }

    /// How many of the next bytes to read the peer has called urgent, those that have not arrived included.
    pub fn urgent(&self) -> Option<u32> {
        self.receiver.urgent()
    }
}
