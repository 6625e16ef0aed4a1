//! One setting.

use super::kind::Kind;
use super::setting::{Form, Setting};
use crate::findings::Findings;
use crate::reader::Table;

/// A setting of type `T`: a [`Setting`] with its conversion.
pub struct Declaration<T> {
    key: &'static str,
    help: &'static str,
    kind: Kind<T>,
    value: &'static str,
    default: Option<T>,
    example: Option<&'static str>,
    /// The line to add where it is missing, if it must be given.
    required: Option<&'static str>,
    condition: Option<&'static str>,
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
            required: None,
            condition: None,
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

    /// A value as a file has it, where that of its kind is no good example.
    #[must_use]
    pub fn example(mut self, value: &'static str) -> Declaration<T> {
        self.example = Some(value);
        self
    }

    /// It must be given, as this line.
    #[must_use]
    pub fn required(mut self, line: &'static str) -> Declaration<T> {
        self.required = Some(line);
        self
    }

    /// It has a meaning with another setting only, such as `writable = true`. Its reader refuses it otherwise, by
    /// [`Declaration::refuse`].
    #[must_use]
    pub fn with(mut self, condition: &'static str) -> Declaration<T> {
        self.condition = Some(condition);
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
        let default = self.default.as_ref().and_then(shown);
        Setting {
            key: self.key,
            help: self.help,
            form: self.kind.form,
            kind: self.kind.noun.to_owned(),
            units: self.kind.units,
            value: self.value,
            bounds: self.kind.bounds.clone(),
            range: self.kind.range.clone(),
            example: self.shown_example(default.as_deref()),
            is_on: is_switch && default.as_deref() == Some("true"),
            default: default.filter(|_| !is_switch),
            is_required: self.required.is_some(),
            condition: condition.or(self.condition),
            scope: None,
            excludes: self.excludes,
            keys: Vec::new(),
            flag: self.flag,
        }
    }

    fn shown_example(&self, default: Option<&str>) -> String {
        let of_line = self.required.and_then(|line| line.split_once(" = "));
        let given = self.example.or(of_line.map(|(_, value)| value));
        match (given, &self.kind.example, default) {
            (Some(given), ..) => given.to_owned(),
            (None, Some(of_kind), None) => of_kind.clone(),
            (None, _, Some(default)) if self.kind.form == Form::Switch => {
                (default != "true").to_string()
            }
            (None, _, Some(default)) => self.kind.form.value(default),
            (None, None, None) => String::new(),
        }
    }

    /// Reads it from a table. Without a value, or with a wrong one, which is noted, it has its default.
    pub fn read(&self, table: &mut Table<'_>, findings: &mut Findings) -> Option<T> {
        let read = match self.required {
            Some(line) => table.require(self.key, line, findings, &self.kind.read),
            None => table.read(self.key, findings, &self.kind.read),
        };
        read.or_else(|| self.default.clone())
    }

    /// As [`Declaration::read`], where it need not be given.
    pub fn read_given(&self, table: &mut Table<'_>, findings: &mut Findings) -> Option<T> {
        table.read(self.key, findings, &self.kind.read)
    }

    /// As [`Declaration::read`], for a setting that is declared with a default.
    ///
    /// # Panics
    /// If it has no default.
    pub fn read_or_default(&self, table: &mut Table<'_>, findings: &mut Findings) -> T {
        self.read(table, findings).unwrap_or_else(|| panic!("`{}` has a default", self.key))
    }

    /// As [`Declaration::read`], unless a condition is unmet: then it refuses a value and has its default. Where the setting of the
    /// condition has a mistake, whether it is met is not known, and the value is left unread.
    pub fn read_if(
        &self,
        unmet: Option<&str>,
        table: &mut Table<'_>,
        findings: &mut Findings,
    ) -> Option<T> {
        match unmet {
            Some(condition) => {
                let other = condition.split(' ').next().unwrap_or_default();
                match findings.clean(&table.key_of(other)) {
                    true => table.refuse(&[self.key], condition, findings),
                    false => table.ignore(&[self.key]),
                }
                self.default.clone()
            }
            None => self.read(table, findings),
        }
    }

    /// Refuses a value, as the condition that the setting has a meaning with does not hold.
    pub fn refuse(&self, table: &mut Table<'_>, findings: &mut Findings) {
        table.refuse(&[self.key], self.condition.unwrap_or_default(), findings);
    }

    /// Its value where it is left out.
    pub fn absent(&self) -> Option<T> {
        self.default.clone()
    }

    /// `key value` if `value` is not the default.
    pub fn difference(&self, value: &T) -> Option<String> {
        let differs = self.default.as_ref().is_some_and(|default| default != value);
        differs.then(|| format!("{} {}", self.key, (self.kind.write)(value)))
    }
}
