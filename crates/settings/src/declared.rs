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
mod setting;

pub use declaration::Declaration;
pub use setting::{Form, Setting, quote};

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

    /// The settings as they are where all are left out; `None` if some must be given.
    fn defaults() -> Option<Self>;

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

    fn defaults() -> Option<()> {
        Some(())
    }

    fn differences(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Declares a structure of settings. Each field has its help line as documentation, its type, its [`kind`], and what else
/// [`Declaration`] states of it; behind `=>`, the condition under which it has a meaning, with the text that fulfils it. A condition
/// refers to fields declared before, each an `Option`. Behind the name, `: Default` implements that, where each setting has a default.
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Name:ident $(: $Default:ident)? {
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

        impl $Name {
            #[allow(clippy::type_complexity)]
            fn declared() -> ($($crate::declared::Declaration<$type>,)*) {
                ($(
                    $crate::declared::Declaration::new(
                        stringify!($field),
                        concat!($($help),+),
                        $kind,
                    )
                    $(.$clause($($argument)*))*,
                )*)
            }
        }

        impl $crate::declared::DeclaredSettings for $Name {
            fn declarations() -> Vec<$crate::declared::Setting> {
                let ($($field,)*) = Self::declared();
                vec![$($field.setting(None $(.or(Some($text)))?)),*]
            }

            fn read(
                table: &mut $crate::reader::Table<'_>,
                findings: &mut $crate::findings::Findings,
            ) -> Option<$Name> {
                let ($($field,)*) = Self::declared();
                $(
                    let $field: Option<$type> = {
                        let unmet: Option<&'static str> =
                            None $(.or((!($condition)).then_some($text)))?;
                        $field.read_if(unmet, table, findings)
                    };
                )*
                Some($Name { $($field: $field?),* })
            }

            fn defaults() -> Option<$Name> {
                let ($($field,)*) = Self::declared();
                Some($Name { $($field: $field.absent()?),* })
            }

            fn differences(&self) -> Vec<String> {
                let ($($field,)*) = Self::declared();
                [$($field.difference(&self.$field)),*].into_iter().flatten().collect()
            }
        }

        impl $crate::section::Section for $Name {
            fn read(
                table: &mut $crate::reader::Table<'_>,
                findings: &mut $crate::findings::Findings,
            ) -> Option<$Name> {
                <$Name as $crate::declared::DeclaredSettings>::read(table, findings)
            }

            fn keys() -> Vec<$crate::declared::Setting> {
                <$Name as $crate::declared::DeclaredSettings>::declarations()
            }
        }

        $(
            impl $Default for $Name {
                fn default() -> $Name {
                    <$Name as $crate::declared::DeclaredSettings>::defaults()
                        .expect("each setting has a default")
                }
            }
        )?
    };
}

/// Declares the keys of a table that its reader reads one by one, as a structure with a [`Declaration`] for each: for tables in which
/// keys depend on each other, or on the rest of the configuration, which is given in parentheses behind the name. Its fields are
/// written as those of [`settings!`](crate::settings).
#[macro_export]
macro_rules! keys {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Name:ident $(($($given:ident : $Given:ty),*))? {
            $(
                $(#[doc = $help:literal])+
                $field:ident : $type:ty = $kind:expr
                $(, $clause:ident ( $($argument:tt)* ))* ;
            )*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $Name {
            $(
                $(#[doc = $help])+
                $visibility $field: $crate::declared::Declaration<$type>,
            )*
        }

        impl $Name {
            /// The declarations.
            $visibility fn new($($($given: $Given),*)?) -> $Name {
                $Name {
                    $(
                        $field: $crate::declared::Declaration::new(
                            stringify!($field),
                            concat!($($help),+),
                            $kind,
                        )
                        $(.$clause($($argument)*))*,
                    )*
                }
            }

            /// The keys as help and references show them.
            $visibility fn settings(&self) -> Vec<$crate::declared::Setting> {
                vec![$(self.$field.setting(None)),*]
            }
        }
    };
}

#[cfg(test)]
mod tests;
