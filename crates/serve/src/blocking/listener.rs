//! Accepts connections for threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::hub::Hub;
use super::pipe::StreamError;
use super::stream::BlockingStream;

/// Connections of a port. Several threads may accept; each connection comes to one of them.
#[derive(Clone, Debug)]
pub struct BlockingListener {
    hub: Arc<Hub>,
    port: u16,
}

impl BlockingListener {
    pub(super) fn new(hub: Arc<Hub>, port: u16) -> BlockingListener {
        BlockingListener { hub, port }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// [`StreamError::Ended`] when the service ends and none is left.
    pub fn accept(&self) -> Result<(BlockingStream, SocketAddr), StreamError> {
        self.take(None)
    }

    /// As [`BlockingListener::accept`], for `timeout` at most.
    ///
    /// # Errors
    /// As there, and [`StreamError::TimedOut`].
    pub fn accept_timeout(
        &self,
        timeout: Duration,
    ) -> Result<(BlockingStream, SocketAddr), StreamError> {
        self.take(Some(timeout))
    }

    fn take(&self, timeout: Option<Duration>) -> Result<(BlockingStream, SocketAddr), StreamError> {
        let pipe = self.hub.wait_accepted(self.port, timeout)?;
        let peer = pipe.peer();
        Ok((BlockingStream::new(self.hub.clone(), pipe), peer))
    }

    /// Accepts until the service ends.
    pub fn incoming(&self) -> impl Iterator<Item = BlockingStream> {
        std::iter::from_fn(|| self.accept().ok().map(|(stream, _)| stream))
    }
}
