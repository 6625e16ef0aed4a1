//! The flags of `rheo serve` as a configuration.

use std::fmt::Write as _;

use rheostat_control::config::device::LiveConfig;
use rheostat_control::overrides::KindOverride;
use rheostat_control::{Config, LoadError, Overrides};

use super::work::WorkFlags;
use super::{CommonArgs, Error, HttpArgs, NotLive, RelayArgs, RespArgs, ServiceArgs};
use crate::app::App;

/// The flags as a configuration, so that both are read and checked by the same rules.
///
/// # Errors
/// [`Error`] when the flags make no sense.
pub(super) fn config(app: &App, service: &ServiceArgs, args: &CommonArgs) -> Result<Config, Error> {
    let KindOverride::Live { config: live, .. } = &args.device.kind else {
        return Err(NotLive.into());
    };
    let text = device(args, live) + &serve(service, args);
    let parsed = Config::parse_with(&text, "flags", &overrides(args), &app.registry);
    let (mut config, _) = parsed.map_err(LoadError::Wrong)?;
    config.observe.control.clone_from(&args.control);
    Ok(config)
}

/// The device, its addresses, and routes.
fn device(args: &CommonArgs, live: &LiveConfig) -> String {
    let addresses: Vec<_> = args.address.iter().map(|address| quote(address)).collect();
    let mut text = format!(
        "[[device]]\nname = {}\nkind = \"{}\"\naddress = [{}]\n",
        quote(&args.device.name),
        live.word(),
        addresses.join(", ")
    );
    for gateway in &args.gateway {
        let everywhere = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        let _ = writeln!(text, "[[route]]\nto = \"{everywhere}\"\nvia = \"{gateway}\"");
    }
    text
}

/// What is served.
fn serve(service: &ServiceArgs, args: &CommonArgs) -> String {
    let mut text = format!("[serve]\nport = {:?}\nconnections = {}\n", args.port, args.connections);
    if let Some(half_open) = args.half_open {
        let _ = writeln!(text, "half_open = {half_open}");
    }
    let _ = writeln!(text, "scheduler = \"{}\"", args.scheduler);
    if let Some(outstanding) = args.outstanding {
        let _ = writeln!(text, "outstanding = {outstanding}");
    }
    if let Some(burst) = args.burst {
        let _ = writeln!(text, "burst = {burst}");
    }
    if args.share_cores {
        text += "share_cores = true\n";
    }
    if let Some(place) = args.place {
        let _ = writeln!(text, "place = \"{place}\"");
    }
    if args.beside_kernel {
        text += "beside_kernel = true\n";
    }
    let words = [
        ("connection_memory", &args.connection_memory),
        ("shard_memory", &args.shard_memory),
        ("syn_cookies", &args.syn_cookies),
        ("handshake_timeout", &args.handshake_timeout),
        ("idle_timeout", &args.idle_timeout),
        ("congestion", &args.congestion),
        ("drain_time", &args.drain_time),
    ];
    let reply_memory = args.reply_memory.iter().map(|size| ("reply_memory", size));
    for (key, value) in words.into_iter().chain(reply_memory) {
        let _ = writeln!(text, "{key} = {}", quote(value));
    }
    // Defaults are no contradiction to a small `--shard-memory`; what is written here would be.
    let buffers = [("send_buffer", &args.send_buffer), ("receive_buffer", &args.receive_buffer)];
    for (key, value) in buffers {
        let Some(value) = value else { continue };
        let _ = writeln!(text, "{key} = {}", quote(value));
    }
    let _ = match service {
        ServiceArgs::Http(args) => {
            text += &http(args);
            Ok(())
        }
        ServiceArgs::Resp(RespArgs { memory, longest_value, .. }) => {
            if let Some(longest) = longest_value {
                let _ = writeln!(text, "longest_value = {}", quote(longest));
            }
            writeln!(text, "service = \"resp\"\nmemory = {}", quote(memory))
        }
        ServiceArgs::Echo(_) => writeln!(text, "service = \"echo\""),
        ServiceArgs::Work(args) => {
            let WorkFlags { work, service, buffer, .. } = &args.flags;
            let (service, buffer) = (quote(&service.to_string()), quote(buffer));
            writeln!(
                text,
                "service = \"work\"\nwork = \"{work}\"\nservice_time = {service}\nbuffer = {buffer}"
            )
        }
        ServiceArgs::Relay(RelayArgs { to, source_ports, .. }) => {
            let ports = source_ports.as_deref().map(quote);
            let ports = ports.map_or_else(String::new, |ports| format!("source_ports = {ports}\n"));
            write!(text, "service = \"relay\"\nto = {}\n{ports}", quote(to))
        }
    };
    let _ = writeln!(text, "[steering]\nkey = {}", quote(&args.hash_key));
    text
}

/// What is served of files.
fn http(args: &HttpArgs) -> String {
    let HttpArgs { root, writable, dotfiles, header_timeout, cache_time, cache_memory, .. } = args;
    let mut text = format!("service = \"http\"\nwritable = {writable}\ndotfiles = {dotfiles}\n");
    let words = [
        ("root", Some(&*root.to_string_lossy())),
        ("longest_upload", args.longest_upload.as_deref()),
        ("header_timeout", Some(header_timeout)),
        ("cache_time", Some(cache_time)),
        ("cache_memory", Some(cache_memory)),
    ];
    for (key, word) in words {
        let _ = word.map(|word| writeln!(text, "{key} = {}", quote(word)));
    }
    text
}

fn overrides(args: &CommonArgs) -> Overrides {
    Overrides {
        devices: vec![args.device.clone()],
        policy: args.policy.clone(),
        polling: Some(args.polling.clone()),
        lanes: args.lanes,
        duration: args.duration,
        ..Overrides::default()
    }
}

/// A string as TOML has it.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", character as u32);
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use rheostat_base::choice::Outstanding;
    use rheostat_control::config::{HttpServiceConfig, ServeConfig, ServiceConfig};
    use rheostat_run::Sharing;
    use rheostat_serve::http::HttpConfig;

    use super::*;
    use crate::error::cause;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        service: ServiceArgs,
    }

    fn read(flags: &str) -> Result<Config, String> {
        let line = Line::try_parse_from(["serve"].into_iter().chain(flags.split_whitespace()));
        let service = line.map_err(|error| error.to_string())?.service;
        let common = service.common().ok_or("nothing is served")?;
        config(&App::new(), &service, common).map_err(|error| match cause(&error) {
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
        let serve = config.serve.unwrap();
        assert_eq!(serve.ports, [80, 81]);
        let service = ServiceConfig::Relay {
            to: "192.0.2.7:22".to_owned(),
            source_ports: Some(2_000..=3_000),
        };
        assert_eq!(serve.service, service);
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
            Config::parse(&text, "file", &App::new().registry).unwrap().0.serve.unwrap()
        };
        let flags = |service: &str| -> ServeConfig {
            read(&format!("{service} {common}")).unwrap().serve.unwrap()
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
        let served = resp("--longest-value 5MiB").unwrap().serve.unwrap();
        assert_eq!(served.limits.longest_request, 6 << 20);
        let served =
            http("--writable --dotfiles --longest-upload 5MiB --header-timeout 3s").unwrap();
        let served = served.serve.unwrap();
        let usual = HttpServiceConfig::new(".").files;
        let files =
            HttpConfig { is_writable: true, has_dotfiles: true, longest_upload: 5 << 20, ..usual };
        let header_timeout = Duration::from_secs(3);
        let expected = HttpServiceConfig { files, header_timeout };
        assert_eq!(served.service, ServiceConfig::Http(expected));
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
        assert!(
            read(&format!("{relay} {address}")).unwrap_err().contains("a relay has no requests")
        );
        let dispatcher = "echo --scheduler dispatcher-2:6 --outstanding 2";
        let serve = read(&format!("{dispatcher} {address}")).unwrap().serve.unwrap();
        assert_eq!(
            (serve.scheduler.to_string(), serve.outstanding),
            ("dispatcher-2:6".to_owned(), Outstanding::TWO)
        );
        let shared = "echo --share-cores --burst 4 --scheduler dispatcher-2:6-ws+receive-cfcfs";
        let serve = read(&format!("{shared} {address}")).unwrap().serve.unwrap();
        assert_eq!(
            (serve.scheduler.to_string(), serve.share_cores, serve.sharing()),
            ("dispatcher-2:6-ws+receive-cfcfs".to_owned(), true, Some(Sharing::Central { pop: 4 }))
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
        assert_eq!(read("work --calibrate"), Err("nothing is served".to_owned()));
        let nowhere = format!("relay --to 192.0.2.7 {address}");
        assert!(read(&nowhere).unwrap_err().contains("not a host with a port"));
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quote("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
    }
}
