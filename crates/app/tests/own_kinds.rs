//! A program with own policies and an own kind of device: this test calls itself as such a program, which has the words of a
//! command behind its name.

use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use rheostat_app::App;
use rheostat_base::Time;
use rheostat_io::{Arrival, NullSink, Opening, Pacing, SimConfig, SimNic, Sink, Source};
use rheostat_run::poll::{Busy, Next, PollOutcome, PollPolicy};
use rheostat_steer::policy::{LoadSnapshot, Plan, Policy, Rsspp, Settings};
use rheostat_traffic::{Mix, MixConfig};
use serde_json::Value;

/// RSS++ under another name.
struct Mine(Rsspp);

impl Policy for Mine {
    fn name(&self) -> &'static str {
        "mine"
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        self.0.plan(now, load)
    }

    fn period(&self) -> Duration {
        self.0.period()
    }
}

/// Polls on.
struct Lazy(Busy);

impl PollPolicy for Lazy {
    fn next(&mut self, outcome: PollOutcome, now: Time) -> Next {
        self.0.next(outcome, now)
    }
}

/// Frames that lie in memory.
struct Frames(std::vec::IntoIter<(Vec<u8>, Arrival)>);

impl Source for Frames {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (bytes, arrival) = self.0.next()?;
        frame.clone_from(&bytes);
        Some(arrival)
    }
}

/// So many packets, half of them IPv6.
fn frames(packets: u64) -> Frames {
    let config = MixConfig { packets: Some(packets), ipv6_share: 0.5, ..MixConfig::default() };
    let (mut mix, mut frame) = (Mix::new(config).unwrap(), Vec::new());
    let next = || mix.next(&mut frame).map(|arrival| (frame.clone(), arrival));
    Frames(std::iter::from_fn(next).collect::<Vec<_>>().into_iter())
}

/// The program.
fn app() -> App {
    App::new()
        .policy("mine", |settings: &Settings| {
            Mine(Rsspp { scaling: settings.scaling, ..Rsspp::default() })
        })
        .polling("lazy", |lanes| Lazy(Busy::new(lanes)))
        .device(
            "memory",
            |packets: &str, opening: &Opening<'_>| -> Result<_, Box<dyn Error + Send + Sync>> {
                let nic = SimConfig { pacing: Pacing::Lossless, ..opening.nic() };
                let source = Box::new(frames(packets.parse()?));
                let sink = |_| -> Box<dyn Sink> { Box::new(NullSink) };
                Ok(SimNic::open(nic, source, sink, opening.pool)?)
            },
        )
}

const CONFIG: &str = r#"
[chain]
functions = []
[workers]
lanes = 2
[balance]
policy = "mine"
[polling]
policy = "lazy"
[[device]]
name = "link"
kind = "memory"
argument = "500"
inside = ["10.0.0.0/8", "fd00::/8"]
"#;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|word| ["run", "check"].contains(&word.as_str())) {
        return app().main();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let call = |command: &str, config: &str, words: &[&str]| -> Output {
        let path = folder.path().join("own.toml");
        fs::write(&path, config).expect("a file");
        let program = std::env::current_exe().expect("this program");
        let called = Command::new(program).arg(command).arg(&path).args(words).output();
        called.expect("the program runs")
    };
    let refused = |output: Output| {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let summary = |words: &[&str]| -> Value {
        let output = call("run", CONFIG, words);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("a summary")
    };

    let whole = summary(&["--json"]);
    assert_eq!(whole["polling"]["policy"], "lazy");
    assert_eq!((&whole["received"], &whole["sent"]), (&500.into(), &500.into()), "{whole}");
    let fewer = summary(&["--json", "--device", "link=memory:70", "--polling", "busy"]);
    assert_eq!((&fewer["sent"], &fewer["polling"]["policy"]), (&70.into(), &"busy".into()));

    let checked = call("check", CONFIG, &["--offline"]);
    let words = String::from_utf8_lossy(&checked.stdout).into_owned();
    for part in ["memory with `500`", "polling lazy", "balance   mine, on"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let help = call("run", CONFIG, &["--help"]);
    let words =
        String::from_utf8_lossy(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "auto (whichever fits the load), mine",
        "to compare with), lazy",
        "32768 packets). Kinds: pcap (a capture), sim (",
        "for services in development), memory",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }

    let many = refused(call("run", CONFIG, &["--device", "link=memory:many"]));
    assert!(many.contains("device `link`: invalid digit"), "{many}");
    let unknown = refused(call("run", CONFIG, &["--device", "link=memry:70"]));
    assert!(
        unknown.contains("did you mean `memory`?") && unknown.contains("host, memory"),
        "{unknown}"
    );
    let shared = CONFIG.replace("lanes = 2", "lanes = 2\nqueue_sharing = 2");
    let shared = refused(call("run", &shared, &["--policy", "rss"]));
    assert!(shared.contains("its kind gives each lane a queue of its own"), "{shared}");
    ExitCode::SUCCESS
}
