//! Reading tables key by key: each key is read with the type it must have; a value of another type is reported, and reading goes
//! on; keys that were not read in the end are unknown keys.

pub mod convert;

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Finding;
use crate::findings::Findings;
use crate::suggestion::{enumerate, nearest};

/// A value of the file with its key and its place.
#[derive(Clone, Debug)]
pub struct Value<'d> {
    /// The key with its tables, such as `device[0].rate`.
    pub key: String,
    /// Its bytes in the file.
    pub place: Range<usize>,
    node: &'d DeValue<'d>,
}

impl Value<'_> {
    /// Whether the value is text, for keys that take text or a number.
    pub fn is_text(&self) -> bool {
        matches!(self.node, DeValue::String(_))
    }

    /// The value, if it is text, for keys that take some words and something else besides.
    pub fn text(&self) -> Option<&str> {
        match self.node {
            DeValue::String(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// Whether the value is a whole number, for keys that take one or text.
    pub fn is_integer(&self) -> bool {
        matches!(self.node, DeValue::Integer(_))
    }

    /// The key without its tables and its place in a list, for a message that shows the place anyway.
    pub fn name(&self) -> &str {
        Value::name_of(&self.key)
    }

    /// A key without its tables and its place in a list.
    pub(crate) fn name_of(key: &str) -> &str {
        let last = key.rsplit('.').next().unwrap_or_default();
        last.split('[').next().unwrap_or_default()
    }

    /// A mistake that points at this value.
    pub fn mistake(&self, message: impl Into<String>) -> Finding {
        Finding::mistake(&self.key, message).at(Some(self.place.clone()), "")
    }

    /// As [`Value::mistake`], with words beside the value.
    pub fn mistake_labelled(
        &self,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Finding {
        Finding::mistake(&self.key, message).at(Some(self.place.clone()), label)
    }

    /// The mistake of a value whose type is not what `expected` (a noun with its article) states.
    pub(crate) fn wrong_type(&self, expected: &str, example: &str) -> Finding {
        let found = match self.node {
            DeValue::String(_) => "this is text",
            DeValue::Integer(_) => "this is an integer",
            DeValue::Float(_) => "this is a number with a fraction",
            DeValue::Boolean(_) => "this is true or false",
            DeValue::Datetime(_) => "this is a date or time",
            DeValue::Array(_) => "this is a list",
            DeValue::Table(_) => "this is a table",
        };
        self.mistake_labelled(format!("`{}` must be {expected}", self.name()), found)
            .help(format!("write {example}"))
    }
}

impl<'d> Value<'d> {
    /// The value as it was parsed.
    pub(crate) fn node(&self) -> &'d DeValue<'d> {
        self.node
    }

    /// An item of a list that this value is.
    pub(crate) fn item(&self, index: usize, node: &'d Spanned<DeValue<'d>>) -> Value<'d> {
        Value { key: format!("{}[{index}]", self.key), place: node.span(), node: node.get_ref() }
    }

    /// The entries of a table that this value is, in the order of their names.
    pub(crate) fn entries(
        &self,
        entries: &'d DeTable<'d>,
    ) -> impl Iterator<Item = (&'d str, Value<'d>)> {
        entries.iter().map(|(name, node)| {
            let name = name.get_ref().as_ref();
            let key = format!("{}.{name}", self.key);
            (name, Value { key, place: node.span(), node: node.get_ref() })
        })
    }
}

/// A table of the file, being read.
#[derive(Debug)]
pub struct Table<'d> {
    key: String,
    place: Range<usize>,
    entries: &'d DeTable<'d>,
    asked: Vec<&'d str>,
}

impl<'d> Table<'d> {
    /// Reads a table that the file does not have, as if it were there without keys. `key` is its own.
    pub fn read_absent<T>(
        key: &str,
        findings: &mut Findings,
        read: impl FnOnce(&mut Table<'_>, &mut Findings) -> T,
    ) -> T {
        let entries = DeTable::new();
        let (key, place, asked) = (key.to_owned(), 0..0, Vec::new());
        read(&mut Table { key, place, entries: &entries, asked }, findings)
    }

    /// Reads a table that is a value, then complains about the keys left over.
    pub(crate) fn read_value<T>(
        value: &Value<'d>,
        entries: &'d DeTable<'d>,
        findings: &mut Findings,
        read: impl FnOnce(&mut Table<'d>) -> T,
    ) -> T {
        let (key, place, asked) = (value.key.clone(), value.place.clone(), Vec::new());
        Table { key, place, entries, asked }.read_with(findings, |table, _| read(table))
    }

    /// Reads a whole document with `read`, then complains about the tables left over.
    pub fn read_root<T>(
        entries: &'d DeTable<'d>,
        findings: &mut Findings,
        read: impl FnOnce(&mut Table<'d>, &mut Findings) -> T,
    ) -> T {
        let root = Table { key: String::new(), place: 0..0, entries, asked: Vec::new() };
        root.read_with(findings, read)
    }

    fn read_with<T>(
        mut self,
        findings: &mut Findings,
        read: impl FnOnce(&mut Table<'d>, &mut Findings) -> T,
    ) -> T {
        let result = read(&mut self, findings);
        self.refuse_unknown_keys(findings);
        result
    }

    /// The table's own key, such as `device[0]`; empty for the document.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its bytes in the file: those of its header, or all of an inline table.
    pub(crate) fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Its values, in the order of their names; does not count as asking for them.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&'d str, Value<'d>)> {
        let entries = self.entries;
        entries.iter().map(|(name, node)| {
            let name = name.get_ref().as_ref();
            let value = Value { key: self.key_of(name), place: node.span(), node: node.get_ref() };
            (name, value)
        })
    }

    /// Takes these keys as the known ones.
    pub(crate) fn know(&mut self, keys: &[&'static str]) {
        self.asked.clear();
        self.asked.extend(keys);
    }

    /// Takes every key as known.
    pub(crate) fn ignore_all(&mut self) {
        self.asked.extend(self.entries.keys().map(|name| name.get_ref().as_ref()));
    }

    /// The full name of one of its keys.
    pub fn key_of(&self, key: &str) -> String {
        if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) }
    }

    /// A mistake that points at the table's header.
    pub fn mistake(&self, message: impl Into<String>, label: &str) -> Finding {
        Finding::mistake(&self.key, message).at(Some(self.place.clone()), label)
    }

    /// Whether the file has the key; does not count as asking for it.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Refuses keys that would have a meaning if `condition` held.
    pub fn refuse(&mut self, keys: &[&'static str], condition: &str, findings: &mut Findings) {
        self.ignore(keys);
        for (name, place) in self.names().into_iter().filter(|(name, _)| keys.contains(name)) {
            let message = format!("`{name}` has a meaning with `{condition}` only");
            let finding = Finding::mistake(self.key_of(name), message).at(Some(place), "");
            findings.push(finding.help(format!("remove it, or write `{condition}`")));
        }
    }

    /// Lets keys stand unread, where something else that is wrong keeps them from being checked.
    pub fn ignore(&mut self, keys: &[&'static str]) {
        self.asked.extend(keys);
    }

    /// Reads a key that may be absent. `None` when it is, and when it was wrong, which is then noted.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        findings: &mut Findings,
        convert: impl FnOnce(&Value<'d>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        self.asked.push(key);
        let node = self.entries.get(key)?;
        convert(&self.child(self.key_of(key), node, findings), findings)
    }

    /// Reads a key that must be there; `example` is what to write if it is not.
    pub fn require<T>(
        &mut self,
        key: &'static str,
        example: &str,
        findings: &mut Findings,
        convert: impl FnOnce(&Value<'d>, &mut Findings) -> Option<T>,
    ) -> Option<T> {
        if !self.has(key) {
            self.asked.push(key);
            let message = format!("{} has no `{key}`", title(&self.key));
            let finding = self.mistake(message, "in this table").help(format!("add `{example}`"));
            findings.push(finding);
            return None;
        }
        self.read(key, findings, convert)
    }

    /// Reads a table inside this one (`[key]` or `key = { … }`), if it is there.
    pub fn section<T>(
        &mut self,
        key: &'static str,
        findings: &mut Findings,
        read: impl FnOnce(&mut Table<'d>, &mut Findings) -> T,
    ) -> Option<T> {
        self.read(key, findings, |value, findings| {
            let table = as_table(value, findings)?;
            Some(table.read_with(findings, read))
        })
    }

    /// As [`Table::section`], for a table that must be there; `example` is what to write if it is not.
    pub fn require_section<T>(
        &mut self,
        key: &'static str,
        example: &str,
        findings: &mut Findings,
        read: impl FnOnce(&mut Table<'d>, &mut Findings) -> T,
    ) -> Option<T> {
        if !self.has(key) {
            let message = format!("there is no {}", title(&self.key_of(key)));
            let finding = Finding::mistake(self.key_of(key), message);
            findings.push(finding.help(format!("add\n{example}")));
        }
        self.section(key, findings, read)
    }

    /// Reads each table of a list (`[[key]]`), in order; none when the key is absent.
    pub fn sections<T>(
        &mut self,
        key: &'static str,
        findings: &mut Findings,
        mut read: impl FnMut(&mut Table<'d>, &mut Findings) -> T,
    ) -> Vec<T> {
        let nodes = self.read(key, findings, |value, findings| match value.node {
            DeValue::Array(nodes) => Some(nodes),
            _ => {
                let example = format!("`[[{}]]` above each of its tables", value.key);
                findings.push(value.wrong_type("a list of tables", &example));
                None
            }
        });
        let base = self.key_of(key);
        let mut results = Vec::new();
        for (index, node) in nodes.into_iter().flat_map(|nodes| nodes.iter()).enumerate() {
            let value = self.child(format!("{base}[{index}]"), node, findings);
            if let Some(table) = as_table(&value, findings) {
                results.push(table.read_with(findings, &mut read));
            }
        }
        results
    }

    /// The names of the tables inside this one, for a table whose keys are names.
    pub fn names(&self) -> Vec<(&'d str, Range<usize>)> {
        self.entries.keys().map(|key| (key.get_ref().as_ref(), key.span())).collect()
    }

    fn child(
        &self,
        key: String,
        node: &'d Spanned<DeValue<'d>>,
        findings: &mut Findings,
    ) -> Value<'d> {
        findings.set_place(&key, node.span());
        Value { key, place: node.span(), node: node.get_ref() }
    }

    fn refuse_unknown_keys(self, findings: &mut Findings) {
        for (name, place) in self.names() {
            if self.asked.contains(&name) {
                continue;
            }
            let message = match self.key.as_str() {
                "" => format!("unknown table or key `{name}`"),
                _ => format!("unknown key `{name}` in {}", title(&self.key)),
            };
            let label = nearest(name, self.asked.iter().copied())
                .map_or_else(String::new, |known| format!("did you mean `{known}`?"));
            let known = enumerate(self.asked.iter().copied());
            let help = match self.key.as_str() {
                "" => format!("the tables are {known}"),
                _ => format!("the keys of {} are {known}", title(&self.key)),
            };
            let finding = Finding::mistake(self.key_of(name), message);
            findings.push(finding.at(Some(place), label).help(help));
        }
    }
}

fn as_table<'d>(value: &Value<'d>, findings: &mut Findings) -> Option<Table<'d>> {
    match value.node {
        DeValue::Table(entries) => Some(Table {
            key: value.key.clone(),
            place: value.place.clone(),
            entries,
            asked: Vec::new(),
        }),
        _ => {
            findings.push(value.wrong_type("a table", &format!("`[{}]`", value.key)));
            None
        }
    }
}

/// A table's key as its header: `device[1]` is `[[device]]`, `pool` is `[pool]`.
pub fn title(key: &str) -> String {
    let plain: String = key
        .split('.')
        .map(|part| part.split('[').next().unwrap_or(part))
        .collect::<Vec<_>>()
        .join(".");
    if key.ends_with(']') { format!("`[[{plain}]]`") } else { format!("`[{plain}]`") }
}
