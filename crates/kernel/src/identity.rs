//! The user and group that a configuration names.

use std::fs;

use crate::privileges::Identity;
use thiserror::Error;

/// There is no such user or group.
#[derive(Debug, Error)]
#[error(
    "there is no {kind} `{name}` in {file}: write a name that is there, or its number; \
     `useradd --system {name}` makes one"
)]
pub struct UnknownName {
    kind: &'static str,
    file: &'static str,
    name: String,
}

/// Finds the numbers of a user and a group in `/etc/passwd` and `/etc/group`. Without a group it is the user's own; without a
/// user, the process keeps its own.
///
/// # Errors
/// [`UnknownName`] for a name that neither file has.
pub fn find(user: Option<&str>, group: Option<&str>) -> Result<Option<Identity>, UnknownName> {
    let Some(user) = user else { return Ok(None) };
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    find_in(user, group, &read("/etc/passwd"), &read("/etc/group")).map(Some)
}

/// As [`find`], in these texts (passwd(5), group(5)).
fn find_in(
    user: &str,
    group: Option<&str>,
    passwd: &str,
    groups: &str,
) -> Result<Identity, UnknownName> {
    let entry = |text: &str, name: &str, number_at: usize| {
        text.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let number: u32 = fields.get(number_at)?.parse().ok()?;
            let is_it =
                fields[0] == name || name.parse() == Ok(fields.get(2)?.parse::<u32>().ok()?);
            is_it.then_some(number)
        })
    };
    let unknown = |kind, file, name: &str| UnknownName { kind, file, name: name.to_owned() };
    let number = |name: &str| name.parse::<u32>().ok();
    let uid = entry(passwd, user, 2).or(number(user));
    let gid = match group {
        Some(name) => entry(groups, name, 2).or(number(name)),
        None => entry(passwd, user, 3),
    };
    let user_number = uid.ok_or_else(|| unknown("user", "/etc/passwd", user))?;
    let name = group.unwrap_or(user);
    let group_number = gid.ok_or_else(|| unknown("group", "/etc/group", name))?;
    Ok(Identity { user: user_number, group: group_number })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nrheo:x:998:997::/:/bin/false\nbroken\n";
    const GROUPS: &str = "root:x:0:\nrheo:x:997:\nwire:x:44:rheo\n";

    #[test]
    fn names_and_numbers_are_found() {
        let found = |user, group| {
            find_in(user, group, PASSWD, GROUPS).map(|found| (found.user, found.group)).ok()
        };
        assert_eq!(found("rheo", None), Some((998, 997)));
        assert_eq!(found("rheo", Some("wire")), Some((998, 44)));
        assert_eq!(found("998", None), Some((998, 997)));
        assert_eq!(found("5000", Some("5001")), Some((5_000, 5_001)));
        assert_eq!(found("5000", None), None, "that user's group is not known");
        assert_eq!((found("nosuch", None), found("rheo", Some("nosuch"))), (None, None));
        let error = find_in("nosuch", None, PASSWD, GROUPS).unwrap_err().to_string();
        assert!(error.starts_with("there is no user `nosuch` in /etc/passwd"), "{error}");
    }
}
