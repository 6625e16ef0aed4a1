//! A value that is not there, to learn from serde what it would have been.

use serde::de::{Deserializer, Error, Unexpected, Visitor};

use super::mistake::Mistake;

/// Has no value, and returns what was expected as a mistake.
#[derive(Debug)]
pub(super) struct Probe;

impl<'de> Deserializer<'de> for Probe {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        Err(Mistake::invalid_type(Unexpected::Unit, &visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
