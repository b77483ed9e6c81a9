//! Serialised form of values in a record.

use crate::quantity::RecordValue;
use serde::{Serialize, Serializer};

/// A value in its serialised form.
pub struct SerializedValue(pub RecordValue);

impl Serialize for SerializedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            RecordValue::Number(number) => serializer.serialize_u64(*number),
            RecordValue::Flag(flag) => serializer.serialize_bool(*flag),
            RecordValue::Text(text) => serializer.serialize_str(text),
            RecordValue::List(words) => words.serialize(serializer),
        }
    }
}
