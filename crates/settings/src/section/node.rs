//! The tables and values of a configuration, as serde reads them.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::SectionReading;
use super::mistake::Mistake;
use super::probe::Probe;
use crate::findings::Findings;
use crate::reader::{Table, Value};

/// A table of the file.
pub(super) struct TableNode<'a, 'd> {
    table: &'a mut Table<'d>,
    reading: &'a SectionReading,
}

impl<'a, 'd> TableNode<'a, 'd> {
    /// The table that is read. Its unknown keys are refused by its reader.
    pub(super) fn root(table: &'a mut Table<'d>, reading: &'a SectionReading) -> TableNode<'a, 'd> {
        TableNode { table, reading }
    }

    /// Its entries, of which serde knows `fields`; all of them without.
    fn visit<'de, V: Visitor<'de>>(
        self,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let TableNode { table, reading } = self;
        match fields {
            // Once, however often the table is read.
            Some(fields) => table.know(fields),
            None => table.ignore_all(),
        }
        let is_known = |key: &str| fields.is_none_or(|fields| fields.contains(&key));
        let mut entries: Vec<(String, Option<Value<'_>>)> = Vec::new();
        for name in fields.into_iter().flatten() {
            if reading.is_probed(&table.key_of(name)) {
                entries.push(((*name).to_owned(), None));
            }
        }
        for (name, value) in table.values() {
            if is_known(name) && !reading.is_omitted(&value.key) {
                entries.push((name.to_owned(), Some(value)));
            }
        }
        let (key, place) = (table.key().to_owned(), table.place());
        let entries = Entries { rest: entries.into_iter(), value: None, reading };
        visitor.visit_map(entries).map_err(|mistake| mistake.at_table(&key, place))
    }
}

impl<'de> Deserializer<'de> for TableNode<'_, '_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.visit(None, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.visit(Some(fields), visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_unit()
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
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// The entries of a table, in the order of their names.
struct Entries<'a, 'd> {
    rest: std::vec::IntoIter<(String, Option<Value<'d>>)>,
    value: Option<Option<Value<'d>>>,
    reading: &'a SectionReading,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mistake> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        let key: StrDeserializer<'_, Mistake> = name.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        match self.value.take() {
            Some(Some(value)) => seed.deserialize(ValueNode { value, reading: self.reading }),
            Some(None) => seed.deserialize(Probe),
            None => Err(Mistake::custom("a value without its key was requested")),
        }
    }
}

/// A value of the file.
struct ValueNode<'a, 'd> {
    value: Value<'d>,
    reading: &'a SectionReading,
}

impl<'a, 'd> ValueNode<'a, 'd> {
    /// Runs `visit`; a mistake is at this value unless it is further inside.
    fn here<T>(
        self,
        visit: impl FnOnce(&Value<'d>, &'a SectionReading) -> Result<T, Mistake>,
    ) -> Result<T, Mistake> {
        let ValueNode { value, reading } = self;
        visit(&value, reading).map_err(|mistake| mistake.at(&value.key, value.place.clone()))
    }

    /// Reads a table inside, whose unknown keys are noted.
    fn table<T>(
        value: &Value<'d>,
        entries: &'d DeTable<'d>,
        reading: &SectionReading,
        read: impl FnOnce(TableNode<'_, 'd>) -> Result<T, Mistake>,
    ) -> Result<T, Mistake> {
        let mut findings = Findings::default();
        let read = Table::read_value(value, entries, &mut findings, |table| {
            read(TableNode { table, reading })
        });
        findings.into_list().into_iter().for_each(|finding| reading.note(finding));
        read
    }
}

impl<'de> Deserializer<'de> for ValueNode<'_, '_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.here(|value, reading| match value.node() {
            DeValue::String(text) if text.contains(char::is_control) => {
                Err(Mistake::custom("the text has a control character"))
            }
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(integer) => {
                let (digits, radix) = (integer.as_str(), integer.radix());
                match (u64::from_str_radix(digits, radix), i64::from_str_radix(digits, radix)) {
                    (Ok(number), _) => visitor.visit_u64(number),
                    (_, Ok(number)) => visitor.visit_i64(number),
                    _ => Err(Mistake::invalid_value(Unexpected::Other("beyond 64 bits"), &visitor)),
                }
            }
            DeValue::Float(float) => match float.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(Mistake::custom("the number cannot be read")),
            },
            DeValue::Boolean(boolean) => visitor.visit_bool(*boolean),
            DeValue::Datetime(time) => visitor.visit_string(time.to_string()),
            DeValue::Array(nodes) => {
                visitor.visit_seq(Items { list: value, rest: nodes.iter().enumerate(), reading })
            }
            DeValue::Table(entries) => {
                Self::table(value, entries, reading, |table| table.deserialize_any(visitor))
            }
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.value.node() {
            DeValue::Table(entries) => self.here(|value, reading| {
                Self::table(value, entries, reading, |table| {
                    table.deserialize_struct(name, fields, visitor)
                })
            }),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.here(|value, reading| match value.node() {
            DeValue::String(word) => {
                let word: StrDeserializer<'_, Mistake> = word.as_ref().into_deserializer();
                visitor.visit_enum(word)
            }
            DeValue::Table(entries) if entries.len() == 1 => {
                let inside = value.entries(entries).next();
                let (name, content) = inside.ok_or_else(|| Mistake::custom("an empty table"))?;
                visitor.visit_enum(Variant { name, content: ValueNode { value: content, reading } })
            }
            _ => Err(Mistake::custom("write one word, or a table with one key")),
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        // A mistake of a type around the value is one of the value.
        let (key, place) = (self.value.key.clone(), self.value.place.clone());
        visitor.visit_newtype_struct(self).map_err(|mistake| mistake.at(&key, place))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The items of a list.
struct Items<'a, 'd> {
    list: &'a Value<'d>,
    rest: std::iter::Enumerate<std::slice::Iter<'d, Spanned<DeValue<'d>>>>,
    reading: &'a SectionReading,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mistake> {
        let Some((index, node)) = self.rest.next() else { return Ok(None) };
        let value = self.list.item(index, node);
        seed.deserialize(ValueNode { value, reading: self.reading }).map(Some)
    }
}

/// A variant with content: `{ name = content }`.
struct Variant<'a, 'd> {
    name: &'d str,
    content: ValueNode<'a, 'd>,
}

impl<'de, 'a, 'd> EnumAccess<'de> for Variant<'a, 'd> {
    type Error = Mistake;
    type Variant = ValueNode<'a, 'd>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, ValueNode<'a, 'd>), Mistake> {
        let name: StrDeserializer<'_, Mistake> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}

impl<'de> VariantAccess<'de> for ValueNode<'_, '_> {
    type Error = Mistake;

    fn unit_variant(self) -> Result<(), Mistake> {
        self.here(|_, _| Err(Mistake::custom("the word stands alone, without content")))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mistake> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.deserialize_struct("", fields, visitor)
    }
}
