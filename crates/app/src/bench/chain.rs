//! Chains that can be measured, by their names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use rheostat_measure::nf::ChainKind;

/// Reads the name of a chain, and lists those there are.
pub fn chain() -> impl TypedValueParser<Value = ChainKind> {
    let names = ChainKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.description()));
    PossibleValuesParser::new(names).map(|name| {
        let named = ChainKind::ALL.into_iter().find(|kind| kind.name() == name);
        named.expect("one of those there are")
    })
}
