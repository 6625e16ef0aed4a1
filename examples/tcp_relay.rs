//! A relay: each connection is joined to one to another host. As root:
//!
//!     cargo run --release --example tcp_relay -- rheo0 10.0.0.2:22
//!     ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up && ssh -p 2222 10.0.0.1
//!
//! relays on a tap interface. Without arguments, a client and a server of this process talk through it.
//!
//! Timed: threads, clock.

use std::error::Error;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use rheostat::tcp::relay::Relay;
use rheostat::tcp::{Server, with_client};

/// Where the server of the demonstration listens.
const TARGET: &str = "10.0.0.2:9";

fn relay(target: &str) -> Result<Server, Box<dyn Error>> {
    Ok(Server::with_handler(Relay::new(vec![target.parse()?])).listen(2222).lanes(2))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(interface), Some(target)) = (arguments.next(), arguments.next()) else {
        println!("{}", relayed(relay(TARGET)?, "hello through a relay")?);
        return Ok(());
    };
    let running = relay(&target)?.tap(&interface).address("10.0.0.1/24".parse()?).start()?;
    println!("listening 10.0.0.1:2222; Enter ends it");
    std::io::stdin().read_line(&mut String::new())?;
    running.finish(Duration::from_secs(5))?;
    Ok(())
}

/// What a server behind the relay replies: what it has got until the client finished, in capitals.
fn relayed(server: Server, said: &str) -> Result<String, Box<dyn Error>> {
    let (running, client) = with_client(server, &[9])?;
    let listener = client.listen(9);
    let target = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        stream.write_all(text.to_uppercase().as_bytes())
    });
    let (mut stream, mut text) = (client.connect(2222)?, String::new());
    stream.write_all(said.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_string(&mut text)?;
    target.join().expect("no panic")?;
    drop(stream);
    let reports = [client.finish(Duration::from_secs(5))?, running.finish(Duration::from_secs(5))?];
    assert!(reports.iter().all(|report| report.violations.is_empty()));
    Ok(text)
}

#[test]
fn both_directions_pass_and_end_one_by_one() {
    let said = "abc".repeat(1_000);
    assert_eq!(relayed(relay(TARGET).unwrap(), &said).unwrap(), said.to_uppercase());
}

#[test]
fn without_a_target_the_client_is_reset() {
    let nobody = relayed(relay("10.0.0.2:10").unwrap(), "hello").unwrap_err();
    assert!(nobody.to_string().contains("Reset"), "{nobody}");
}
