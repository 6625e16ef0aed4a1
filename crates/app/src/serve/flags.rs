//! The flags of `rheo serve`: those of `[serve]`, which its settings declare, and those of other sections. They become a
//! configuration, so that both are read and checked by the same rules.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use rheostat_control::config::ServeConfig;
use rheostat_control::overrides::KindOverride;
use rheostat_control::{Config, DeviceOverride, LoadError, Overrides, Registry};
use rheostat_io::ImpairConfig;
use rheostat_serve::registry::ApplicationRegistration;
use rheostat_settings::declared::{Form, Setting, quote};
use rheostat_settings::{Findings, Report as Mistakes, Table, document};

use super::{Error, NotLive, Report};
use crate::app::App;
use crate::attachment::AttachmentArgs;
use crate::log::{LogArgs, WrongVariable};
use crate::network::NoAddress;
use crate::registered_help::{bounds_of, default_of, help_of, numbers_of};

const EXAMPLES: &str = "Examples:
  rheo serve http --root . --device lan=host:127.0.0.1 --port 8080
  rheo serve http --root /srv/www --device lan=tap:rheo0 --address 10.0.0.1/24 \\
    --port 80
  rheo serve echo --device lan=af_xdp:eth1 --address 192.168.77.1/24 \\
    --address fd77::1/64 --port 7
  rheo serve resp --memory 1GiB --device lan=af_xdp:eth1 \\
    --address 192.168.77.1/24 --port 6379
  rheo serve work --service bimodal-1 --device lan=af_xdp:eth1 \\
    --address 192.168.77.1/24 --port 7000
  rheo serve work --calibrate --work chase --service 10us --json
  rheo serve relay --to 192.0.2.7:22 --device lan=af_xdp:eth1 \\
    --address 192.168.77.1/24 --gateway 192.168.77.254 --port 2222
  rheo serve http --root . --device lan=af_xdp:eth1 --address 192.168.77.1/24 \\
    --port 8080 --lanes 2 --policy rsspp
  rheo serve http --root . --device lan=af_xdp:eth0 --address 192.0.2.10/24 \\
    --port 80 --beside-kernel

A device of kind host is the kernel's sockets, without privileges, for development. On every other device, the addresses
must not be those of this machine's kernel: rheo answers ARP and neighbour discovery for them itself. With
--beside-kernel they must be: the listed ports of TCP are the service's, and ssh and all else go on.
A tap interface is this machine's end of a cable to rheo; give it an address on the same network:
  ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up
  curl http://10.0.0.1/

`listening A:P` is printed for each address once connections are accepted. SIGINT, SIGTERM, SIGQUIT, SIGHUP drain the
service: it accepts no more connections, closes those that are idle and the others behind the reply at hand, resets what
is left after --drain-time, and prints its summary. A second SIGINT, SIGTERM or SIGQUIT ends it at once.

The exit status is 0 when all invariants held, 1 when one did not, 2 when the service could not start, 3 when it ended
because an interface was gone, 130 when it was ended at once.";

/// The name of an application, and flags.
#[derive(Debug)]
pub(crate) struct Args {
    application: String,
    flags: ArgMatches,
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        command.subcommand_required(true).arg_required_else_help(true).after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (application, flags) = matches.subcommand().ok_or_else(missing)?;
        Ok(Args { application: application.to_owned(), flags: flags.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags of other sections than `[serve]`.
#[derive(Debug, clap::Args)]
struct CommonArgs {
    #[arg(long, help = device_help(), value_name = "NAME=KIND:ARG")]
    device: DeviceOverride,
    /// An address of the device with its length, such as 10.0.0.1/24 or fd00::1/64; may be given several times.
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    address: Vec<String>,
    /// Where peers beyond the link are reached: the router's address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "beside_kernel")]
    gateway: Vec<IpAddr>,
    #[arg(long, help = help_of("steering.key"), value_name = "NAME")]
    hash_key: Option<String>,
    #[arg(long, help = help_of("workers.lanes"), value_name = "N", value_parser = numbers_of("workers.lanes"))]
    lanes: Option<u16>,
    // Their help lists the names that are registered.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    #[arg(long, value_name = "NAME")]
    polling: Option<String>,
    /// Put a bad network before the device: packets of both directions are lost, change places with the next, and take
    /// longer; some arrive twice; as loss=0.01,duplicate=0.001,reorder=0.01,delay=50ms,seed=7.
    #[arg(long, value_name = "FAULTS")]
    fault: Option<ImpairConfig>,
    /// Where `rheo connections`, `rheo status` and `rheo stop` reach the service: the path of a control socket.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    #[arg(long, help = help_of("observe.http"), value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    attachment: AttachmentArgs,
    #[arg(long, help = help_of("run.duration"), value_name = "TIME", value_parser = rheostat_base::unit::parse_duration)]
    duration: Option<Duration>,
    /// Time the stages of requests, of one in 256 and of the slowest 1,000, and say where the time went: receive queue, TCP in,
    /// queue, application, waiting for its turn to leave, TCP out. For http, resp, echo and work.
    #[arg(long)]
    times: bool,
    /// Print the summary as one line of JSON, the last of standard output.
    #[arg(long)]
    json: bool,
}

fn device_help() -> String {
    format!(
        "A device, as NAME=KIND:INTERFACE, such as lan=tap:rheo0, lan=af_xdp:eth1 or lan=af_packet:eth1. With ,ring=N behind it, \
         rings between the kernel and a lane hold N packets, {}; {} otherwise. lan=host:127.0.0.1 or lan=host:[::1] serves at an \
         address of this machine over the kernel's sockets, without privileges: for development.",
        bounds_of("device.ring"),
        default_of("device.ring")
    )
}

/// `command`, which has a subcommand `serve`, with a subcommand of that for each application that is registered.
pub(crate) fn with_applications(command: Command, registry: &Registry) -> Command {
    let subcommand = |application| subcommand(application, registry);
    let applications = registry.applications.iter().map(subcommand).collect::<Vec<_>>();
    command.mut_subcommand("serve", |serve| serve.subcommands(applications))
}

fn subcommand(application: &ApplicationRegistration, registry: &Registry) -> Command {
    let command = Command::new(application.name);
    let command = command.args(application.settings.iter().map(flag));
    // The flags in common have a description of their own.
    let command = <CommonArgs as clap::Args>::augment_args(command).about(application.summary);
    let command = command.args(ServeConfig::declarations(&registry.schedulers).iter().map(flag));
    let Some(action) = application.action else { return command };
    let flag = Arg::new(action.flag).long(action.flag).help(action.help);
    let mut command = command.arg(flag.action(ArgAction::SetTrue));
    let is_required = |arg: &&Arg| arg.is_required_set();
    let required: Vec<_> =
        command.get_arguments().filter(is_required).map(|arg| arg.get_id().clone()).collect();
    for id in required {
        let unless = |arg: Arg| arg.required(false).required_unless_present(action.flag);
        command = command.mut_arg(id, unless);
    }
    command
}

/// The flag of a setting.
fn flag(setting: &Setting) -> Arg {
    let flag = Arg::new(setting.key).long(&*setting.flag().leak()).help(setting.to_string());
    let flag = match setting.form {
        Form::Switch => flag.action(ArgAction::SetTrue),
        Form::Numbers => flag.action(ArgAction::Append).value_name(setting.value),
        _ => flag.action(ArgAction::Set).value_name(setting.value),
    };
    let flag = match setting.excludes {
        Some(key) => flag.conflicts_with(key),
        None => flag,
    };
    // A setting that has a meaning with a switch only.
    let switch = setting.condition.and_then(|condition| condition.strip_suffix(" = true"));
    let flag = match switch {
        Some(key) => flag.requires(key),
        None => flag,
    };
    flag.required(setting.is_required)
}

/// The settings that are given, as lines of a TOML table.
fn lines(settings: &[Setting], flags: &ArgMatches) -> String {
    let line = |setting: &Setting| match setting.form {
        Form::Switch => flags.get_flag(setting.key).then(|| setting.line(&[])),
        _ => {
            let values = flags.get_many::<String>(setting.key)?;
            Some(setting.line(&values.cloned().collect::<Vec<_>>()))
        }
    };
    settings.iter().filter_map(line).collect()
}

impl Args {
    fn application<'a>(&self, app: &'a App) -> &'a ApplicationRegistration {
        let mut known = app.registry.applications.iter();
        let found = known.find(|application| application.name == self.application);
        found.expect("each subcommand is an application")
    }

    /// Does what a flag of the application states in place of serving. `false` if there is none.
    ///
    /// # Errors
    /// [`Error`] when the settings make no sense.
    pub(super) fn acts(&self, app: &App) -> Result<bool, Error> {
        let application = self.application(app);
        if !application.action.is_some_and(|action| self.flags.get_flag(action.flag)) {
            return Ok(false);
        }
        let text = "[serve]\n".to_owned() + &lines(&application.settings, &self.flags);
        let mut findings = Findings::default();
        let read = document::parse(&text).map(|document| {
            let read = Table::read_root(&document, &mut findings, |root, findings| {
                let read = |table: &mut Table<'_>, findings: &mut Findings| {
                    application.read(table, findings)
                };
                root.section("serve", findings, read)
            });
            read.flatten()
        });
        match read {
            Ok(Some(configured)) if !findings.refuses() => {
                configured.act(self.flags.get_flag("json"))?;
                Ok(true)
            }
            Ok(_) => {
                let mistakes = Mistakes::new("flags", &text, findings.into_list());
                Err(LoadError::Wrong(Box::new(mistakes)).into())
            }
            Err(findings) => {
                Err(LoadError::Wrong(Box::new(Mistakes::new("flags", &text, findings))).into())
            }
        }
    }

    /// The flags as a configuration, with what stands in none.
    ///
    /// # Errors
    /// [`Error`] when the flags make no sense.
    pub(super) fn config(
        &self,
        app: &App,
    ) -> Result<(Config, Option<ImpairConfig>, Report, AttachmentArgs), Error> {
        let application = self.application(app);
        // What is missing where another flag has the application act is the device.
        let common = CommonArgs::from_arg_matches(&self.flags).map_err(|_| NotLive)?;
        let text = device(&common)?
            + &format!("[serve]\nservice = {}\n", quote(application.name))
            + &lines(&ServeConfig::declarations(&app.registry.schedulers), &self.flags)
            + &lines(&application.settings, &self.flags)
            + &steering(&common);
        let parsed = Config::parse_with(&text, "flags", &overrides(&common)?, &app.registry);
        let (config, _) = parsed.map_err(LoadError::Wrong)?;
        let report = Report { json: common.json, times: common.times };
        Ok((config, common.fault, report, common.attachment))
    }
}

/// The device, its addresses, and routes.
fn device(args: &CommonArgs) -> Result<String, Error> {
    let (kind, addresses) = match &args.device.kind {
        KindOverride::Live { .. } if args.address.is_empty() => return Err(NoAddress.into()),
        KindOverride::Live { config, .. } => (config.word(), args.address.clone()),
        KindOverride::Host(addresses) => {
            let own = addresses.iter().map(IpAddr::to_string);
            ("host", own.chain(args.address.iter().cloned()).collect())
        }
        KindOverride::Registered(own) if own.0.facts().is_live => {
            if args.address.is_empty() {
                return Err(NoAddress.into());
            }
            // The flag's device takes the place of this one.
            ("tap", args.address.clone())
        }
        _ => return Err(NotLive.into()),
    };
    let addresses: Vec<_> = addresses.iter().map(|address| quote(address)).collect();
    let mut text = format!(
        "[[device]]\nname = {}\nkind = \"{kind}\"\naddress = [{}]\n",
        quote(&args.device.name),
        addresses.join(", ")
    );
    for gateway in &args.gateway {
        let everywhere = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        let _ = writeln!(text, "[[route]]\nto = \"{everywhere}\"\nvia = \"{gateway}\"");
    }
    Ok(text)
}

/// How connections are placed on lanes.
fn steering(args: &CommonArgs) -> String {
    let key = args.hash_key.as_deref();
    key.map_or_else(String::new, |key| format!("[steering]\nkey = {}\n", quote(key)))
}

fn overrides(args: &CommonArgs) -> Result<Overrides, WrongVariable> {
    let is_host = matches!(args.device.kind, KindOverride::Host(_));
    let usual = (!is_host).then(|| "interrupt".to_owned());
    Ok(Overrides {
        devices: vec![args.device.clone()],
        policy: args.policy.clone(),
        polling: args.polling.clone().or(usual),
        lanes: args.lanes,
        duration: args.duration,
        control: args.control.clone(),
        http: args.http,
        log: args.log.targets()?,
        log_format: args.log.format(),
        ..Overrides::default()
    })
}

#[cfg(test)]
mod tests;
