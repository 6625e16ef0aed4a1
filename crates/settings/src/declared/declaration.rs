//! One setting.

use std::fmt;

use super::kind::Kind;
use crate::findings::Findings;
use crate::reader::Table;

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
}

/// A setting as help and command lines show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key in the table.
    pub key: &'static str,
    /// What it means, in full sentences.
    pub help: &'static str,
    /// How it is written.
    pub form: Form,
    /// What stands for its value in help, such as `SIZE`.
    pub value: &'static str,
    /// What values it takes, where that is not all of its form.
    pub bounds: Option<String>,
    /// What holds without it, where something does.
    pub default: Option<String>,
    /// Whether it must be given.
    pub is_required: bool,
    /// The setting that it has a meaning with only, such as `writable = true`.
    pub condition: Option<&'static str>,
    /// The setting that a command line does not take beside it.
    pub excludes: Option<&'static str>,
    flag: Option<&'static str>,
}

impl Setting {
    /// The name of its flag, without dashes.
    pub fn flag(&self) -> String {
        self.flag.map_or_else(|| self.key.replace('_', "-"), str::to_owned)
    }

    /// The line of a TOML table that gives the setting these values, as a command line has them.
    pub fn line(&self, values: &[String]) -> String {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = |text: &String| match is_number(text) {
            true => text.clone(),
            false => quote(text),
        };
        let value = match (self.form, values) {
            (Form::Switch, _) => "true".to_owned(),
            (Form::Number, [text]) => number(text),
            (Form::Text, [text]) => quote(text),
            (_, texts) => {
                format!("[{}]", texts.iter().map(number).collect::<Vec<_>>().join(", "))
            }
        };
        format!("{} = {value}\n", self.key)
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

/// A setting of type `T`: a [`Setting`] with its conversion.
pub struct Declaration<T> {
    key: &'static str,
    help: &'static str,
    kind: Kind<T>,
    value: &'static str,
    default: Option<T>,
    example: Option<&'static str>,
    excludes: Option<&'static str>,
    flag: Option<&'static str>,
}

impl<T: Clone + PartialEq> Declaration<T> {
    /// A setting without a default, which may be left out only if its kind has one.
    pub fn new(key: &'static str, help: &'static str, kind: Kind<T>) -> Declaration<T> {
        let default = kind.absent.clone();
        let help = help.trim_start();
        Declaration {
            key,
            help,
            kind,
            value: "VALUE",
            default,
            example: None,
            excludes: None,
            flag: None,
        }
    }

    /// What stands for its value in help.
    #[must_use]
    pub fn value(mut self, value: &'static str) -> Declaration<T> {
        self.value = value;
        self
    }

    /// What holds without it.
    #[must_use]
    pub fn default(mut self, default: T) -> Declaration<T> {
        self.default = Some(default);
        self
    }

    /// It must be given, as `example`.
    #[must_use]
    pub fn required(mut self, example: &'static str) -> Declaration<T> {
        self.example = Some(example);
        self
    }

    /// Its flag has another name than its key.
    #[must_use]
    pub fn flag(mut self, flag: &'static str) -> Declaration<T> {
        self.flag = Some(flag);
        self
    }

    /// A command line does not take the setting `key` beside it.
    #[must_use]
    pub fn excludes(mut self, key: &'static str) -> Declaration<T> {
        self.excludes = Some(key);
        self
    }

    /// The setting as help and command lines show it.
    pub fn setting(&self, condition: Option<&'static str>) -> Setting {
        let shown = |default: &T| Some((self.kind.write)(default)).filter(|text| !text.is_empty());
        let is_switch = self.kind.form == Form::Switch;
        Setting {
            key: self.key,
            help: self.help,
            form: self.kind.form,
            value: self.value,
            bounds: self.kind.bounds.clone(),
            default: self.default.as_ref().filter(|_| !is_switch).and_then(shown),
            is_required: self.example.is_some(),
            condition,
            excludes: self.excludes,
            flag: self.flag,
        }
    }

    /// Reads it from a table; refuses it if a condition is unmet. Without a value, or with a wrong one, which is noted, it has its
    /// default.
    pub fn read(
        mut self,
        unmet: Option<&str>,
        table: &mut Table<'_>,
        findings: &mut Findings,
    ) -> Option<T> {
        let default = self.default.take();
        let read = match (unmet, self.example) {
            (Some(condition), _) => {
                table.refuse(&[self.key], condition, findings);
                None
            }
            (None, Some(example)) => table.require(self.key, example, findings, self.kind.read),
            (None, None) => table.read(self.key, findings, self.kind.read),
        };
        read.or(default)
    }

    /// `key value` if `value` is not the default.
    pub fn difference(&self, value: &T) -> Option<String> {
        let differs = self.default.as_ref().is_some_and(|default| default != value);
        differs.then(|| format!("{} {}", self.key, (self.kind.write)(value)))
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
