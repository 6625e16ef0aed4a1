//! Settings that are declared once: the key, its type and bounds, its default and its help line. Reading, the flags of a command,
//! help and descriptions come from the declaration.
//!
//! ```
//! use rheostat_settings::declared::{DeclaredSettings, kind};
//!
//! rheostat_settings::settings! {
//!     /// Bounds of a counter.
//!     pub struct CounterSettings {
//!         /// Counters at most.
//!         counters: usize = kind::count(1..=1_000_000), value("N"), default(1_000);
//!         /// Whether counters may be reset.
//!         resettable: bool = kind::boolean(), default(false);
//!     }
//! }
//!
//! let [counters, resettable] = &CounterSettings::declarations()[..] else { panic!() };
//! assert_eq!((counters.flag(), counters.default.as_deref()), ("counters".to_owned(), Some("1000")));
//! assert_eq!((resettable.key, resettable.help), ("resettable", "Whether counters may be reset."));
//! ```

mod declaration;
pub mod kind;

pub use declaration::{Declaration, Form, Setting, quote};

use crate::findings::Findings;
use crate::reader::Table;

/// A structure whose fields are settings of one table. [`settings!`](crate::settings) declares one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare its settings",
    label = "not declared",
    note = "declare it by `rheostat::settings! {{ pub struct {Self} {{ … }} }}`"
)]
pub trait DeclaredSettings: Clone + std::fmt::Debug + Send + Sync + Sized + 'static {
    /// The settings, in the order in which they are declared.
    fn declarations() -> Vec<Setting>;

    /// Reads them from a table; `None` when one that is required is missing or wrong. Each mistake is noted.
    fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Self>;

    /// The settings that differ from their default, each as `key value`.
    fn differences(&self) -> Vec<String>;
}

/// No settings.
impl DeclaredSettings for () {
    fn declarations() -> Vec<Setting> {
        Vec::new()
    }

    fn read(_: &mut Table<'_>, _: &mut Findings) -> Option<()> {
        Some(())
    }

    fn differences(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Declares a structure of settings. Each field has its help line as documentation, its type, its [`kind`], and what else
/// [`Declaration`] states of it; behind `=>`, the condition under which it has a meaning, with the text that fulfils it. A condition
/// refers to fields declared before, each an `Option`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Name:ident {
            $(
                $(#[doc = $help:literal])+
                $field:ident : $type:ty = $kind:expr
                $(, $clause:ident ( $($argument:tt)* ))*
                $(=> $condition:expr, $text:literal)? ;
            )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility struct $Name {
            $(
                $(#[doc = $help])+
                pub $field: $type,
            )*
        }

        impl $crate::declared::DeclaredSettings for $Name {
            fn declarations() -> Vec<$crate::declared::Setting> {
                vec![$({
                    let declaration: $crate::declared::Declaration<$type> =
                        $crate::declared::Declaration::new(
                            stringify!($field),
                            concat!($($help),+),
                            $kind,
                        )
                        $(.$clause($($argument)*))*;
                    declaration.setting(None $(.or(Some($text)))?)
                }),*]
            }

            fn read(
                table: &mut $crate::reader::Table<'_>,
                findings: &mut $crate::findings::Findings,
            ) -> Option<$Name> {
                $(
                    let $field: Option<$type> = {
                        let declaration: $crate::declared::Declaration<$type> =
                            $crate::declared::Declaration::new(
                                stringify!($field),
                                concat!($($help),+),
                                $kind,
                            )
                            $(.$clause($($argument)*))*;
                        let unmet: Option<&'static str> =
                            None $(.or((!($condition)).then_some($text)))?;
                        declaration.read(unmet, table, findings)
                    };
                )*
                Some($Name { $($field: $field?),* })
            }

            fn differences(&self) -> Vec<String> {
                let mut differences = Vec::new();
                $({
                    let declaration: $crate::declared::Declaration<$type> =
                        $crate::declared::Declaration::new(
                            stringify!($field),
                            concat!($($help),+),
                            $kind,
                        )
                        $(.$clause($($argument)*))*;
                    differences.extend(declaration.difference(&self.$field));
                })*
                differences
            }
        }
    };
}

#[cfg(test)]
mod tests;
