use std::time::Duration;

use rheostat_base::choice::Outstanding;
use rheostat_run::Sharing;
use rheostat_serve::scheduler::SchedulerPlan;
use rheostat_tcp::sched::{Queueing, Split};

use super::*;
use crate::command_line;
use crate::error::cause;

/// The configuration of a command line behind `rheo serve`, or its mistakes.
fn read(flags: &str) -> Result<Config, String> {
    read_by(&App::new(), flags)
}

fn read_by(app: &App, flags: &str) -> Result<Config, String> {
    let words = ["rheo", "serve"].into_iter().chain(flags.split_whitespace());
    let matches =
        command_line(app).try_get_matches_from(words).map_err(|error| error.to_string())?;
    let args = Args::from_arg_matches(matches.subcommand().expect("serve").1).unwrap();
    args.config(app).map(|(config, ..)| config).map_err(|error| match cause(&error) {
        Some(LoadError::Wrong(report)) => report.render(false),
        _ => error.to_string(),
    })
}

#[test]
fn flags_make_a_configuration() {
    let flags = "relay --to 192.0.2.7:22 --source-ports 2000-3000 --device lan=tap:t0 \
                 --address 10.0.0.1/24 --address fd00::1/64 --port 80 --port 81 \
                 --gateway 10.0.0.254 --lanes 2 --policy rsspp --congestion newreno";
    let config = read(flags).unwrap();
    assert_eq!(config.devices[0].addresses.len(), 2);
    assert_eq!(config.workers.lanes, Some(2));
    assert_eq!(config.balance.policy.name, "rsspp");
    assert_eq!(config.polling.name(), "interrupt");
    assert_eq!(config.network.routes.len(), 1);
    let serve = config.serve.as_ref().unwrap();
    assert_eq!(serve.ports, [80, 81]);
    assert_eq!(serve.application.to_string(), "relay to 192.0.2.7:22");
    assert_eq!(serve.outgoing().ports, 2_000..=3_000);
    let listeners = serve.listeners();
    assert_eq!((listeners.len(), listeners[1].port), (2, 81));
    assert_eq!(listeners[0].tcp.congestion, serve.congestion);
}

#[test]
fn flags_and_configuration_have_the_same_defaults() {
    let common = "--device lan=tap:t0 --address 10.0.0.1/24 --port 80";
    let written = |service: &str| {
        let text = format!(
            "[[device]]\nname = \"lan\"\nkind = \"tap\"\naddress = \"10.0.0.1/24\"\n\
             [serve]\nport = 80\n{service}"
        );
        Config::parse(&text, "file", &App::new().registry).unwrap().0.serve.clone().unwrap()
    };
    let flags = |service: &str| -> ServeConfig {
        read(&format!("{service} {common}")).unwrap().serve.clone().unwrap()
    };
    assert_eq!(flags("echo"), written("service = \"echo\""));
    assert_eq!(flags("work"), written("service = \"work\""));
    assert_eq!(flags("resp"), written("service = \"resp\""));
    assert_eq!(flags("http --root ."), written("service = \"http\"\nroot = \".\""));
    let relay = "service = \"relay\"\nto = \"[::1]:22\"";
    assert_eq!(flags("relay --to [::1]:22"), written(relay));
}

#[test]
fn flags_that_make_no_sense_are_named() {
    let wrong = |flags: &str| read(&format!("echo {flags}")).err().unwrap_or_default();
    let device = "--device lan=af_packet:e0 --port 80";
    assert!(wrong(&format!("{device} --address 10.0.0/24")).contains("10.0.0/24"));
    let address = format!("{device} --address 10.0.0.1/24");
    assert!(wrong(&format!("{address} --policy rspp")).contains("did you mean `rsspp`"));
    assert!(wrong(&format!("{address} --policy dyssect")).contains("for chains"));
    assert!(wrong(&format!("{address} --polling none")).contains("none"));
    assert!(wrong(&format!("{address} --gateway 10.0.0.1")).contains("10.0.0.1"));
    assert!(wrong(&format!("{address} --port 80")).contains("listed twice"));
    assert!(wrong(&format!("{address} --connections 0")).contains("out of range"));
    assert!(wrong(&format!("{address} --congestion bbr")).contains("cubic"));
    let http = |flags: &str| read(&format!("http --root . {flags} {address}"));
    let refused = |flags: &str| http(flags).unwrap_err();
    assert!(refused("--header-timeout 0s").contains("out of range"));
    assert!(refused("--cache-time 2min").contains("out of range"));
    assert!(refused("--cache-memory much").contains("cache_memory"));
    assert!(refused("--longest-upload 1GiB").contains("--writable"));
    assert!(refused("--writable --longest-upload 0").contains("longest_upload"));
    let resp = |flags: &str| read(&format!("resp {flags} {address}"));
    assert!(resp("--longest-value 1GiB").unwrap_err().contains("longest_value"));
    let long = resp("--longest-value 512MiB").unwrap_err();
    assert!(long.contains("longest_value") && long.contains("shard_memory"), "{long}");
    let served = resp("--longest-value 5MiB").unwrap().serve.clone().unwrap();
    assert_eq!(served.limits().longest_request, 6 << 20);
    let served = http("--writable --dotfiles --longest-upload 5MiB --header-timeout 3s").unwrap();
    let served = served.serve.clone().unwrap();
    let words = served.application.to_string();
    let expected =
        "http, files of . with dotfiles, which clients may write, 5.0 MiB each, heads within 3s, ";
    assert!(words.starts_with(expected), "{words}");
    let header_timeout = Duration::from_secs(3);
    assert_eq!(served.listeners()[0].request_timeout, Some(header_timeout));
    assert!(wrong(&format!("{address} --syn-cookies sometimes")).contains("on-pressure"));
    assert!(wrong(&format!("{address} --handshake-timeout 1ms")).contains("out of range"));
    assert!(wrong(&format!("{address} --half-open 0")).contains("out of range"));
    let more = wrong(&format!("{address} --half-open 200 --connections 100"));
    assert!(more.contains("`half_open` is more than `connections`"), "{more}");
    assert_eq!(wrong(&address), "");
    let work = |flags: &str| read(&format!("work {flags} {address}")).unwrap_err();
    assert!(work("--work root").contains("strided"));
    assert!(work("--service bimodal").contains("bimodal-1"));
    assert!(work("--buffer 0%").contains("80%"));
    assert!(work("--scheduler inline").contains("inline-dfcfs"));
    assert!(work("--scheduler dispatcher-2:3").contains("dispatcher-2:3"));
    assert!(work("--outstanding 2").contains("scheduler = \"dispatcher-1:1\""));
    assert!(work("--burst 4").contains("scheduler = \"inline-cfcfs\""));
    assert!(work("--scheduler dispatcher-1:2+receive-ws").contains("one network worker"));
    assert!(work("--share-cores").contains("scheduler = \"dispatcher-1:1\""));
    let relay = "relay --to 192.0.2.7:22 --scheduler dispatcher-1:1";
    assert!(read(&format!("{relay} {address}")).unwrap_err().contains("a relay has no requests"));
    let dispatcher = "echo --scheduler dispatcher-2:6 --outstanding 2";
    let serve = read(&format!("{dispatcher} {address}")).unwrap().serve.clone().unwrap();
    assert_eq!(
        (serve.scheduling.scheduler.to_string(), serve.scheduling.outstanding()),
        ("dispatcher-2:6".to_owned(), Outstanding::TWO)
    );
    let shared = "echo --share-cores --burst 4 --scheduler dispatcher-2:6-ws+receive-cfcfs";
    let serve = read(&format!("{shared} {address}")).unwrap().serve.clone().unwrap();
    assert_eq!(
        (
            serve.scheduling.scheduler.name(),
            serve.scheduling.share_cores,
            serve.scheduling.sharing()
        ),
        ("dispatcher-2:6-ws+receive-cfcfs", true, Some(Sharing::Central { pop: 4 }))
    );
    assert!(work("--scheduler inline-ws --policy rsspp").contains("share them"));
    let moving = work("--scheduler dispatcher-2:6-ws+receive-cfcfs --policy rsspp");
    assert!(
        moving.contains("share them") && moving.contains("`scheduler = \"dispatcher-2:6-ws\"`")
    );
    let relay = read(&format!("relay --to 192.0.2.7:22 --scheduler inline-cfcfs {address}"));
    assert!(relay.unwrap_err().contains("does not run with `inline-cfcfs`"));
    assert!(read(&format!("echo --scheduler inline-ws {address}")).is_ok());
    assert!(work("--place cores").contains("idle-siblings"));
    assert!(work("--hash-key none").contains("microsoft"));
    assert!(read("work --port 7").unwrap_err().contains("--device"));
    assert!(read("work --calibrate --work chase").is_err(), "it is not for serving");
    let nowhere = format!("relay --to 192.0.2.7 {address}");
    assert!(read(&nowhere).unwrap_err().contains("not a host with a port"));
}

#[test]
fn a_host_device_needs_no_length_of_its_address_and_takes_any_free_port() {
    let config = read("echo --device lan=host:127.0.0.1,[::1] --port 0").unwrap();
    let addresses: Vec<_> =
        config.devices[0].addresses.iter().map(|own| own.address.to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1", "::1"]);
    assert_eq!(config.serve.as_ref().unwrap().ports, [0]);
    let device = "echo --port 0 --device lan=host:127.0.0.1";
    let refused = |flags: &str| read(&format!("{device} {flags}")).err().unwrap_or_default();
    assert!(refused("--scheduler inline-ws").contains("the kernel"));
    assert!(refused("--policy rsspp").contains("the kernel"));
    assert!(refused("--polling busy").contains("the kernel"));
    assert!(refused("--syn-cookies off").contains("the kernel"));
    assert!(refused("--hash-key symmetric").contains("the kernel"));
    assert!(refused("--gateway 127.0.0.2").contains("the kernel"));
    assert_eq!(refused("--lanes 3 --idle-timeout 3s"), "");
    assert!(read("echo --port 7 --device lan=tap:t0").unwrap_err().contains("--address"));
}

rheostat_settings::settings! {
    /// Settings of an own service.
    struct OwnSettings {
        /// Lines at most.
        most_lines: u16 = rheostat_settings::declared::kind::integer(1..=9), value("N"), default(3);
    }
}

#[test]
fn an_own_application_is_served_by_its_name_with_its_settings_as_flags_and_keys() {
    let own = |_: OwnSettings| rheostat_serve::echo::Echo;
    let app = App::new().application("own", own);
    let device = "own --device lan=host:127.0.0.1 --port 0";
    let served = |flags: &str| read_by(&app, &format!("{device} {flags}"));
    let application = |config: Config| config.serve.as_ref().unwrap().application.to_string();
    assert_eq!(application(served("").unwrap()), "own");
    assert_eq!(application(served("--most-lines 9").unwrap()), "own, most_lines 9");
    let wrong = served("--most-lines 10").unwrap_err();
    assert!(wrong.contains("write a number between 1 and 9"), "{wrong}");
    let text = "[[device]]\nname = \"lan\"\nkind = \"host\"\naddress = \"::1\"\n\
                [serve]\nservice = \"own\"\nport = 0\nmost_lines = 4\n";
    let (config, _) = Config::parse(text, "file", &app.registry).unwrap();
    assert_eq!(application(config), "own, most_lines 4");
    let unknown = Config::parse(text, "file", &App::new().registry).unwrap_err();
    assert!(unknown.render(false).contains("`own` is not a value of `service`"));
}

#[test]
fn an_own_scheduler_is_taken_from_flags_and_keys_and_named_in_mistakes() {
    let split = |cores: u16| Split::new(1, cores - 1);
    let plan = SchedulerPlan::dispatcher(Queueing::Cfcfs, split).receiving_by(Queueing::Ws);
    let app = App::new().scheduler("front", plan);
    let device = "--device lan=tap:t0 --address 10.0.0.1/24 --address fd00::1/64 --port 7";
    let read = |service: &str| read_by(&app, &format!("{service} {device}"));
    let scheduling =
        |service: &str| read(service).unwrap().serve.as_ref().unwrap().scheduling.clone();
    let own = scheduling("echo --scheduler front --outstanding 2 --burst 3 --share-cores");
    assert_eq!((own.scheduler.name(), own.outstanding()), ("front", Outstanding::TWO));
    assert_eq!(
        (own.sharing(), own.share_cores),
        (Some(Sharing::Stealing { pop: 3, steal: 3 }), true)
    );
    let moving = read("echo --scheduler front --policy rsspp").unwrap_err();
    assert!(moving.contains("`scheduler = \"inline-dfcfs\"`"), "{moving}");
    let relay = read("relay --to 192.0.2.7:22 --scheduler front").unwrap_err();
    assert!(relay.contains("members of `front` could handle"), "{relay}");
    let file = |name: &str| {
        let text = format!(
            "[[device]]\nname = \"lan\"\nkind = \"tap\"\naddress = \"fd00::1/64\"\n\
             [serve]\nservice = \"echo\"\nport = 7\nscheduler = \"{name}\"\n"
        );
        let read = Config::parse(&text, "own.toml", &app.registry);
        read.map(|(config, _)| config.serve.as_ref().unwrap().scheduling.clone())
            .map_err(|e| e.render(false))
    };
    assert_eq!(file("front").unwrap().scheduler, own.scheduler);
    for wrong in [file("frnt").unwrap_err(), read("echo --scheduler frnt").unwrap_err()] {
        assert!(wrong.contains("`frnt` is not a value of `scheduler`"), "{wrong}");
        assert!(wrong.contains("did you mean `front`?"), "{wrong}");
        assert!(wrong.contains("`dispatcher-D:A`, `front`"), "{wrong}");
    }
    let form = file("dispatcher-front").unwrap_err();
    assert!(form.contains("`dispatcher-front` is not a dispatcher"), "{form}");
    let help = command_line(&app);
    let help = help.find_subcommand("serve").and_then(|serve| serve.find_subcommand("echo"));
    let help = help.unwrap().clone().term_width(2_000).render_long_help().to_string();
    assert!(help.contains("inline-ws, dispatcher-D:A, front] [default: inline-dfcfs]"), "{help}");
}

#[test]
fn help_of_an_application_begins_with_its_summary_and_lists_its_settings() {
    let registry = App::new().registry;
    for application in &registry.applications {
        let help =
            subcommand(application, &registry).term_width(200).render_long_help().to_string();
        assert!(help.starts_with(application.summary), "{help}");
        for setting in &application.settings {
            assert!(help.contains(&format!("--{}", setting.flag())), "{help}");
        }
    }
}
