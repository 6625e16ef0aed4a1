//! From the flags of `rheo serve` to a configuration and listeners.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use rheostat_control::config::device::LiveConfig;
use rheostat_control::config::device::live::Access;
use rheostat_control::overrides::KindOverride;
use rheostat_control::{Config, LoadError, Overrides};
use rheostat_serve::{ListenerConfig, ServeConfig};

use super::CommonArgs;
use crate::failure::Failure;

/// What is to be served, and where.
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) listeners: Vec<ListenerConfig>,
    pub(super) limits: ServeConfig,
    /// Addresses that are listened at.
    pub(super) addresses: Vec<IpAddr>,
}

impl Plan {
    /// # Errors
    /// [`Failure`] when the flags make no sense.
    pub(super) fn new(args: &CommonArgs) -> Result<Plan, Failure> {
        let KindOverride::Live(live) = &args.device.kind else { return Err(Failure::NotLive) };
        let (text, overrides) = (text(args, live), overrides(args));
        let parsed = Config::parse_with(&text, "flags", &overrides);
        let (mut config, _) = parsed.map_err(LoadError::Wrong)?;
        config.observe.control.clone_from(&args.control);
        let limits = ServeConfig { connections: args.connections, ..ServeConfig::default() };
        let own = config.devices.iter().flat_map(|device| &device.addresses);
        let addresses = own.map(|own| own.address).collect();
        Ok(Plan { config, listeners: vec![ListenerConfig::new(args.port)], limits, addresses })
    }
}

/// The flags as a configuration, so that both are read and checked by the same rules.
fn text(args: &CommonArgs, live: &LiveConfig) -> String {
    let quote = |text: &str| toml_string(text);
    let addresses: Vec<_> = args.address.iter().map(|address| quote(address)).collect();
    let mut text = format!(
        "[[device]]\nname = {}\nkind = \"{}\"\ninside = [\"0.0.0.0/0\", \"::/0\"]\naddress = [{}]\n",
        quote(&args.device.name),
        live.word(),
        addresses.join(", ")
    );
    if live.access == Access::Tap {
        let [a, b, c, d, e] = tap_mac(args);
        let _ = writeln!(text, "mac = \"02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}\"");
    }
    for gateway in &args.gateway {
        let everywhere = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        let _ = writeln!(text, "[[route]]\nto = \"{everywhere}\"\nvia = \"{gateway}\"");
    }
    text.push_str("[chain]\nfunctions = []\n");
    text
}

fn overrides(args: &CommonArgs) -> Overrides {
    Overrides {
        devices: vec![args.device.clone()],
        policy: args.policy.clone(),
        polling: Some(args.polling.clone()),
        lanes: args.lanes,
        ..Overrides::default()
    }
}

/// The end of a tap interface's cable has another link address than the interface, which is the kernel's: one that stays the same
/// from run to run.
fn tap_mac(args: &CommonArgs) -> [u8; 5] {
    let mut hasher = DefaultHasher::new();
    (&args.device.name, &args.address).hash(&mut hasher);
    let [a, b, c, d, e, ..] = hasher.finish().to_be_bytes();
    [a, b, c, d, e]
}

/// A string as TOML has it.
fn toml_string(text: &str) -> String {
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
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        common: CommonArgs,
    }

    fn plan(flags: &str) -> Result<Plan, String> {
        let line = Line::try_parse_from(["serve"].into_iter().chain(flags.split_whitespace()));
        Plan::new(&line.map_err(|error| error.to_string())?.common).map_err(|e| e.to_string())
    }

    #[test]
    fn flags_make_a_configuration() {
        let flags = "--device lan=tap:t0 --address 10.0.0.1/24 --address fd00::1/64 --port 80 \
                     --gateway 10.0.0.254 --lanes 2 --policy rsspp";
        let plan = plan(flags).unwrap();
        assert_eq!(plan.addresses.len(), 2);
        assert_eq!((plan.listeners.len(), plan.listeners[0].port), (1, 80));
        assert_eq!(plan.config.workers.lanes, Some(2));
        assert_eq!(plan.config.balance.policy, "rsspp");
        assert_eq!(plan.config.polling.name(), "interrupt");
        assert_eq!(plan.config.network.routes.len(), 1);
        assert!(plan.config.devices[0].mac.is_some());
    }

    #[test]
    fn flags_that_make_no_sense_are_named() {
        let wrong = |flags: &str| plan(flags).err().unwrap_or_default();
        let device = "--device lan=af_packet:e0 --port 80";
        assert!(wrong(&format!("{device} --address 10.0.0/24")).contains("10.0.0/24"));
        let address = format!("{device} --address 10.0.0.1/24");
        assert!(wrong(&format!("{address} --policy rspp")).contains("did you mean `rsspp`"));
        assert!(wrong(&format!("{address} --polling none")).contains("none"));
        assert!(wrong(&format!("{address} --gateway 10.0.0.1")).contains("10.0.0.1"));
        assert_eq!(wrong(&address), "");
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(toml_string("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
    }
}
