//! Flags of the command line in place of what the file states.

use std::path::Path;
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_control::config::device::Pace;
use rheostat_control::config::{DeviceConfig, DeviceKind};
use rheostat_control::overrides::KindOverride;
use rheostat_control::{Config, DeviceOverride, OverrideError, Overrides, Report};
use rheostat_io::{DeviceRegistration, OpenError, Opening, SimNic};
use rheostat_run::PollingRegistration;
use rheostat_run::poll::metronome::MetronomeSettings;
use rheostat_run::poll::{Busy, Interrupt};
use rheostat_steer::Orientation;
use rheostat_steer::policy::{PolicyRegistration, Rsspp, Settings};

use crate::registry;

const ONE: &str = r#"
[[device]]
name = "wire"
kind = "sim"
rate = "1Mpps"
inside = ["10.0.0.0/8"]
[chain]
functions = []
"#;

const TWO: &str = r#"
[[device]]
name = "lan"
kind = "pcap"
side = "inside"
input = "lan.pcap"
output = "to-lan.pcap"
pace = "recorded"
[[device]]
name = "wan"
kind = "sim"
side = "outside"
rate = "1Mpps"
link = "1Gbps"
[chain]
functions = []
"#;

fn with(text: &str, overrides: &Overrides) -> Result<Config, Box<Report>> {
    Config::parse_with(text, "test.toml", overrides, &registry::all()).map(|(config, _)| config)
}

fn messages(text: &str, overrides: &Overrides) -> Vec<String> {
    let report = with(text, overrides).unwrap_err();
    let words = |f: &rheostat_control::Finding| {
        format!("{}: {}. {}", f.key(), f.message(), f.advice().unwrap_or_default())
    };
    report.findings().iter().map(words).collect()
}

fn device(text: &str) -> Overrides {
    Overrides { devices: vec![text.parse().unwrap()], ..Overrides::default() }
}

fn captures(device: &DeviceConfig) -> (Option<&Path>, Option<&Path>) {
    (device.input(), device.output())
}

#[test]
fn short_flags_make_the_one_device_captures_whatever_it_was() {
    let flags = Overrides {
        input: Some("in.pcap".into()),
        output: Some("out.pcap".into()),
        lanes: Some(8),
        duration: Some(Duration::from_secs(3)),
        ..Overrides::default()
    };
    let config = with(ONE, &flags).unwrap();
    let files = (Some(Path::new("in.pcap")), Some(Path::new("out.pcap")));
    assert_eq!(captures(&config.devices[0]), files);
    assert_eq!(config.workers.lanes, Some(8));
    assert_eq!(config.run.duration, Some(Duration::from_secs(3)));
    assert!(config.check_inputs().is_ok());
}

#[test]
fn a_capture_without_input_is_fine_to_check_but_not_to_run() {
    let flags = Overrides { output: Some("out.pcap".into()), ..Overrides::default() };
    let missing = with(ONE, &flags).unwrap().check_inputs().unwrap_err();
    assert_eq!(
        missing.to_string(),
        "device `wire` reads a capture, but no file is given: set `input` in its `[[device]]` \
         table, or pass --device wire=pcap:FILE, or --input FILE"
    );
}

#[test]
fn device_flags_keep_what_they_do_not_say() {
    let config = with(TWO, &device("lan=pcap:C:in=1.pcap")).unwrap();
    let DeviceKind::Pcap(pcap) = &config.devices[0].kind else { panic!("still captures") };
    assert_eq!(pcap.input.as_deref(), Some(Path::new("C:in=1.pcap")));
    assert_eq!(pcap.output.as_deref(), Some(Path::new("to-lan.pcap")));
    assert_eq!(pcap.pace, Pace::Times(1.0));

    let config = with(TWO, &device("wan=sim:2Mpps")).unwrap();
    let DeviceKind::Sim(sim) = &config.devices[1].kind else { panic!("still simulated") };
    assert_eq!((sim.rate, sim.link), (Some(2_000_000), 1_000_000_000));

    let config = with(TWO, &device("lan=sim:5kpps")).unwrap();
    assert!(matches!(&config.devices[0].kind, DeviceKind::Sim(sim) if sim.rate == Some(5_000)));
}

#[test]
fn any_device_becomes_an_interface() {
    let config = with(TWO, &device("lan=af_xdp:veth1")).unwrap();
    let DeviceKind::Live(live) = &config.devices[0].kind else { panic!("live") };
    assert_eq!((live.word(), live.interface.as_deref()), ("af_xdp", Some("veth1")));

    let text = TWO.replace(
        "kind = \"sim\"\nside = \"outside\"\nrate = \"1Mpps\"\nlink = \"1Gbps\"",
        "kind = \"af_packet\"\nside = \"outside\"\nring = 512",
    );
    let config = with(&text, &device("wan=af_packet:eth1")).unwrap();
    let DeviceKind::Live(live) = &config.devices[1].kind else { panic!("live") };
    assert_eq!((live.ring, live.interface.as_deref()), (512, Some("eth1")));
    let other = with(&text, &device("wan=tap:rheo0")).unwrap();
    let DeviceKind::Live(live) = &other.devices[1].kind else { panic!("live") };
    assert_eq!((live.word(), live.ring), ("tap", 2_048));
    let missing = with(&text, &device("lan=sim:1kpps")).unwrap().check_inputs().unwrap_err();
    assert_eq!(
        missing.to_string(),
        "device `wan` is an interface, but none is given: set `interface` in its `[[device]]` \
         table, or pass --device wan=af_packet:INTERFACE"
    );
}

#[test]
fn a_router_is_tried_on_one_capture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let flags = Overrides { input: Some("in.pcap".into()), ..Overrides::default() };
    let (config, _) = Config::load(&folder.join("router.toml"), &flags, &registry::all()).unwrap();
    let [link] = &config.devices[..] else { panic!("{:?}", config.devices) };
    assert_eq!((link.name.as_str(), link.addresses.len()), ("link", 4));
    let Orientation::ByPrefix(inside) = &link.orientation else { panic!("both sides") };
    assert!(inside.contains("192.168.77.9".parse().unwrap()));
    assert!(!inside.contains("203.0.113.9".parse().unwrap()));
    assert!(config.network.routes.iter().all(|route| route.device == DeviceId(0)));
    assert_eq!(config.network.routes.len(), 3);
}

#[test]
fn flags_that_do_not_fit_are_named() {
    let flags = Overrides {
        input: Some("in.pcap".into()),
        output: Some("out.pcap".into()),
        lanes: Some(65),
        duration: Some(Duration::ZERO),
        ..device("lam=pcap:in.pcap")
    };
    let said = messages(TWO, &flags);
    assert_eq!(said.len(), 5, "{said:#?}");
    let expected = [
        "--device: --device names `lam`, which is no device of this file. \
         did you mean `lan`? the devices are `lan`, `wan`",
        "--input: --input needs a configuration with one device. ",
        "--output: --output needs a configuration with one device. ",
        "--lanes: --lanes 65 is out of range. write a number between 1 and 64",
        "--duration: --duration 0 leaves no time to run. write, for example, --duration 10s",
    ];
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said} does not start with {expected}");
    }
}

#[test]
fn what_flags_bring_in_is_checked_against_the_file() {
    let flags = Overrides {
        input: Some("same.pcap".into()),
        output: Some("./same.pcap".into()),
        ..Overrides::default()
    };
    let said = messages(ONE, &flags);
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said[0].starts_with("--output: `./same.pcap` would be read and overwritten"));

    let said = messages(TWO, &device("wan=pcap:to-lan.pcap"));
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said[0].contains("`to-lan.pcap` would be read and overwritten"));
}

#[test]
fn device_flags_read_and_say_what_is_wrong() {
    let parsed: DeviceOverride = "lan=sim:2.5Mpps".parse().unwrap();
    assert_eq!(parsed, DeviceOverride { name: "lan".into(), kind: KindOverride::Sim(2_500_000) });
    let error = |text: &str| text.parse::<DeviceOverride>().unwrap_err();
    for text in ["", "lan", "lan=", "lan=pcap", "lan=pcap:", "=pcap:x"] {
        assert_eq!(error(text), OverrideError::Form(text.to_owned()));
    }
    assert_eq!(error("lan=dpdk:0000:00:05.0"), OverrideError::Planned("dpdk".into()));
    assert!(matches!(error("lan=af_xdp:no such/name"), OverrideError::Interface { .. }));
    assert_eq!(
        error("lan=pcpa:x").to_string(),
        "`pcpa` is not a kind of device (did you mean `pcap`?); \
         available: pcap, sim, af_xdp, af_packet, tap, host"
    );
    assert_eq!(
        error("lan=sim:2M").to_string(),
        "the rate of `lan`: `M` is not a unit here; write one of pps, kpps, Mpps, Gpps; \
         write, for example, lan=sim:2Mpps"
    );
    assert!(matches!(error("lan=sim:0pps"), OverrideError::Rate { .. }));
    for ring in ["", "63", "32769", "8k", "-1"] {
        let problem = error(&format!("lan=tap:rheo0,ring={ring}")).to_string();
        let says = format!("the ring of `lan`: `{ring}` is not a number between 64 and 32768; ");
        assert!(problem.starts_with(&says) && problem.ends_with("ring=8192"), "{problem}");
    }
}

#[test]
fn a_ring_is_given_with_the_interface_or_stays() {
    let (sim, live) = ("kind = \"sim\"\nrate = \"1Mpps\"", "kind = \"af_packet\"\nring = 512");
    assert!(ONE.contains(sim));
    let text = ONE.replace(sim, live);
    let ring = |flag: &str| {
        let config = with(&text, &device(&format!("wire={flag}"))).unwrap();
        match &config.devices[0].kind {
            DeviceKind::Live(live) => (live.interface.clone().unwrap(), live.ring),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ring("af_packet:e0"), ("e0".into(), 512));
    assert_eq!(ring("af_packet:e0,ring=5000"), ("e0".into(), 8_192));
    assert_eq!(ring("tap:e0"), ("e0".into(), 2_048));
    assert_eq!(ring("tap:a,b,ring=64"), ("a,b".into(), 64));
}

#[test]
fn a_policy_on_the_command_line_takes_the_place_of_the_files() {
    let text = format!("{ONE}\n[balance]\npolicy = \"rsspp\"\ninterval = \"200ms\"\n");
    let policy = |flags: &Overrides| Config::parse_with(&text, "one.toml", flags, &registry::all());
    let (file, _) = policy(&Overrides::default()).unwrap();
    assert_eq!(file.balance.policy().name(), "rsspp");
    let flags = Overrides { policy: Some("local-search".into()), ..Overrides::default() };
    let (flagged, _) = policy(&flags).unwrap();
    assert_eq!(flagged.balance.policy.name, "local-search");
    assert_eq!(flagged.balance.interval, Some(Duration::from_millis(200)));
    let flags = Overrides { policy: Some("local search".into()), ..Overrides::default() };
    let refused = policy(&flags).unwrap_err().render(false);
    assert!(refused.contains("--policy") && refused.contains("did you mean"), "{refused}");
}

#[test]
fn an_own_policy_is_taken_from_file_and_command_line_and_named_in_mistakes() {
    let own = PolicyRegistration::new("own", |settings: &Settings| Rsspp {
        scaling: settings.scaling,
        ..Rsspp::default()
    });
    let registry = registry::all().with_policy(own);
    let read = |text: &str, flag: Option<&str>| {
        let flags = Overrides { policy: flag.map(str::to_owned), ..Overrides::default() };
        Config::parse_with(&format!("{ONE}\n{text}"), "one.toml", &flags, &registry)
            .map(|(config, _)| config.balance.clone())
    };
    let by_file = read("[balance]\npolicy = \"own\"\n", None).unwrap();
    assert_eq!((by_file.policy, by_file.is_static()), (own, false));
    assert_eq!(read("", Some("own")).unwrap().policy, own);
    // `rheo explain` finds it without `[balance]`.
    assert!(read("", None).unwrap().policies.contains(&own));
    for refused in [read("[balance]\npolicy = \"on\"\n", None), read("", Some("on"))] {
        let text = refused.unwrap_err().render(false);
        assert!(text.contains("did you mean `own`?") && text.contains("`auto`, `own`"), "{text}");
    }
}

#[test]
fn a_polling_policy_on_the_command_line_takes_the_place_of_the_files() {
    let text = format!("{ONE}\n[polling]\npolicy = \"interrupt\"\nspin = \"7us\"\n");
    let polling = |name: &str| {
        let flags = Overrides { polling: Some(name.into()), ..Overrides::default() };
        Config::parse_with(&text, "one.toml", &flags, &registry::all())
            .map(|(config, _)| config.polling.clone())
    };
    let metronome = polling("metronome").unwrap();
    assert_eq!(metronome, MetronomeSettings::default().polling());
    assert_eq!(polling("step-sleep").unwrap().name(), "step-sleep");
    assert_eq!(polling("busy").unwrap(), Busy::polling());
    // The same policy keeps the file's settings.
    let spin = Duration::from_micros(7);
    assert_eq!(polling("interrupt").unwrap(), Interrupt::polling(spin));
    let refused = polling("metronom").unwrap_err().render(false);
    assert!(
        refused.contains("--polling") && refused.contains("did you mean `metronome`"),
        "{refused}"
    );
}

#[test]
fn an_own_polling_policy_is_taken_from_file_and_command_line_with_its_keys_alone() {
    let own = PollingRegistration::new("own", Busy::new);
    let registry = registry::all().with_polling(own);
    let read = |text: &str, flag: Option<&str>| {
        let flags = Overrides { polling: flag.map(str::to_owned), ..Overrides::default() };
        Config::parse_with(&format!("{ONE}\n{text}"), "one.toml", &flags, &registry)
            .map(|(config, _)| config.polling.name())
            .map_err(|report| report.render(false))
    };
    assert_eq!(read("[polling]\npolicy = \"own\"\n", None), Ok("own"));
    assert_eq!(read("", Some("own")), Ok("own"));
    let foreign = read("[polling]\npolicy = \"own\"\nspin = \"1us\"\n", None).unwrap_err();
    assert!(
        foreign.contains("`spin` has a meaning with `policy = \"interrupt\"` only"),
        "{foreign}"
    );
    for refused in [read("[polling]\npolicy = \"on\"\n", None), read("", Some("on"))] {
        let text = refused.unwrap_err();
        assert!(
            text.contains("did you mean `own`?") && text.contains("`step-sleep`, `own`"),
            "{text}"
        );
    }
}

#[test]
fn a_registered_kind_of_device_has_its_argument_and_refuses_keys_of_others() {
    let open =
        |_: &str, _: &Opening<'_>| -> Result<SimNic, OpenError> { unreachable!("not opened") };
    let registry = registry::all().with_device(DeviceRegistration::new("dpdk", open));
    let device = |text: &str| {
        let text = format!(
            "[chain]\nfunctions = []\n[[device]]\nname = \"wire\"\ninside = \"10.0.0.0/8\"\n{text}"
        );
        Config::parse(&text, "one.toml", &registry)
            .map(|(config, _)| config.devices[0].kind.to_string())
            .map_err(|report| report.render(false))
    };
    // Not one that will come any more.
    let own = device("kind = \"dpdk\"\nargument = \"0000:00:05.0\"\n");
    assert_eq!(own, Ok("dpdk with `0000:00:05.0`".to_owned()));
    let foreign = device("kind = \"dpdk\"\nrate = \"1Mpps\"\n").unwrap_err();
    assert!(foreign.contains("`rate` has a meaning with `kind = \"sim\"` only"), "{foreign}");
    let foreign = device("kind = \"sim\"\nrate = \"1Mpps\"\nargument = \"x\"\n").unwrap_err();
    assert!(foreign.contains("`argument` has a meaning with `kind = \"dpdk\"` only"), "{foreign}");
    let flag = DeviceOverride::parse("wire=dpdk:0000:00:06.0", &registry.devices).unwrap();
    let flags = Overrides { devices: vec![flag], ..Overrides::default() };
    let (config, _) = Config::parse_with(ONE, "one.toml", &flags, &registry).unwrap();
    assert_eq!(config.devices[0].kind.to_string(), "dpdk with `0000:00:06.0`");
}

#[test]
fn so_many_workers_on_the_command_line_take_the_place_of_the_files() {
    let with = |workers| {
        let flags = Overrides { workers: Some(workers), ..Overrides::default() };
        Config::parse_with(ONE, "one.toml", &flags, &registry::all())
    };
    let (config, _) = with(3).unwrap();
    assert!(config.to_string().contains("3 workers"), "{config}");
    let refused = with(129).unwrap_err().render(false);
    assert!(refused.contains("--workers 129 is out of range"), "{refused}");
}
