//! What a reading of a configuration gathers on its way: the mistakes, and where each key stands.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::Finding;

/// Gathers findings, so that all mistakes are reported together, and the places of the keys read, so
/// that a contradiction between tables can point at both of them.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    places: BTreeMap<String, Range<usize>>,
    /// Keys whose value is that of a flag.
    flags: Vec<String>,
    /// Keys whose value a flag has replaced, which messages point at all the same.
    hidden: Vec<String>,
}

impl Findings {
    /// Notes a mistake or a warning.
    pub fn push(&mut self, finding: Finding) {
        self.list.push(finding);
    }

    /// Notes where the value of `key` stands.
    pub fn set_place(&mut self, key: &str, place: Range<usize>) {
        self.places.insert(key.to_owned(), place);
    }

    /// Forgets where `key` stands, because a flag has taken the place of its value.
    pub fn forget_place(&mut self, key: &str) {
        self.places.remove(key);
        self.flags.push(key.to_owned());
    }

    /// Notes that a flag has taken the place of the value of `key`, or of all values of the section `key`, without forgetting where it
    /// stands.
    pub fn hide(&mut self, key: &str) {
        self.hidden.push(key.to_owned());
    }

    /// The keys and sections whose values flags have replaced.
    pub fn hidden(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().chain(&self.hidden).map(String::as_str)
    }

    /// Whether the value of `key` is that of a flag.
    pub fn is_flag(&self, key: &str) -> bool {
        self.flags.iter().any(|flag| flag == key)
    }

    /// Where the value of `key` stands, if the file has it.
    pub fn place(&self, key: &str) -> Option<Range<usize>> {
        self.places.get(key).cloned()
    }

    /// Whether the keys that start with `prefix` were read without a mistake. What contradicts what is
    /// worth saying only then: a value that could not be read contradicts everything.
    pub fn clean(&self, prefix: &str) -> bool {
        !self.mistakes().any(|finding| finding.key().starts_with(prefix))
    }

    /// Whether anything found refuses the configuration.
    pub fn refuses(&self) -> bool {
        self.mistakes().next().is_some()
    }

    fn mistakes(&self) -> impl Iterator<Item = &Finding> {
        self.list.iter().filter(|finding| finding.is_mistake())
    }

    /// The findings, in the order in which they were made.
    pub fn into_list(self) -> Vec<Finding> {
        self.list
    }
}
