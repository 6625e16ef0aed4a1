//! A server that does one thing with each connection.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheostat_load::{
    ArrivalProcess, ClassMix, LoadError, LoadPlan, Protocol, RunPlan, RunResult, Session, Spread,
};

/// Listens at a port of the loopback, and does `serve` with each connection on a thread of its own, for as long as the process
/// lives. The connection's number comes with it.
pub(crate) fn start(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (stream, serve) = (stream.unwrap(), serve.clone());
            std::thread::spawn(move || serve(stream, number));
        }
    });
    address
}

/// Connections that are kept open and never served.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<TcpStream>>>);

impl Kept {
    pub(crate) fn keep(&self, stream: TcpStream) {
        self.0.lock().unwrap().push(stream);
    }
}

pub(crate) fn plan(server: SocketAddr, protocol: &str, connections: usize) -> LoadPlan {
    let protocol = Protocol::new(protocol, 128, &ClassMix::default(), server).unwrap();
    LoadPlan {
        server,
        connections,
        outstanding: protocol.usual_outstanding(),
        protocol,
        spread: Spread::Random,
        hash: None,
        spins: false,
        seed: 1,
    }
}

pub(crate) fn run_plan(rate: f64, duration: Duration) -> RunPlan {
    RunPlan {
        process: ArrivalProcess::Exponential,
        rate,
        mix: ClassMix::default(),
        duration,
        warm_up: Duration::ZERO,
        wait: Duration::from_secs(20),
        seed: 1,
    }
}

/// One run over a few connections.
pub(crate) fn measure(plan: LoadPlan, run: &RunPlan) -> Result<RunResult, LoadError> {
    Ok(Session::open(plan)?.run(run, &AtomicBool::new(false)))
}
