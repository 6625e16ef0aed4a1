//! Every file in `configs/` can be read, without so much as a warning, and states what it should.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rheostat_control::config::DeviceKind;
use rheostat_control::{Config, Overrides};
use rheostat_functions::antiddos::AntiDdosConfig;
use rheostat_functions::bridge::BridgeConfig;
use rheostat_functions::firewall::{Action, FirewallConfig, Timeouts};
use rheostat_functions::lb::{Health, LbConfig, Mode, OnDown};
use rheostat_functions::monitor::MonitorFunction;
use rheostat_functions::policer::{self, Colour, Count, PolicerConfig};
use rheostat_functions::portscan::PortscanConfig;
use rheostat_functions::router::RouterConfig;
use rheostat_nf::DeviceSet;
use rheostat_nf::registry::FunctionSettings;
use rheostat_steer::{Side, Whose};

use crate::registry;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

fn load(name: &str) -> Config {
    match Config::load(&folder().join(name), &Overrides::default(), &registry::all()) {
        Ok((config, warnings)) if warnings.is_empty() => config,
        Ok((_, warnings)) => panic!("{}", warnings.render(false)),
        Err(error) => panic!("{error:?}"),
    }
}

/// The settings of the only function of a chain.
fn only<T: FunctionSettings>(config: &Config) -> &T {
    let [function] = &config.chain[..] else { panic!("{:?}", config.chain) };
    function.get().unwrap_or_else(|| panic!("{function:?}"))
}

#[test]
fn every_file_is_read_without_a_warning() {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert!(files.len() >= 4, "the files have gone");
    for file in files {
        let config = load(file.file_name().unwrap().to_str().unwrap());
        assert!(!config.devices.is_empty());
    }
}

#[test]
fn what_the_demo_writes_out_are_the_defaults() {
    let demo = load("demo.toml");
    assert_eq!(demo.run.duration, Some(Duration::from_secs(10)));
    let forward = load("forward.toml");
    assert_eq!(demo.state, forward.state);
    assert_eq!(demo.steering, forward.steering);
    // Its queues last longer than a busy machine pauses, so that next to nothing is dropped.
    let mut usual = demo.devices.clone();
    let DeviceKind::Sim(sim) = &mut usual[0].kind else { panic!("a simulated NIC") };
    assert_eq!((sim.rate, sim.queue, demo.pool.buffers), (Some(200_000), 8_192, 32_768));
    (sim.rate, sim.queue) = (Some(1_000_000), 1_024);
    assert_eq!(usual, forward.devices);
    assert_eq!(only::<FirewallConfig>(&demo), &FirewallConfig::default());
    assert!(forward.chain.is_empty());
}

#[test]
fn the_gateway_is_one_capture_with_default_time_outs() {
    let config = load("firewall.toml");
    let [device] = &config.devices[..] else { panic!("one device") };
    assert!(matches!(&device.kind, DeviceKind::Pcap(pcap) if pcap.input.is_none()));
    assert!(config.check_inputs().is_err());
    let firewall: &FirewallConfig = only(&config);
    assert_eq!(firewall.timeouts, Timeouts::default());
    assert_eq!(firewall.rules.default_outside, Action::Deny);
    assert_eq!(firewall.rules.rules.len(), 4);
    assert_eq!(firewall.rules.rules[1].icmp_types, [8, 128]);
}

#[test]
fn the_router_says_what_are_the_defaults() {
    let config = load("router.toml");
    only::<RouterConfig>(&config);
    assert_eq!(config.network.policy, Default::default());
    let routes: Vec<_> = config.network.routes.iter().map(|route| route.device.0).collect();
    assert_eq!(routes, [1, 1, 0]);
    assert!(config.network.neighbours.is_empty(), "its routers are asked for their link addresses");
}

#[test]
fn the_policer_holds_subscribers_to_what_comes_from_outside() {
    let config = load("policer.toml");
    let policer: &PolicerConfig = only(&config);
    let subject = policer.subject;
    assert_eq!((subject.whose, subject.v4, subject.v6), (Whose::Inner, 32, 64));
    assert_eq!((policer.from, policer.count), (Some(Side::Outside), Count::Ip));
    let le = "le".parse().unwrap();
    assert_eq!(policer.colours.as_ref().map(|map| map.colour(le)), Some(Colour::Yellow));
    assert_eq!(policer.actions.yellow, policer::Action::DropPrecedence);
    assert_eq!((policer.pass_when_full, policer.pass_non_ip), (false, true));
    let meter = |address: &str| {
        policer.classes.meter(policer.classes.class_of(address.parse().unwrap())).copied()
    };
    let rate = |address| match meter(address) {
        Some(policer::Meter::TwoRate { rate, .. }) => rate.bits_per_second(),
        other => panic!("{other:?}"),
    };
    assert_eq!((rate("10.9.0.1"), rate("10.1.0.1")), (20_000_000, 100_000_000));
    assert_eq!((meter("10.0.0.1"), meter("fd00::1")), (None, None));
    let told = config.to_string();
    let line = told.lines().find(|line| line.starts_with("chain")).unwrap();
    assert_eq!(
        line,
        "chain     policer: 20Mbps, burst 250 KiB, peak 50Mbps, burst 62.5 KiB per inner address /32 \
         or /64, from outside; 2 classes of their own; aware of colours; yellow as drop precedence; \
         red dropped"
    );
}

#[test]
fn the_monitor_is_as_by_default() {
    let config = load("monitor.toml");
    let monitor: &MonitorFunction = only(&config);
    assert_eq!(*monitor, Default::default());
    let told = config.to_string();
    let line = told.lines().find(|line| line.starts_with("chain")).unwrap();
    assert_eq!(
        line,
        "chain     monitor: flows end after 15s without a packet, and are reported every 30min; top 10 \
         hosts and flows, at the end"
    );
    assert!(told.contains("up to 198 MiB"), "three lines for a flow: {told}");
}

#[test]
fn functions_on_shared_objects_write_out_their_defaults() {
    let told = |name: &str| {
        let config = load(name);
        let told = config.to_string();
        let line = told.lines().find(|line| line.starts_with("chain")).unwrap().to_owned();
        (config, line)
    };
    let (chain, line) = told("antiddos.toml");
    assert_eq!(only::<AntiDdosConfig>(&chain), &AntiDdosConfig::default());
    assert_eq!(
        line,
        "chain     antiddos: attack when more than 80 % of 1k flows or more have one packet, by counts up to 100us \
         old; TCP; new flows are counted"
    );
    let (chain, line) = told("bridge.toml");
    assert_eq!(only::<BridgeConfig>(&chain), &BridgeConfig::new(DeviceSet::first(3)));
    assert_eq!(
        line,
        "chain     bridge: 3 ports, 8192 stations, forgotten after 5min and refreshed every 10s"
    );
    let (chain, line) = told("portscan.toml");
    assert_eq!(only::<PortscanConfig>(&chain), &PortscanConfig::default());
    assert_eq!(
        line,
        "chain     portscan: a host (/32 or /64) scans after 4 failures in a row or as good as; 5s to answer; \
         64k hosts and 256k pairs, for 30min; connections of scanners are counted"
    );
}

#[test]
fn a_bridge_reads_one_capture_at_its_first_port() {
    let overrides = Overrides {
        input: Some("in.pcap".into()),
        output: Some("out.pcap".into()),
        ..Overrides::default()
    };
    let (config, _) =
        Config::load(&folder().join("bridge.toml"), &overrides, &registry::all()).unwrap();
    assert_eq!(config.devices.len(), 3);
    let files: Vec<_> = config.devices.iter().map(|port| (port.input(), port.output())).collect();
    let (input, output) = (Path::new("in.pcap"), Path::new("out.pcap"));
    assert_eq!(files, [(Some(input), None), (None, Some(output)), (None, None)]);
    assert_eq!(config.check_inputs(), Ok(()), "ports without a capture only send");
    let overrides = Overrides { output: Some("out.pcap".into()), ..Overrides::default() };
    let (config, _) =
        Config::load(&folder().join("bridge.toml"), &overrides, &registry::all()).unwrap();
    assert!(config.check_inputs().is_err(), "nothing would arrive");
}

#[test]
fn a_configuration_is_told_in_words() {
    assert_eq!(
        load("demo.toml").to_string(),
        "\
device    wire, both sides; inside is 10.0.0.0/8, fd00::/8
          sim at 200kpps over 10Gbps, pumped, 8192 descriptors per queue, 65536 flows, 10 % IPv6, Zipf 1.1
chain     firewall: no rules, else from inside allowed, from outside denied; 512 half open per shard
workers   every core the process may use, polling busy
lanes     one per worker, handing off through rings of 1024 packets
steering  128 buckets, random key
balance   rss
state     1M flows in 128 shards of 7813, up to 137 MiB
pool      32768 buffers, 70.0 MiB
run       for 10s, random seed, metrics every 1s"
    );
}

#[test]
fn settings_that_the_words_leave_out_stand_behind_them() {
    let text = "[run]\nuser = \"rheo\"\ngroup = \"net\"\n\
                [[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"1Mpps\"\ninside = \"10.0.0.0/8\"\n\
                [device.traffic]\nstations = 4\nflows = 100\n\
                [network]\nerrors_per_second = 5\nannounce = false\n\
                [chain]\nfunctions = []\n[observe]\ncontrol = \"/run/rheo.sock\"\n";
    let (config, _) = Config::parse(text, "words", &registry::all()).unwrap();
    let words = config.to_string();
    for line in [
        "1Mpps over 10Gbps, pumped, 1024 descriptors per queue, 100 flows, 10 % IPv6, Zipf 1.1, stations 4",
        "network   errors_per_second 5, announce false",
        "random seed, as rheo once devices are open, metrics every 1s, group net, control /run/rheo.sock",
    ] {
        assert!(words.lines().any(|written| written.ends_with(line)), "{line} in\n{words}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::load(Path::new("no/such.toml"), &Overrides::default(), &registry::all())
        .unwrap_err();
    assert!(error.to_string().starts_with("cannot read `no/such.toml`: "), "{error}");
}

#[test]
fn the_load_balancer_has_services_of_every_mode_and_default_time_outs() {
    let config = load("lb.toml");
    let lb: &LbConfig = only(&config);
    let modes: Vec<_> = lb.services.iter().map(|service| service.mode).collect();
    assert_eq!(modes, [Mode::DsrIpip, Mode::DsrGue, Mode::DsrGue, Mode::Nat]);
    let defaults = LbConfig::default();
    assert_eq!((&lb.timeouts, lb.table_size), (&defaults.timeouts, defaults.table_size));
    assert_eq!(lb.answers_per_second, defaults.answers_per_second);
    let web = &lb.services[0];
    assert_eq!(web.health(), [Health::Up, Health::Up, Health::Up, Health::Drain]);
    assert_eq!(web.backends[2].weight, 2);
    let mail = &lb.services[3];
    assert_eq!((mail.on_down, mail.backends[0].port), (OnDown::Reset, Some(2_525)));
    let quic = lb.services[2].quic.unwrap();
    assert_eq!((quic.cid_offset, quic.cid_length), (1, 2));
    // What a check states about it: shares by weight, and how much moves.
    let text = config.to_string();
    let line = text.lines().find(|line| line.trim_start().starts_with("web at")).unwrap();
    assert!(line.contains("3 up, 1 draining, 0 down; 25.00 to 50.00 % of new flows"), "{line}");
}

#[test]
fn the_service_writes_out_its_defaults() {
    let config = load("serve-live.toml");
    let serve = config.serve.as_ref().expect("a service");
    let text = "[[device]]\nname = \"lan\"\nkind = \"tap\"\naddress = \"10.0.0.1/24\"\n\
                [serve]\nservice = \"http\"\nport = 80\nroot = \"/srv/www\"\n";
    let (usual, warnings) = Config::parse(text, "usual", &registry::all()).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(Some(serve), usual.serve.as_ref());
    assert_eq!(serve.limits(), Default::default());
    let listeners = serve.listeners();
    assert_eq!((listeners.len(), listeners[0].port), (1, 80));
    assert!(config.chain.is_empty());
}
