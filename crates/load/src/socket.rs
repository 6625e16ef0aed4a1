//! Sockets of the client.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

/// Begins to connect, from `port` if one is given. The connection is there when the socket is writable and [`finish`] says so.
pub(crate) fn begin(server: SocketAddr, port: Option<u16>) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(port) = port {
        // What is left of an earlier connection to another server is no obstacle.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        bind(&socket, &SocketAddr::new(any, port))?;
    }
    match connect(&socket, &server) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What came of connecting.
pub(crate) fn finish(stream: &TcpStream) -> io::Result<()> {
    match stream.take_error()? {
        Some(error) => Err(error),
        // A socket may be writable for another reason: then there is no peer yet.
        None => stream.peer_addr().map(drop),
    }
}

/// Connects, and waits for it.
pub(crate) fn open(
    server: SocketAddr,
    port: Option<u16>,
    timeout: Duration,
) -> io::Result<TcpStream> {
    let stream = begin(server, port)?;
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    loop {
        match poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    finish(&stream)?;
    Ok(stream)
}

/// The address from which this machine reaches a server. Nothing is sent.
pub(crate) fn local_address(server: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(server)?;
    Ok(socket.local_addr()?.ip())
}
