//! The keys of a type that serde reads, learned from serde without a value.

use std::cell::Cell;

use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};

use super::SectionReading;
use super::mistake::Mistake;
use crate::declared::{Form, Setting};
use crate::findings::Findings;
use crate::reader::Table;

/// The fields of `T`, if it is a structure with named ones: each with its type in words, as far as serde states it.
pub(super) fn keys<T: DeserializeOwned>() -> Vec<Setting> {
    let fields = Cell::new(&[][..]);
    // It is no value: only the fields are asked for.
    let _ = T::deserialize(Outline(&fields));
    let key = |field: &&'static str| Setting {
        form: Form::Text,
        kind: kind::<T>(field).unwrap_or_else(|| "value".to_owned()),
        ..Setting::table(field, "A field of the author's own structure.", Vec::new())
    };
    fields.get().iter().map(key).collect()
}

fn kind<T: DeserializeOwned>(field: &str) -> Option<String> {
    let mut findings = Findings::default();
    Table::read_absent("", &mut findings, |table, _| {
        SectionReading::default().probe::<T>(table, field.to_owned())
    })
}

/// Notes the fields of the structure that is to be read, and has no value.
struct Outline<'o>(&'o Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Outline<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Mistake> {
        Err(Mistake::custom("no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Mistake> {
        self.0.set(fields);
        Err(Mistake::custom("no value"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
