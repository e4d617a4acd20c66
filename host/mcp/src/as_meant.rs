//! Arguments as a model meant them: models write `"5"` for 5, `"true"` for true and `High` for `high`.

use rmcp::model::JsonObject;
use serde_json::Value;

/// The arguments with values of the types that a tool's schema names, as far as what stands there can mean one.
pub(crate) fn as_meant(mut arguments: Value, schema: &JsonObject) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let (Some(arguments), Some(properties)) = (arguments.as_object_mut(), properties) {
        for (name, value) in arguments {
            if let Some(meant) = properties.get(name).and_then(|property| meant(value, property)) {
                *value = meant;
            }
        }
    }
    arguments
}

/// Another value that this one stands for.
fn meant(value: &Value, property: &Value) -> Option<Value> {
    match (property.get("type").and_then(Value::as_str)?, value) {
        // Left out.
        ("integer" | "number" | "boolean", Value::String(text)) if text.trim().is_empty() => Some(Value::Null),
        ("integer", Value::String(text)) => {
            let text = text.trim();
            text.parse::<i64>().ok().or_else(|| whole(text.parse().ok()?)).map(Value::from)
        }
        ("integer", Value::Number(number)) if number.is_f64() => whole(number.as_f64()?).map(Value::from),
        ("number", Value::String(text)) => {
            text.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from)
        }
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(Value::Bool(true)),
            "false" | "no" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::String(text)) => {
            let mut words = property.get("enum")?.as_array()?.iter().filter_map(Value::as_str);
            words.find(|word| word.eq_ignore_ascii_case(text.trim())).map(Value::from)
        }
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        ("array", Value::Array(items)) => {
            let property = property.get("items")?;
            let each = items.iter().map(|item| meant(item, property).unwrap_or_else(|| item.clone()));
            Some(Value::Array(each.collect()))
        }
        _ => None,
    }
}

/// A number without a fraction.
#[expect(clippy::cast_possible_truncation, reason = "checked: it has no fraction and fits")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_wrote_is_taken_as_it_was_meant() {
        let schema = json!({"properties": {
            "limit": {"type": "integer"}, "cost": {"type": "number"}, "peek": {"type": "boolean"},
            "priority": {"type": "string", "enum": ["low", "high"]}, "thread": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        }});
        let schema = schema.as_object().expect("an object");
        for (name, written, expected) in [
            ("limit", json!("5"), json!(5)),
            ("limit", json!(" 5 "), json!(5)),
            ("limit", json!("5.0"), json!(5)),
            ("limit", json!(5.0), json!(5)),
            ("limit", json!(""), json!(null)),
            ("limit", json!("-1"), json!(-1)),
            ("limit", json!(5.5), json!(5.5)),
            ("limit", json!("five"), json!("five")),
            ("limit", json!([5]), json!([5])),
            ("cost", json!("0.5"), json!(0.5)),
            ("cost", json!("inf"), json!("inf")),
            ("peek", json!("True"), json!(true)),
            ("peek", json!("no"), json!(false)),
            ("peek", json!("perhaps"), json!("perhaps")),
            ("priority", json!("High"), json!("high")),
            ("priority", json!("highest"), json!("highest")),
            ("thread", json!(17), json!("17")),
            ("thread", json!("Seventeen"), json!("Seventeen")),
            ("tags", json!([1, "a"]), json!(["1", "a"])),
            ("unknown", json!("5"), json!("5")),
        ] {
            assert_eq!(as_meant(json!({ name: written }), schema), json!({ name: expected }), "{name}: {written}");
        }
        assert_eq!(as_meant(json!([]), schema), json!([]));
    }
}
