//! A service that sends back what it gets, written against connections. As root:
//!
//!     cargo run --release --example echo -- rheo0
//!     ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up && nc 10.0.0.1 7
//!
//! serves on a tap interface. Without arguments, a client of this process talks to it.
//!
//! Timed: threads, clock.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rheostat::tcp::{ConnectionId, Handler, LaneId, Server, SocketEvent, Sockets, with_client};

struct Echo;

impl Handler for Echo {
    type Data = ();
    type Worker = ();

    fn worker(&self, _: LaneId) {}

    fn accept(&self, (): &mut (), _local: SocketAddr, _peer: SocketAddr) {}

    fn handle(
        &self,
        (): &mut (),
        id: ConnectionId,
        event: SocketEvent,
        sockets: &mut Sockets<'_, ()>,
    ) {
        // As much as there is room for; the rest when there is more. What is unread closes the peer's window.
        for piece in sockets.peek(id).map(<[u8]>::to_vec) {
            let written = sockets.write(id, &piece).unwrap_or(0);
            sockets.skip(id, written);
        }
        if sockets.is_at_end(id) || event == SocketEvent::Draining {
            sockets.finish(id);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::with_handler(Echo).listen(7).lanes(2);
    let Some(interface) = std::env::args().nth(1) else {
        println!("{}", String::from_utf8(echoed(server, b"hello, world")?)?);
        return Ok(());
    };
    let running = server.tap(&interface).address("10.0.0.1/24".parse()?).start()?;
    println!("listening 10.0.0.1:7; Enter ends it");
    std::io::stdin().read_line(&mut String::new())?;
    running.finish(Duration::from_secs(5))?;
    Ok(())
}

/// What comes back from the service: the client writes while it reads, as neither end keeps everything.
fn echoed(server: Server, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (running, client) = with_client(server, &[])?;
    let (stream, mut back) = (client.connect(7)?, Vec::new());
    std::thread::scope(|scope| {
        let writer = scope
            .spawn(|| (&stream).write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write)));
        (&stream).read_to_end(&mut back)?;
        writer.join().expect("no panic")
    })?;
    let reports = [client.finish(Duration::from_secs(5))?, running.finish(Duration::from_secs(5))?];
    assert!(reports.iter().all(|report| report.violations.is_empty()));
    Ok(back)
}

#[test]
fn a_megabyte_comes_back_as_it_was() {
    let bytes: Vec<u8> = (0..1_u32 << 20).map(|place| (place * 7 / 3) as u8).collect();
    assert!(echoed(Server::with_handler(Echo).listen(7).lanes(2), &bytes).unwrap() == bytes);
}
