//! JSON of two kinds under one name: what owns its texts, and what borrows them from the line that was parsed.

use serde_json::Value;

/// The JSON of a line, which borrows its texts: parsing it copies none and makes no tables, as a [`serde_json::Value`] does.
/// `serde_json::Value::from(line)` is the same as a value of its own. Of a key that stands twice, the first counts.
pub type Line<'l> = serde_json_borrow::Value<'l>;

/// A JSON value.
///
/// ```
/// use relay_mesh_sdk::optional::runner::reading::{Json, Line};
///
/// let line: Line<'_> = serde_json::from_str(r#"{"a": [1, {"b": -2}], "c": "d"}"#).unwrap();
/// assert_eq!(line.member("c").and_then(Json::as_str), Some("d"));
/// let items = line.member("a").map(Json::items).unwrap();
/// assert_eq!((items[0].as_u64(), items[1].member("b").and_then(Json::as_i64)), (Some(1), Some(-2)));
/// ```
pub trait Json: Sized {
    /// A field of an object.
    fn member(&self, key: &str) -> Option<&Self>;
    /// The fields' values of an object; none of anything else.
    fn values(&self) -> Vec<&Self>;
    /// The items of a list; none of anything else.
    fn items(&self) -> &[Self];
    /// A text.
    fn as_str(&self) -> Option<&str>;
    /// A whole number that is not negative.
    fn as_u64(&self) -> Option<u64>;
    /// A whole number.
    fn as_i64(&self) -> Option<i64>;
    /// Any number.
    fn as_f64(&self) -> Option<f64>;
    /// `true` or `false`.
    fn as_bool(&self) -> Option<bool>;
    /// Whether it is `null`.
    fn is_null(&self) -> bool;
    /// Whether it is an object.
    fn is_object(&self) -> bool;
}

impl Json for Value {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }

    fn values(&self) -> Vec<&Value> {
        self.as_object().into_iter().flat_map(serde_json::Map::values).collect()
    }

    fn items(&self) -> &[Value] {
        self.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn as_str(&self) -> Option<&str> {
        Value::as_str(self)
    }

    fn as_u64(&self) -> Option<u64> {
        Value::as_u64(self)
    }

    fn as_i64(&self) -> Option<i64> {
        Value::as_i64(self)
    }

    fn as_f64(&self) -> Option<f64> {
        Value::as_f64(self)
    }

    fn as_bool(&self) -> Option<bool> {
        Value::as_bool(self)
    }

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn is_object(&self) -> bool {
        Value::is_object(self)
    }
}

impl Json for Line<'_> {
    fn member(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    fn values(&self) -> Vec<&Self> {
        self.as_object().into_iter().flat_map(|object| object.values()).collect()
    }

    fn items(&self) -> &[Self] {
        self.as_array().unwrap_or_default()
    }

    fn as_str(&self) -> Option<&str> {
        Line::as_str(self)
    }

    fn as_u64(&self) -> Option<u64> {
        Line::as_u64(self)
    }

    fn as_i64(&self) -> Option<i64> {
        Line::as_i64(self)
    }

    fn as_f64(&self) -> Option<f64> {
        Line::as_f64(self)
    }

    fn as_bool(&self) -> Option<bool> {
        Line::as_bool(self)
    }

    fn is_null(&self) -> bool {
        Line::is_null(self)
    }

    fn is_object(&self) -> bool {
        Line::is_object(self)
    }
}
