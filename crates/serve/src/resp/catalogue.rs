//! The commands that there are, as `COMMAND` describes them.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandInfo {
    /// In capitals.
    pub(super) name: &'static str,
    /// Words, the name included; at least so many if it is negative.
    pub(super) arity: i8,
    pub(super) flags: &'static [&'static str],
    /// The first word that is a key, the last, from the end if it is negative, and the step between them; zeros without keys.
    pub(super) keys: (i8, i8, i8),
    pub(super) group: &'static str,
    /// The version of Redis that had it first.
    pub(super) since: &'static str,
    pub(super) summary: &'static str,
}

const READ: &[&str] = &["readonly", "fast"];
const WRITE: &[&str] = &["write", "fast"];
const GROW: &[&str] = &["write", "denyoom", "fast"];
const ADMIN: &[&str] = &["loading", "stale", "fast"];
const ONE: (i8, i8, i8) = (1, 1, 1);
const ALL: (i8, i8, i8) = (1, -1, 1);
const NONE: (i8, i8, i8) = (0, 0, 0);

type Row = (
    &'static str,
    i8,
    &'static [&'static str],
    (i8, i8, i8),
    &'static str,
    &'static str,
    &'static str,
);

const fn command((name, arity, flags, keys, group, since, summary): Row) -> CommandInfo {
    CommandInfo { name, arity, flags, keys, group, since, summary }
}

/// All commands, sorted by name.
pub(super) const COMMANDS: [CommandInfo; 35] = [
    command(("APPEND", 3, GROW, ONE, "string", "2.0.0", "Appends to a value")),
    command(("AUTH", -2, ADMIN, NONE, "connection", "1.0.0", "Fails: there are no passwords")),
    command(("CLIENT", -2, ADMIN, NONE, "connection", "2.4.0", "Names and lists connections")),
    command(("COMMAND", -1, ADMIN, NONE, "server", "2.8.13", "Describes commands")),
    command(("CONFIG", -2, ADMIN, NONE, "server", "2.0.0", "Shows settings")),
    command(("DBSIZE", 1, READ, NONE, "server", "1.0.0", "Counts keys")),
    command(("DECR", 2, GROW, ONE, "string", "1.0.0", "Subtracts one from a number")),
    command(("DECRBY", 3, GROW, ONE, "string", "1.0.0", "Subtracts from a number")),
    command(("DEL", -2, WRITE, ALL, "generic", "1.0.0", "Removes keys")),
    command(("ECHO", 2, ADMIN, NONE, "connection", "1.0.0", "Returns its argument")),
    command(("EXISTS", -2, READ, ALL, "generic", "1.0.0", "Counts the keys that exist")),
    command(("EXPIRE", 3, WRITE, ONE, "generic", "1.0.0", "Sets the time to live in seconds")),
    command(("FLUSHALL", -1, WRITE, NONE, "server", "1.0.0", "Removes all keys")),
    command(("FLUSHDB", -1, WRITE, NONE, "server", "1.0.0", "Removes all keys")),
    command(("GET", 2, READ, ONE, "string", "1.0.0", "Returns a value")),
    command(("HELLO", -1, ADMIN, NONE, "connection", "6.0.0", "Chooses the protocol")),
    command(("INCR", 2, GROW, ONE, "string", "1.0.0", "Adds one to a number")),
    command(("INCRBY", 3, GROW, ONE, "string", "1.0.0", "Adds to a number")),
    command(("INFO", -1, ADMIN, NONE, "server", "1.0.0", "Shows what the server is and has")),
    command(("MGET", -2, READ, ALL, "string", "1.0.0", "Returns values")),
    command(("MSET", -3, GROW, (1, -1, 2), "string", "1.0.1", "Sets values")),
    command(("PEXPIRE", 3, WRITE, ONE, "generic", "2.6.0", "Sets the time to live in ms")),
    command(("PING", -1, ADMIN, NONE, "connection", "1.0.0", "Returns PONG, or its argument")),
    command(("PSETEX", 4, GROW, ONE, "string", "2.6.0", "Sets a value for some ms")),
    command(("PTTL", 2, READ, ONE, "generic", "2.6.0", "Returns the time to live in ms")),
    command(("QUIT", -1, ADMIN, NONE, "connection", "1.0.0", "Ends the connection")),
    command(("RESET", 1, ADMIN, NONE, "connection", "6.2.0", "Forgets the state of a connection")),
    command(("SELECT", 2, ADMIN, NONE, "connection", "1.0.0", "Chooses the database: 0")),
    command(("SET", -3, GROW, ONE, "string", "1.0.0", "Sets a value")),
    command(("SETEX", 4, GROW, ONE, "string", "2.0.0", "Sets a value for some seconds")),
    command(("SETNX", 3, GROW, ONE, "string", "1.0.0", "Sets a value if there is none")),
    command(("STRLEN", 2, READ, ONE, "string", "2.2.0", "Returns the length of a value")),
    command(("TTL", 2, READ, ONE, "generic", "1.0.0", "Returns the time to live in seconds")),
    command(("TYPE", 2, READ, ONE, "generic", "1.0.0", "Returns the type of a value")),
    command(("UNLINK", -2, WRITE, ALL, "generic", "4.0.0", "Removes keys")),
];

/// The command of this name, in capitals or not.
pub(super) fn find(name: &[u8]) -> Option<&'static CommandInfo> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_sorted_and_found() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in &COMMANDS {
            assert_eq!(find(command.name.to_ascii_lowercase().as_bytes()), Some(command));
            assert_eq!(command.keys == NONE, !matches!(command.group, "string" | "generic"));
        }
        assert_eq!(find(b"BREW"), None);
    }
}
