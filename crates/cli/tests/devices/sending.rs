//! How many system calls a service needs to send its replies.
//!
//! Timed: sleep, processes, devices, sockets.

use std::fs;
use std::process::{Command, Stdio};

use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::veth::Host;
use serde_json::Value;

use super::RHEO;

/// Connections of the client, each of which has a request under way.
const CONNECTIONS: u64 = 64;
const ROUNDS: u64 = 100;

/// Has all requests of a round arrive while the service is stopped, so that they wait for it together however fast it is.
const CLIENT: &str = r#"
import glob, os, signal, socket, time
def is_stopped():
    states = [open(task).read().rpartition(")")[2].split()[0] for task in glob.glob(f"/proc/{PID}/task/*/stat")]
    return all(state == "T" for state in states)
addresses = ["10.78.1.1", "fd78::1"]
links = [socket.create_connection((addresses[number % 2], 7), timeout=60) for number in range(CONNECTIONS)]
for link in links:
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
request = b"x" * 128
for _ in range(ROUNDS):
    os.kill(PID, signal.SIGSTOP)
    while not is_stopped():
        time.sleep(0.0005)
    for link in links:
        link.sendall(request)
    os.kill(PID, signal.SIGCONT)
    for link in links:
        reply = b""
        while len(reply) < len(request):
            piece = link.recv(len(request) - len(reply))
            assert piece
            reply += piece
        assert reply == request
"#;

#[test]
fn replies_to_64_requests_under_way_share_system_calls() {
    isolated(module_path!(), "replies_to_64_requests_under_way_share_system_calls", || {
        let host = Host::new("snd", &["10.78.1.2/24", "fd78::2/64"], &[], "");
        shell(&format!("ethtool -K {} tx off tso off gso off gro off", host.link));
        shell("ip netns exec rbpfsnd ethtool -K eth tx off tso off gso off gro off");
        for scheduler in ["inline-dfcfs", "inline-cfcfs", "inline-ws"] {
            let summary = serve_rounds(&host, scheduler);
            let calls = summary["send_calls"].as_u64().unwrap();
            let sent = summary["packets_sent"].as_u64().unwrap();
            assert!(sent >= CONNECTIONS * ROUNDS, "{summary}");
            println!("{scheduler}: {calls} system calls for {sent} packets");
            // Replies wait at most 20 us for others. A build without optimizations makes two or three in that time, others ten. With a
            // system call for each reply there are as many as requests.
            assert!(
                calls * 4 <= 3 * CONNECTIONS * ROUNDS,
                "{calls} system calls under {scheduler}: {summary}"
            );
        }
    });
}

/// The summary of a service with two lanes, after all rounds.
fn serve_rounds(host: &Host, scheduler: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut service = Command::new(RHEO)
        .args(["serve", "echo", "--device", &format!("lan=af_xdp:{}", host.link)])
        .args(["--address", "10.78.1.1/24", "--address", "fd78::1/64", "--port", "7", "--json"])
        .args(["--polling", "interrupt", "--lanes", "2", "--scheduler", scheduler])
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    let output = || fs::read_to_string(&out).unwrap();
    while !output().contains("listening") {
        assert!(service.try_wait().unwrap().is_none(), "{}", output());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let known = format!("PID, CONNECTIONS, ROUNDS = {}, {CONNECTIONS}, {ROUNDS}", service.id());
    let served = host.python(&format!("{known}\n{CLIENT}")).wait().unwrap().success();
    shell(&format!("kill -CONT {0}; kill -TERM {0}", service.id()));
    assert!(service.wait().unwrap().success() && served, "{}", output());
    serde_json::from_str(output().lines().last().unwrap()).unwrap()
}
