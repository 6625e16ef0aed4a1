//! What commands do.

use std::time::Duration;

use rheostat_base::Time;

use super::clients::Client;
use super::command::Command;
use super::refusal::{Refusal, number};
use super::reply::RespReply;
use super::store::{Condition, Store};
use super::{Resp, catalogue, introspection};

/// Executes a command and writes its reply.
pub(super) fn execute(command: Command, service: &Resp, now: Time, out: &mut RespReply) {
    out.protocol = command.protocol;
    let client = command.client.clone();
    let Some((name, mut arguments)) = command.split() else { return };
    let done = match client {
        Some(client) => run_for_client(&name, &arguments, service, &client, now, out),
        None => run(&name, &mut arguments, service, now, out),
    };
    let Err(refusal) = done else { return };
    let name = printable(&name);
    let text = match refusal {
        Refusal::Arguments => {
            format!("-ERR wrong number of arguments for '{}' command", name.to_lowercase())
        }
        Refusal::Syntax => "-ERR syntax error".to_owned(),
        Refusal::NoInteger => "-ERR value is not an integer or out of range".to_owned(),
        Refusal::TooLong => {
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)".to_owned()
        }
        Refusal::Subcommand(subcommand) => {
            format!(
                "-ERR unknown subcommand '{}' of '{}'",
                printable(&subcommand),
                name.to_lowercase()
            )
        }
        Refusal::Other(text) => text,
        Refusal::Full => "-OOM command not allowed when used memory > 'maxmemory'".to_owned(),
    };
    out.clear();
    out.line(&text);
}

/// A name of a client's in a reply: of one line, and not long.
fn printable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).replace(['\r', '\n'], " ");
    name.chars().take(64).collect()
}

/// Commands about the connection itself.
fn run_for_client(
    name: &[u8],
    arguments: &[Vec<u8>],
    service: &Resp,
    client: &Client,
    now: Time,
    out: &mut RespReply,
) -> Result<(), Refusal> {
    match (name, arguments) {
        (b"HELLO", arguments) => introspection::hello(client, arguments, out),
        (b"CLIENT", arguments) => introspection::client(service, client, arguments, now, out),
        (b"RESET", []) => {
            client.reset();
            out.line("+RESET");
            Ok(())
        }
        _ => Err(Refusal::Arguments),
    }
}

fn run(
    name: &[u8],
    arguments: &mut [Vec<u8>],
    service: &Resp,
    now: Time,
    out: &mut RespReply,
) -> Result<(), Refusal> {
    let (store, take) = (&service.store, std::mem::take::<Vec<u8>>);
    match (name, arguments) {
        (b"PING", []) => out.line("+PONG"),
        (b"PING" | b"ECHO", [text]) => out.bulk(Some(text)),
        (b"QUIT", _) => out.line("+OK"),
        (b"AUTH", [_] | [_, _]) => return Err(introspection::no_password()),
        (b"SELECT", [number]) => match self::number(number)? {
            0 => out.line("+OK"),
            _ => return Err(Refusal::Other("-ERR DB index is out of range".to_owned())),
        },
        (b"COMMAND", arguments) => introspection::command(arguments, out)?,
        (b"CONFIG", arguments) => introspection::config(service, arguments, out)?,
        (b"INFO", sections) => introspection::info(service, sections, now, out),
        (b"FLUSHALL" | b"FLUSHDB", arguments) => {
            match arguments {
                [] => {}
                [word]
                    if word.eq_ignore_ascii_case(b"ASYNC")
                        || word.eq_ignore_ascii_case(b"SYNC") => {}
                _ => return Err(Refusal::Syntax),
            }
            store.clear();
            out.line("+OK");
        }
        (b"DBSIZE", []) => out.integer(store.len() as i64),
        (b"GET", [key]) => store.get(key, now, |value| out.value(value)),
        (b"MGET", keys @ [_, ..]) => {
            out.line(&format!("*{}", keys.len()));
            keys.iter().for_each(|key| store.get(key, now, |value| out.value(value)));
        }
        (b"SET", [key, value, options @ ..]) => {
            let (expires, condition) = set_options(options, now)?;
            match store.set(key, take(value), expires, condition, now)? {
                true => out.line("+OK"),
                false => out.bulk(None),
            }
        }
        (b"SETNX", [key, value]) => {
            let is_set = store.set(key, take(value), Time::NEVER, Condition::IfNew, now)?;
            out.integer(is_set.into());
        }
        (b"SETEX" | b"PSETEX", [key, after, value]) => {
            let unit = if name == b"SETEX" { Duration::from_secs } else { Duration::from_millis };
            let expires = time_after(after, unit, now)?;
            store.set(key, take(value), expires, Condition::Always, now)?;
            out.line("+OK");
        }
        (b"APPEND", [key, more]) => {
            let longest = service.config.longest_value;
            let len = store.append(key, take(more), longest, now)?.ok_or(Refusal::TooLong)?;
            out.integer(len as i64);
        }
        (b"STRLEN", [key]) => {
            let len = store.get(key, now, |value| value.map_or(0, |value| value.len()));
            out.integer(len as i64);
        }
        (b"TYPE", [key]) => {
            let is_there = store.get(key, now, |value| value.is_some());
            out.line(if is_there { "+string" } else { "+none" });
        }
        (b"MSET", pairs @ [_, _, ..]) if pairs.len() % 2 == 0 => {
            for pair in pairs.chunks_mut(2) {
                let value = take(&mut pair[1]);
                store.set(&pair[0], value, Time::NEVER, Condition::Always, now)?;
            }
            out.line("+OK");
        }
        (b"DEL" | b"UNLINK", keys @ [_, ..]) => {
            out.integer(keys.iter().filter(|key| store.remove(key, now)).count() as i64);
        }
        (b"EXISTS", keys @ [_, ..]) => {
            let is_there = |key: &&Vec<u8>| store.get(key, now, |value| value.is_some());
            out.integer(keys.iter().filter(is_there).count() as i64);
        }
        (b"INCR", [key]) => add(out, store, key, 1, now)?,
        (b"DECR", [key]) => add(out, store, key, -1, now)?,
        (b"INCRBY", [key, by]) => add(out, store, key, number(by)?, now)?,
        (b"DECRBY", [key, by]) => {
            add(out, store, key, number(by)?.checked_neg().ok_or(Refusal::NoInteger)?, now)?;
        }
        (b"EXPIRE", [key, after]) => expire(out, store, key, after, Duration::from_secs, now)?,
        (b"PEXPIRE", [key, after]) => expire(out, store, key, after, Duration::from_millis, now)?,
        (b"TTL", [key]) => out.integer(time_left(store, key, now, 1_000_000_000)),
        (b"PTTL", [key]) => out.integer(time_left(store, key, now, 1_000_000)),
        _ if catalogue::find(name).is_some() => return Err(Refusal::Arguments),
        _ => {
            let text = format!("-ERR unknown command '{}'", printable(name));
            return Err(Refusal::Other(text));
        }
    }
    Ok(())
}

fn set_options(options: &[Vec<u8>], now: Time) -> Result<(Time, Condition), Refusal> {
    let (mut expires, mut condition) = (Time::NEVER, Condition::Always);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let mut after = |unit: fn(u64) -> Duration| -> Result<Time, Refusal> {
            time_after(words.next().ok_or(Refusal::Syntax)?, unit, now)
        };
        match &word.to_ascii_uppercase()[..] {
            b"EX" => expires = after(Duration::from_secs)?,
            b"PX" => expires = after(Duration::from_millis)?,
            b"NX" if condition == Condition::Always => condition = Condition::IfNew,
            b"XX" if condition == Condition::Always => condition = Condition::IfThere,
            _ => return Err(Refusal::Syntax),
        }
    }
    Ok((expires, condition))
}

/// The time that lies so many units after now, at least one.
fn time_after(count: &[u8], unit: fn(u64) -> Duration, now: Time) -> Result<Time, Refusal> {
    let count = u64::try_from(number(count)?).ok().filter(|count| *count > 0);
    Ok(now + unit(count.ok_or(Refusal::NoInteger)?))
}

fn add(out: &mut RespReply, store: &Store, key: &[u8], by: i64, now: Time) -> Result<(), Refusal> {
    out.integer(store.add(key, by, now)?.ok_or(Refusal::NoInteger)?);
    Ok(())
}

fn expire(
    out: &mut RespReply,
    store: &Store,
    key: &[u8],
    after: &[u8],
    unit: fn(u64) -> Duration,
    now: Time,
) -> Result<(), Refusal> {
    let was_there = match u64::try_from(number(after)?) {
        Ok(after @ 1..) => store.expire(key, now + unit(after), now),
        // It goes at once.
        _ => store.remove(key, now),
    };
    out.integer(was_there.into());
    Ok(())
}

/// What is left of a key's time in such units, rounded up; -1 for a key that stays, -2 for one that is not there.
fn time_left(store: &Store, key: &[u8], now: Time, unit: u64) -> i64 {
    match store.expires(key, now) {
        None => -2,
        Some(Time::NEVER) => -1,
        Some(expires) => (expires.as_nanos() - now.as_nanos()).div_ceil(unit) as i64,
    }
}
