//! The kernel's TCP: a thread that sends back what arrives, with as few system calls as that takes.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rheostat_base::CoreId;
use rheostat_kernel::core_set::pin_current_thread;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::live::LiveError;

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
/// Events taken at once.
const EVENTS: usize = 256;

/// A running server, which ends when dropped.
pub(super) struct EpollServer {
    thread: u32,
    stop: UnixStream,
    running: Option<JoinHandle<io::Result<()>>>,
}

impl EpollServer {
    /// Serves whatever connects.
    pub(super) fn start(listener: TcpListener, core: CoreId) -> Result<EpollServer, LiveError> {
        let begin = || -> io::Result<EpollServer> {
            let (stop, stopped) = UnixStream::pair()?;
            let (tell, told) = mpsc::channel();
            let running = thread::Builder::new().name("epoll".into()).spawn(move || {
                // Where that is refused, the figures are only less steady.
                let _ = pin_current_thread(core);
                let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
                serve(&listener, &stopped)
            })?;
            let thread = told.recv().map_err(io::Error::other)?;
            Ok(EpollServer { thread, stop, running: Some(running) })
        };
        begin().map_err(|error| LiveError::Socket { task: "serve", error })
    }

    /// The thread that serves.
    pub(super) fn thread(&self) -> u32 {
        self.thread
    }

    /// Ends it.
    pub(super) fn stop(mut self) -> Result<(), LiveError> {
        self.end().map_err(|error| LiveError::Socket { task: "serve", error })
    }

    fn end(&mut self) -> io::Result<()> {
        // A server that has ended by itself does not read; its own error is returned below.
        let _ = self.stop.write_all(&[0]);
        self.running.take().map_or(Ok(()), |running| running.join().expect("it returns errors"))
    }
}

impl Drop for EpollServer {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn serve(listener: &TcpListener, stopped: &UnixStream) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&epoll, stopped, EventData::new_u64(STOP), EventFlags::IN)?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(EVENTS);
    let mut bytes = [0; 4_096];
    loop {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Err(rustix::io::Errno::INTR) => continue,
            outcome => outcome?,
        };
        for event in &events {
            match event.data.u64() {
                STOP => return Ok(()),
                LISTENER => {
                    let (connection, _) = listener.accept()?;
                    connection.set_nodelay(true)?;
                    let data = EventData::new_u64(connections.len() as u64);
                    epoll::add(&epoll, &connection, data, EventFlags::IN)?;
                    connections.push(Some(connection));
                }
                number => {
                    let place = &mut connections[number as usize];
                    let Some(connection) = place else { continue };
                    // Closing removes it from the interest list.
                    if !echo(connection, &mut bytes) {
                        *place = None;
                    }
                }
            }
        }
    }
}

/// Sends back what there is; whether the connection goes on.
fn echo(connection: &mut TcpStream, bytes: &mut [u8]) -> bool {
    match connection.read(bytes) {
        Ok(0) | Err(_) => false,
        Ok(count) => connection.write_all(&bytes[..count]).is_ok(),
    }
}
