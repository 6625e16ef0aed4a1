//! `rheo check --explain KEY`: a setting, or the keys of a section, from their declarations.

use std::fmt;

use rheostat_control::Reference;
use rheostat_control::reference::Entry;
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::suggestion::enumerate;
use serde_json::{Value, json};
use thiserror::Error;

/// A key that no section has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) struct UnknownKey {
    pub(super) key: String,
    /// Names nearest to it.
    pub(super) nearest: Vec<String>,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no setting is named `{}`", self.key)?;
        match self.nearest.is_empty() {
            true => f.write_str(
                "; name a section, such as `workers`, or a key, such as `workers.lanes`",
            ),
            false => {
                let names = self.nearest.iter().map(String::as_str);
                write!(f, "; near it are {}", enumerate(names))
            }
        }
    }
}

/// The explanation of everything that `key` names.
pub(super) fn explain(
    reference: &Reference,
    key: &str,
    is_json: bool,
) -> Result<String, UnknownKey> {
    let unknown = |nearest| UnknownKey { key: key.to_owned(), nearest };
    let entries = reference.find(key).map_err(unknown)?;
    let parts: Vec<String> = match is_json {
        true => {
            vec![json!({ "settings": entries.iter().map(to_json).collect::<Vec<_>>() }).to_string()]
        }
        false => entries.iter().map(|entry| Explanation(entry).to_string()).collect(),
    };
    Ok(parts.join("\n\n"))
}

/// An unknown key, for programs.
pub(super) fn unknown_to_json(unknown: &UnknownKey) -> Value {
    json!({ "ok": false, "message": unknown.to_string(), "nearest": unknown.nearest })
}

fn to_json(Entry { name, setting }: &Entry<'_>) -> Value {
    let Setting { kind, units, bounds, default, help, example, .. } = setting;
    let keys =
        |key: &Setting| to_json(&Entry { name: format!("{name}.{}", key.key), setting: key });
    let units: Vec<_> = units.split(", ").filter(|unit| !unit.is_empty()).collect();
    json!({
        "key": name,
        "help": help,
        "type": kind,
        "units": units,
        "bounds": bounds,
        "default": default,
        "required": setting.is_required,
        "scope": setting.scope,
        "condition": setting.condition,
        "example": example,
        "keys": setting.keys.iter().map(keys).collect::<Vec<_>>(),
    })
}

/// A setting, or a section with its keys, for people.
struct Explanation<'e>(&'e Entry<'e>);

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { name, setting } = self.0;
        match setting.form {
            Form::Table => write!(f, "[{name}]: {}", setting.help)?,
            Form::Tables => write!(f, "[[{name}]]: {}", setting.help)?,
            Form::Name => {
                return write!(f, "{name}: {}\n  settings   none, and no table", setting.help);
            }
            _ => write!(f, "{name}: {}", setting.help)?,
        }
        if let Some(conditions) = setting.conditions() {
            write!(f, "\n  only with  {conditions}")?;
        }
        if setting.is_table() {
            return setting.keys.iter().try_for_each(|key| line_of(key, f));
        }
        let kind = match setting.form {
            Form::Numbers => format!("list of {}", setting.kind),
            Form::List => format!("{}, or a list of them", setting.kind),
            _ => setting.kind.clone(),
        };
        write!(f, "\n  type       {kind}")?;
        if !setting.units.is_empty() {
            write!(f, "\n  unit       one of {}", setting.units)?;
        }
        if let Some(bounds) = &setting.bounds {
            write!(f, "\n  bounds     {bounds}")?;
        }
        match setting.shown_default() {
            _ if setting.is_required => write!(f, "\n  default    none: it must be given")?,
            Some(default) => write!(f, "\n  default    {default}")?,
            None => write!(f, "\n  default    none")?,
        }
        match setting.example.is_empty() {
            true => Ok(()),
            false => write!(f, "\n  example    {} = {}", setting.key, setting.example),
        }
    }
}

fn line_of(key: &Setting, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = match key.form {
        Form::Table => format!("[{}]", key.key),
        Form::Tables => format!("[[{}]]", key.key),
        _ => key.key.to_owned(),
    };
    // The first sentence.
    let help = key.help.split_once(". ").map_or(key.help, |(first, _)| first).trim_end_matches('.');
    write!(f, "\n  {name:<26} {help}")?;
    match (&key.scope, key.is_required, key.shown_default()) {
        (Some(scope), ..) => write!(f, " ({scope})"),
        (None, true, _) => f.write_str(" (required)"),
        (None, false, Some(default)) => write!(f, " (default: {default})"),
        (None, false, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
