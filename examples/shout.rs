//! A service over TCP of its own: lines come back in capitals. As root:
//!
//!     cargo run --release --example shout -- rheo0 60
//!     ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up && nc 10.0.0.1 7
//!
//! serves on a tap interface for a minute. Without arguments, it shows what it would say.

use std::net::SocketAddr;
use std::time::Duration;

use rheostat::tcp::{Application, Encoded, Handled, LaneId, Parsed, ReplyBuffer, Server, rehearse};

struct Shout;

impl Application for Shout {
    type Conn = ();
    type Worker = ();
    type Request = Vec<u8>;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<Vec<u8>, Vec<u8>> {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                Parsed::Request { request: bytes[..=end].to_vec(), len: end + 1, class: 0 }
            }
            None => Parsed::Need(bytes.len() + 1),
        }
    }

    fn handle(&self, (): &mut (), request: Vec<u8>) -> Handled<Vec<u8>, Vec<u8>> {
        Handled::Done(request.to_ascii_uppercase())
    }

    fn encode(&self, (): &mut (), reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        // Lines are short, and what has no room waits.
        out.put(reply);
        Encoded::Done
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(interface), Some(seconds)) = (arguments.next(), arguments.next()) else {
        let talk = rehearse(&Shout, &[b"hello, wor", b"ld\nand good", b"bye\n"]);
        print!("{}", String::from_utf8(talk.said)?);
        return Ok(());
    };
    let seconds = Duration::from_secs(seconds.parse()?);
    let server = Server::new(Shout).tap(&interface).address("10.0.0.1/24".parse()?).listen(7);
    let server = server.start()?;
    println!("listening 10.0.0.1:7");
    std::thread::sleep(seconds);
    let control = server.control();
    let report = server.finish(Duration::from_secs(1))?;
    println!("{} requests of {} connections", control.totals().requests, control.totals().accepted);
    report.violations.iter().for_each(|violation| println!("account: {violation}"));
    if report.violations.is_empty() { Ok(()) } else { Err("the account is not sound".into()) }
}
