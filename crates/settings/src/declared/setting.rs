//! A setting as help, command lines and references show it.

use std::fmt;
use std::ops::RangeInclusive;

/// How a setting is written on a command line and in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A flag without a value, which is `true`.
    Switch,
    /// A number, or text with a unit.
    Number,
    /// Text.
    Text,
    /// Numbers, each by a flag of its own.
    Numbers,
    /// One value, or a list of them.
    List,
    /// A table with keys of its own.
    Table,
    /// A list of tables with keys of their own.
    Tables,
    /// No key: the name of something that has no settings.
    Name,
}

/// A setting as help and command lines show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key in the table.
    pub key: &'static str,
    /// Its meaning, in full sentences.
    pub help: &'static str,
    /// How it is written.
    pub form: Form,
    /// Its type in words, such as `duration`.
    pub kind: String,
    /// The units that its value may have; empty for none.
    pub units: &'static str,
    /// What stands for its value in help, such as `SIZE`.
    pub value: &'static str,
    /// The values it takes, where these are not all of its form.
    pub bounds: Option<String>,
    /// The whole numbers it takes, where it is one.
    pub range: Option<RangeInclusive<u64>>,
    /// Its value where it is left out, if it has one.
    pub default: Option<String>,
    /// Whether a switch is on where it is left out.
    pub is_on: bool,
    /// A value as a file has it, such as `"10s"`.
    pub example: String,
    /// Whether it must be given.
    pub is_required: bool,
    /// The setting that it has a meaning with only, such as `writable = true`.
    pub condition: Option<&'static str>,
    /// The value of another key with which alone the table has this key, such as `kind = "sim"`.
    pub scope: Option<String>,
    /// The setting that a command line does not take beside it.
    pub excludes: Option<&'static str>,
    /// The keys of a table.
    pub keys: Vec<Setting>,
    /// The name of its flag, where it is not that of its key.
    pub flag: Option<&'static str>,
}

impl Setting {
    /// A table with these keys.
    pub fn table(key: &'static str, help: &'static str, keys: Vec<Setting>) -> Setting {
        Setting {
            key,
            help,
            form: Form::Table,
            kind: "table".to_owned(),
            units: "",
            value: "",
            bounds: None,
            range: None,
            default: None,
            is_on: false,
            example: String::new(),
            is_required: false,
            condition: None,
            scope: None,
            excludes: None,
            keys,
            flag: None,
        }
    }

    /// A list of tables with these keys.
    pub fn tables(key: &'static str, help: &'static str, keys: Vec<Setting>) -> Setting {
        let kind = "list of tables".to_owned();
        Setting { form: Form::Tables, kind, ..Setting::table(key, help, keys) }
    }

    /// The same, with a meaning with another setting only.
    #[must_use]
    pub fn with(self, condition: &'static str) -> Setting {
        Setting { condition: Some(condition), ..self }
    }

    /// The same, which the table has with this value of another key only.
    #[must_use]
    pub fn within(self, scope: impl Into<String>) -> Setting {
        Setting { scope: Some(scope.into()), ..self }
    }

    /// The same, which must be given.
    #[must_use]
    pub fn required(self) -> Setting {
        Setting { is_required: true, ..self }
    }

    /// The settings with which alone it has a meaning, in words.
    pub fn conditions(&self) -> Option<String> {
        match (&self.scope, self.condition) {
            (Some(scope), Some(condition)) if scope != condition => {
                Some(format!("`{scope}` and `{condition}`"))
            }
            (Some(scope), _) => Some(format!("`{scope}`")),
            (None, Some(condition)) => Some(format!("`{condition}`")),
            (None, None) => None,
        }
    }

    /// Its value where it is left out; that of a switch, too, which has none in the help of commands.
    pub fn shown_default(&self) -> Option<&str> {
        let of_switch = (self.form == Form::Switch).then_some(match self.is_on {
            true => "true",
            false => "false",
        });
        self.default.as_deref().or(of_switch)
    }

    /// Whether it has keys of its own.
    pub fn is_table(&self) -> bool {
        matches!(self.form, Form::Table | Form::Tables)
    }

    /// The name of its flag, without dashes.
    pub fn flag(&self) -> String {
        self.flag.map_or_else(|| self.key.replace('_', "-"), str::to_owned)
    }

    /// The line of a TOML table that gives the setting these values, as a command line has them.
    pub fn line(&self, values: &[String]) -> String {
        let value = match (self.form, values) {
            (Form::Switch, _) => "true".to_owned(),
            (Form::Number | Form::Text, [text]) => self.form.value(text),
            (_, texts) => {
                let items = texts.iter().map(|text| Form::Number.value(text));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{} = {value}\n", self.key)
    }
}

impl Form {
    /// A value as a file has it.
    pub(super) fn value(self, text: &str) -> String {
        let is_number = text.starts_with(|c: char| c.is_ascii_digit())
            && (text.parse::<u64>().is_ok() || text.parse::<f64>().is_ok());
        match self {
            Form::Switch => text.to_owned(),
            Form::Text => quote(text),
            _ if is_number => text.to_owned(),
            _ => quote(text),
        }
    }
}

/// Its help, its bounds and its default, as `--help` shows them.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.help)?;
        if let Some(bounds) = &self.bounds {
            write!(f, " [{bounds}]")?;
        }
        if let Some(default) = &self.default {
            write!(f, " [default: {default}]")?;
        }
        Ok(())
    }
}

/// A string as TOML has it.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", character as u32));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
