//! A server in this process that echoes: what the client is measured against.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const EVENTS: usize = 256;
/// The mark of the listener among connections.
const LISTENER: u64 = u64::MAX;

/// The server, until it is dropped.
#[derive(Debug)]
pub(crate) struct Sink {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Listens at a port of the loopback.
    pub(crate) fn start() -> io::Result<Sink> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = thread::Builder::new().name("rheo-sink".into()).spawn(move || {
            // An error ends it; the client then finds its connections closed.
            let _ = serve(&listener, &seen);
        })?;
        Ok(Sink { address, over, thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Relaxed: nothing is read that was written before.
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, over: &AtomicBool) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
    let mut bytes = vec![0; 64 << 10];
    let tick = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    while !over.load(Ordering::Relaxed) {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let number = event.data.u64();
            if number == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let data = EventData::new_u64(connections.len() as u64);
                    epoll::add(&epoll, &stream, data, EventFlags::IN)?;
                    connections.push(Some(stream));
                }
                continue;
            }
            let connection = &mut connections[number as usize];
            // Replies are as long as requests, and the client reads them all: writing waits for nothing but the client.
            let mut echo = |mut stream: &TcpStream| match stream.read(&mut bytes)? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                count => stream.write_all(&bytes[..count]),
            };
            if connection.as_ref().is_some_and(|stream| echo(stream).is_err()) {
                *connection = None;
            }
        }
    }
    Ok(())
}
