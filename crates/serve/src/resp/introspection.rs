//! What clients ask when they connect: who they are, who the server is, and what it can do.

use std::fmt::Write as _;

use rheostat_base::Time;

use super::Resp;
use super::catalogue::{self, COMMANDS, CommandInfo};
use super::clients::{Attribute, Client, Protocol};
use super::refusal::{Refusal, number};
use super::reply::RespReply;

/// The version of Redis whose commands these are: clients look at it before they use newer ones.
const VERSION: &str = "7.2.0";
/// The sections of `INFO`.
const SECTIONS: [&str; 7] =
    ["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "Keyspace"];

/// `HELLO [2|3 [AUTH name password] [SETNAME name]]`: chooses the protocol.
pub(super) fn hello(
    client: &Client,
    arguments: &[Vec<u8>],
    out: &mut RespReply,
) -> Result<(), Refusal> {
    let mut words = arguments.iter();
    let mut protocol = client.protocol();
    if let Some(version) = words.next() {
        let version = number(version).map_err(|_| {
            Refusal::Other("-ERR Protocol version is not an integer or out of range".to_owned())
        })?;
        protocol = match version {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(Refusal::Other("-NOPROTO unsupported protocol version".to_owned())),
        };
    }
    let mut name = None;
    while let Some(word) = words.next() {
        match &word.to_ascii_uppercase()[..] {
            b"AUTH" => {
                let _ = words.next().zip(words.next()).ok_or(Refusal::Syntax)?;
                return Err(no_password());
            }
            b"SETNAME" => name = Some(words.next().ok_or(Refusal::Syntax)?),
            _ => return Err(Refusal::Syntax),
        }
    }
    if let Some(name) = name {
        set(client, Attribute::Name, name)?;
    }
    client.set_protocol(protocol);
    out.protocol = protocol;
    out.map(7);
    for (key, value) in [("server", "redis"), ("version", VERSION)] {
        out.pair(key, value);
    }
    out.bulk(Some(b"proto"));
    out.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    out.bulk(Some(b"id"));
    out.integer(client.id as i64);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        out.pair(key, value);
    }
    out.bulk(Some(b"modules"));
    out.array(0);
    Ok(())
}

/// Who gives a password expects it to count for something.
pub(super) fn no_password() -> Refusal {
    let text = "-ERR AUTH <password> called without any password configured for the default user. \
                Are you sure your configuration is correct?";
    Refusal::Other(text.to_owned())
}

/// `CLIENT ID|INFO|LIST|SETNAME|GETNAME|SETINFO|NO-EVICT|NO-TOUCH`.
pub(super) fn client(
    service: &Resp,
    client: &Client,
    arguments: &[Vec<u8>],
    now: Time,
    out: &mut RespReply,
) -> Result<(), Refusal> {
    let Some((name, arguments)) = arguments.split_first() else { return Err(Refusal::Arguments) };
    match (&name.to_ascii_uppercase()[..], arguments) {
        (b"ID", []) => out.integer(client.id as i64),
        (b"INFO", []) => out.text(&client.line(now)),
        (b"GETNAME", []) => match client.name() {
            name if name.is_empty() => out.bulk(None),
            name => out.bulk(Some(name.as_bytes())),
        },
        (b"SETNAME", [name]) => {
            set(client, Attribute::Name, name)?;
            out.line("+OK");
        }
        (b"SETINFO", [attribute, value]) => {
            let attribute = match &attribute.to_ascii_uppercase()[..] {
                b"LIB-NAME" => Attribute::Library,
                b"LIB-VER" => Attribute::LibraryVersion,
                _ => return Err(Refusal::Other("-ERR Unrecognized option".to_owned())),
            };
            set(client, attribute, value)?;
            out.line("+OK");
        }
        (b"LIST", []) => out.text(&service.clients.list(None, now)),
        (b"LIST", [word, kind]) if word.eq_ignore_ascii_case(b"TYPE") => {
            let is_normal = kind.eq_ignore_ascii_case(b"normal");
            let is_known = ["master", "replica", "slave", "pubsub"]
                .iter()
                .any(|other| kind.eq_ignore_ascii_case(other.as_bytes()));
            match (is_normal, is_known) {
                (true, _) => out.text(&service.clients.list(None, now)),
                (_, true) => out.text(""),
                _ => return Err(Refusal::Syntax),
            }
        }
        (b"LIST", [word, ids @ ..]) if word.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let ids = ids.iter().map(|id| number(id).map(|id| id as u64));
            let ids = ids.collect::<Result<Vec<_>, _>>()?;
            out.text(&service.clients.list(Some(&ids), now));
        }
        // Nothing is evicted, and no time of use is kept.
        (b"NO-EVICT" | b"NO-TOUCH", [word])
            if word.eq_ignore_ascii_case(b"ON") || word.eq_ignore_ascii_case(b"OFF") =>
        {
            out.line("+OK");
        }
        (b"LIST" | b"NO-EVICT" | b"NO-TOUCH", _) => return Err(Refusal::Syntax),
        (b"ID" | b"INFO" | b"GETNAME" | b"SETNAME" | b"SETINFO", _) => {
            return Err(Refusal::Arguments);
        }
        _ => return Err(Refusal::Subcommand(name.clone())),
    }
    Ok(())
}

fn set(client: &Client, attribute: Attribute, value: &[u8]) -> Result<(), Refusal> {
    client.set(attribute, value).map_err(|_| {
        let what = match attribute {
            Attribute::Name => "Client names",
            Attribute::Library => "lib-name",
            Attribute::LibraryVersion => "lib-ver",
        };
        let text = "cannot contain spaces, newlines or special characters.";
        Refusal::Other(format!("-ERR {what} {text}"))
    })
}

/// `COMMAND [COUNT|LIST|INFO [name …]|DOCS [name …]]`.
pub(super) fn command(arguments: &[Vec<u8>], out: &mut RespReply) -> Result<(), Refusal> {
    let Some((name, names)) = arguments.split_first() else {
        out.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| describe(command, out));
        return Ok(());
    };
    match (&name.to_ascii_uppercase()[..], names) {
        (b"COUNT", []) => out.integer(COMMANDS.len() as i64),
        (b"LIST", []) => {
            out.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| out.bulk(Some(&lower(command))));
        }
        (b"INFO", []) => return self::command(&[], out),
        (b"INFO", names) => {
            out.array(names.len());
            for name in names {
                match catalogue::find(name) {
                    Some(command) => describe(command, out),
                    None => out.no_array(),
                }
            }
        }
        (b"DOCS", []) => document(&COMMANDS.each_ref(), out),
        (b"DOCS", names) => {
            let found: Vec<_> = names.iter().filter_map(|name| catalogue::find(name)).collect();
            document(&found, out);
        }
        (b"COUNT" | b"LIST", _) => return Err(Refusal::Arguments),
        _ => return Err(Refusal::Subcommand(name.clone())),
    }
    Ok(())
}

fn lower(command: &CommandInfo) -> Vec<u8> {
    command.name.to_ascii_lowercase().into_bytes()
}

fn describe(command: &CommandInfo, out: &mut RespReply) {
    out.array(10);
    out.bulk(Some(&lower(command)));
    out.integer(command.arity.into());
    out.set(command.flags.len());
    command.flags.iter().for_each(|flag| out.line(&format!("+{flag}")));
    let (first, last, step) = command.keys;
    for number in [first, last, step] {
        out.integer(number.into());
    }
    // Categories of access, hints, places of keys, subcommands.
    out.set(0);
    (0..3).for_each(|_| out.array(0));
}

fn document(commands: &[&CommandInfo], out: &mut RespReply) {
    out.map(commands.len());
    for command in commands {
        out.bulk(Some(&lower(command)));
        let fields =
            [("summary", command.summary), ("since", command.since), ("group", command.group)];
        out.map(fields.len());
        for (name, value) in fields {
            out.pair(name, value);
        }
    }
}

/// `CONFIG GET pattern …`: settings whose names one of the patterns matches.
pub(super) fn config(
    service: &Resp,
    arguments: &[Vec<u8>],
    out: &mut RespReply,
) -> Result<(), Refusal> {
    let Some((name, patterns)) = arguments.split_first() else { return Err(Refusal::Arguments) };
    if !name.eq_ignore_ascii_case(b"GET") {
        return Err(Refusal::Subcommand(name.clone()));
    }
    if patterns.is_empty() {
        return Err(Refusal::Arguments);
    }
    let settings = [
        ("appendonly", "no".to_owned()),
        ("databases", "1".to_owned()),
        ("maxmemory", service.config.memory.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("proto-max-bulk-len", service.config.longest_value.to_string()),
        ("save", String::new()),
    ];
    let is_wanted = |name: &str| {
        patterns.iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), name.as_bytes()))
    };
    let wanted: Vec<_> = settings.iter().filter(|(name, _)| is_wanted(name)).collect();
    out.map(wanted.len());
    for (name, value) in wanted {
        out.pair(name, value);
    }
    Ok(())
}

/// Whether a pattern with `*` and `?` matches a name. Takes time in proportion to both lengths multiplied.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut behind, mut star) = (0, 0, None);
    while behind < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, behind));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[behind] => {
                (at, behind) = (at + 1, behind + 1);
            }
            _ => {
                let Some((place, start)) = star else { return false };
                star = Some((place, start + 1));
                (at, behind) = (place + 1, start + 1);
            }
        }
    }
    pattern[at.min(pattern.len())..].iter().all(|byte| *byte == b'*')
}

/// `INFO [section …]`.
pub(super) fn info(service: &Resp, sections: &[Vec<u8>], now: Time, out: &mut RespReply) {
    let is_all = |name: &Vec<u8>| {
        ["all", "default", "everything"].iter().any(|all| name.eq_ignore_ascii_case(all.as_bytes()))
    };
    let is_wanted = |section: &str| {
        sections.is_empty()
            || sections
                .iter()
                .any(|name| is_all(name) || name.eq_ignore_ascii_case(section.as_bytes()))
    };
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| is_wanted(section)) {
        if !text.is_empty() {
            text += "\r\n";
        }
        let _ = write!(text, "# {section}\r\n");
        put_section(service, section, now, &mut text);
    }
    out.text(&text);
}

fn put_section(service: &Resp, section: &str, now: Time, text: &mut String) {
    let Resp { store, clients, config, started, .. } = service;
    let _ = match section {
        "Server" => write!(
            text,
            "redis_version:{VERSION}\r\nredis_mode:standalone\r\nserver_name:rheo\r\n\
             rheo_version:{}\r\nuptime_in_seconds:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            now.since(*started).as_secs()
        ),
        "Clients" => write!(text, "connected_clients:{}\r\n", clients.len()),
        "Memory" => write!(
            text,
            "used_memory:{}\r\nmaxmemory:{}\r\nmaxmemory_policy:noeviction\r\n",
            store.taken(),
            config.memory
        ),
        "Persistence" => write!(text, "loading:0\r\n"),
        "Stats" => write!(text, "total_connections_received:{}\r\n", clients.accepted()),
        "Replication" => write!(text, "role:master\r\nconnected_slaves:0\r\n"),
        _ => match store.len() {
            0 => Ok(()),
            keys => write!(text, "db0:keys={keys}\r\n"),
        },
    };
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_names() {
        for (pattern, is_right) in [
            ("save", true),
            ("s*", true),
            ("*", true),
            ("*a*e", true),
            ("s?ve", true),
            ("**", true),
            ("", false),
            ("sav", false),
            ("save?", false),
            ("a*", false),
            ("*aa*", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), b"save"), is_right, "{pattern}");
        }
        // No exponential time.
        let (pattern, name) = ("*a".repeat(500) + "b", "a".repeat(4_000));
        assert!(!matches(pattern.as_bytes(), name.as_bytes()));
    }
}
