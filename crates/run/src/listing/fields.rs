//! What a function reports of one flow, or of one entry of a table of its own.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rheostat_base::Time;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A word, such as the state of a connection.
    Text(Cow<'static, str>),
    /// A count.
    Number(u64),
    /// Whether something is so.
    Flag(bool),
    /// An address.
    Address(IpAddr),
    /// An address and a port.
    Endpoint(SocketAddr),
    /// A length of time.
    Duration(Duration),
}

/// Named values, in the order in which they were added. Names are words joined by `_`, and no two are the same.
///
/// A few facts have places of their own, so that the lists of all functions show them alike: who opened a flow, when it began, and
/// its packets and bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedFields {
    values: Vec<(&'static str, Value)>,
    opened_forward: Option<bool>,
    began: Option<Time>,
    counted: Option<(u64, u64)>,
}

impl ListedFields {
    /// Adds a word.
    pub fn text(&mut self, name: &'static str, text: impl Into<Cow<'static, str>>) {
        self.add(name, Value::Text(text.into()));
    }

    /// Adds a count.
    pub fn number(&mut self, name: &'static str, number: u64) {
        self.add(name, Value::Number(number));
    }

    /// Adds whether something is so.
    pub fn flag(&mut self, name: &'static str, flag: bool) {
        self.add(name, Value::Flag(flag));
    }

    /// Adds an address.
    pub fn address(&mut self, name: &'static str, address: impl Into<IpAddr>) {
        self.add(name, Value::Address(address.into()));
    }

    /// Adds an address and a port.
    pub fn endpoint(&mut self, name: &'static str, endpoint: impl Into<SocketAddr>) {
        self.add(name, Value::Endpoint(endpoint.into()));
    }

    /// Adds a length of time.
    pub fn duration(&mut self, name: &'static str, duration: Duration) {
        self.add(name, Value::Duration(duration));
    }

    /// Adds a value of any kind.
    pub fn add(&mut self, name: &'static str, value: Value) {
        self.values.push((name, value));
    }

    /// The first end of the flow's key has opened the flow, or the second.
    pub fn opened(&mut self, forward: bool) {
        self.opened_forward = Some(forward);
    }

    /// The flow began at this time.
    pub fn began(&mut self, time: Time) {
        self.began = Some(time);
    }

    /// The flow has had so many packets, and so many bytes of IP, in both directions together.
    pub fn counted(&mut self, packets: u64, bytes: u64) {
        self.counted = Some((packets, bytes));
    }

    /// The named values.
    pub fn values(&self) -> &[(&'static str, Value)] {
        &self.values
    }

    /// The value with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Whether the first end of the flow's key has opened the flow, if the function knows.
    pub fn opened_forward(&self) -> Option<bool> {
        self.opened_forward
    }

    /// When the flow began, if the function knows.
    pub fn began_at(&self) -> Option<Time> {
        self.began
    }

    /// Packets and bytes, if the function counts them.
    pub fn counts(&self) -> Option<(u64, u64)> {
        self.counted
    }
}
