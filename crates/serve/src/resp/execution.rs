//! What commands do.

use std::time::Duration;

use rheostat_base::Time;

use super::command::Command;
use super::reply::RespReply;
use super::store::{Condition, Full, Store};

/// Why a command is refused.
enum Refusal {
    Arguments,
    Syntax,
    NoInteger,
    Full,
}

impl From<Full> for Refusal {
    fn from(_: Full) -> Refusal {
        Refusal::Full
    }
}

/// Executes a command and writes its reply.
pub(super) fn execute(command: &Command, store: &Store, now: Time, out: &mut RespReply) {
    let Some((name, arguments)) = command.split() else { return };
    let Err(refusal) = run(&name, arguments, store, now, out) else { return };
    let name = String::from_utf8_lossy(&name).replace(['\r', '\n'], " ");
    let text = match refusal {
        Refusal::Arguments => {
            format!("-ERR wrong number of arguments for '{}' command", name.to_lowercase())
        }
        Refusal::Syntax => "-ERR syntax error".to_owned(),
        Refusal::NoInteger => "-ERR value is not an integer or out of range".to_owned(),
        Refusal::Full => "-OOM command not allowed when used memory > 'maxmemory'".to_owned(),
    };
    out.clear();
    line(out, &text);
}

fn run(
    name: &[u8],
    arguments: &[Vec<u8>],
    store: &Store,
    now: Time,
    out: &mut RespReply,
) -> Result<(), Refusal> {
    match (name, arguments) {
        (b"PING", []) => line(out, "+PONG"),
        (b"PING" | b"ECHO", [text]) => bulk(out, Some(text)),
        (b"QUIT", _) => line(out, "+OK"),
        // What clients ask at the start.
        (b"COMMAND" | b"CONFIG", _) => line(out, "*0"),
        (b"DBSIZE", []) => integer(out, store.len() as i64),
        (b"GET", [key]) => store.get(key, now, |value| out.value(value)),
        (b"MGET", keys @ [_, ..]) => {
            line(out, &format!("*{}", keys.len()));
            keys.iter().for_each(|key| store.get(key, now, |value| out.value(value)));
        }
        (b"SET", [key, value, options @ ..]) => {
            let (expires, condition) = set_options(options, now)?;
            match store.set(key, value, expires, condition, now)? {
                true => line(out, "+OK"),
                false => bulk(out, None),
            }
        }
        (b"MSET", pairs @ [_, _, ..]) if pairs.len() % 2 == 0 => {
            for pair in pairs.chunks(2) {
                store.set(&pair[0], &pair[1], Time::NEVER, Condition::Always, now)?;
            }
            line(out, "+OK");
        }
        (b"DEL", keys @ [_, ..]) => {
            integer(out, keys.iter().filter(|key| store.remove(key, now)).count() as i64);
        }
        (b"EXISTS", keys @ [_, ..]) => {
            let is_there = |key: &&Vec<u8>| store.get(key, now, |value| value.is_some());
            integer(out, keys.iter().filter(is_there).count() as i64);
        }
        (b"INCR", [key]) => add(out, store, key, 1, now)?,
        (b"DECR", [key]) => add(out, store, key, -1, now)?,
        (b"INCRBY", [key, by]) => add(out, store, key, number(by)?, now)?,
        (b"DECRBY", [key, by]) => {
            add(out, store, key, number(by)?.checked_neg().ok_or(Refusal::NoInteger)?, now)?;
        }
        (b"EXPIRE", [key, after]) => expire(out, store, key, after, Duration::from_secs, now)?,
        (b"PEXPIRE", [key, after]) => expire(out, store, key, after, Duration::from_millis, now)?,
        (b"TTL", [key]) => integer(out, time_left(store, key, now, 1_000_000_000)),
        (b"PTTL", [key]) => integer(out, time_left(store, key, now, 1_000_000)),
        (
            b"PING" | b"ECHO" | b"DBSIZE" | b"GET" | b"MGET" | b"SET" | b"MSET" | b"DEL"
            | b"EXISTS" | b"INCR" | b"DECR" | b"INCRBY" | b"DECRBY" | b"EXPIRE" | b"PEXPIRE"
            | b"TTL" | b"PTTL",
            _,
        ) => return Err(Refusal::Arguments),
        _ => {
            let name = String::from_utf8_lossy(name).replace(['\r', '\n'], " ");
            let name: String = name.chars().take(64).collect();
            line(out, &format!("-ERR unknown command '{name}'"));
        }
    }
    Ok(())
}

fn set_options(options: &[Vec<u8>], now: Time) -> Result<(Time, Condition), Refusal> {
    let (mut expires, mut condition) = (Time::NEVER, Condition::Always);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let mut after = |unit: fn(u64) -> Duration| -> Result<Time, Refusal> {
            let count = number(words.next().ok_or(Refusal::Syntax)?)?;
            let count = u64::try_from(count).ok().filter(|count| *count > 0);
            Ok(now + unit(count.ok_or(Refusal::NoInteger)?))
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

fn add(out: &mut RespReply, store: &Store, key: &[u8], by: i64, now: Time) -> Result<(), Refusal> {
    integer(out, store.add(key, by, now)?.ok_or(Refusal::NoInteger)?);
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
    integer(out, was_there.into());
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

fn number(text: &[u8]) -> Result<i64, Refusal> {
    let text = std::str::from_utf8(text).map_err(|_| Refusal::NoInteger)?;
    text.parse().map_err(|_| Refusal::NoInteger)
}

fn line(out: &mut RespReply, text: &str) {
    out.line(text);
}

fn integer(out: &mut RespReply, number: i64) {
    out.integer(number);
}

fn bulk(out: &mut RespReply, bytes: Option<&[u8]>) {
    out.bulk(bytes);
}
