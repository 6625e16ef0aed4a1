//! The settings of a table as a type: one that serde reads, or one that reads its keys itself.

mod expected;
mod mistake;
mod node;
mod outline;
mod probe;
pub mod quantity;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use self::node::TableNode;
use crate::declared::Setting;
use crate::diagnostic::Finding;
use crate::findings::Findings;
use crate::reader::Table;

/// Settings that a table of a configuration holds.
///
/// A type that implements serde's `Deserialize` is one, and all mistakes in its table are noted with place and fix: unknown
/// keys, values of another type or out of range, keys that are missing. [`settings!`](crate::settings) declares one with bounds,
/// defaults and help lines. Any other type reads its keys itself, as with [`Table::read`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a table of a configuration",
    label = "not a type of settings",
    note = "derive serde's `Deserialize` for it, with `#[serde(crate = \"rheostat::serde\")]`, or implement `Section`; `()` has no keys"
)]
pub trait Section: Sized {
    /// Reads the table. `None` if it has mistakes, which are noted in `findings`.
    fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Self>;

    /// The keys, as `rheo check --explain` shows them; none where the type does not state them.
    fn keys() -> Vec<Setting> {
        Vec::new()
    }
}

impl<T: DeserializeOwned> Section for T {
    fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<T> {
        let reading = SectionReading::default();
        let settings = reading.repeat(table);
        let mistakes = reading.mistakes.into_inner();
        let settings = settings.filter(|_| mistakes.is_empty());
        mistakes.into_iter().for_each(|mistake| findings.push(mistake));
        settings
    }

    fn keys() -> Vec<Setting> {
        outline::keys::<T>()
    }
}

/// A reading of one table by serde, which gives up at the first mistake: the table is read again without the key that has
/// it, so that the other mistakes are noted, too.
#[derive(Debug, Default)]
struct SectionReading {
    mistakes: RefCell<Vec<Finding>>,
    /// Keys of the table that are left out.
    omitted: RefCell<BTreeSet<String>>,
    /// A missing key, given without a value to learn what value it has.
    probed: RefCell<Option<String>>,
}

impl SectionReading {
    fn repeat<T: DeserializeOwned>(&self, table: &mut Table<'_>) -> Option<T> {
        loop {
            let mistake = match T::deserialize(TableNode::root(table, self)) {
                Ok(settings) => return Some(settings),
                Err(mistake) => mistake.at_table(table.key(), table.place()),
            };
            if mistake.missing().is_some_and(|key| self.omitted.borrow().contains(&key)) {
                return None;
            }
            let expected = mistake.missing().and_then(|key| self.probe::<T>(table, key));
            self.note(mistake.finding(expected.as_deref()));
            // A key inside the table is left out from now on; a mistake of the table itself ends the reading.
            let key = mistake.key_below(table.key())?;
            if !self.omitted.borrow_mut().insert(key) {
                return None;
            }
        }
    }

    /// What value the missing key has, in words.
    fn probe<T: DeserializeOwned>(&self, table: &mut Table<'_>, key: String) -> Option<String> {
        self.probed.replace(Some(key));
        let outcome = T::deserialize(TableNode::root(table, self));
        self.probed.replace(None);
        outcome.err().and_then(|mistake| mistake.probed())
    }

    fn note(&self, finding: Finding) {
        let mut mistakes = self.mistakes.borrow_mut();
        if !mistakes.contains(&finding) {
            mistakes.push(finding);
        }
    }

    fn is_omitted(&self, key: &str) -> bool {
        self.omitted.borrow().contains(key)
    }

    fn is_probed(&self, key: &str) -> bool {
        self.probed.borrow().as_deref() == Some(key)
    }
}

#[cfg(test)]
mod tests;
