//! Schemas of inputs and outputs, without the parts that cost context and tell a model nothing.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

pub(crate) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    Arc::new(of::<T>(SchemaSettings::draft2020_12().for_serialize()))
}

fn of<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    lean(&mut schema);
    match schema {
        Value::Object(mut schema) => {
            // The tool's own description says it already.
            schema.remove("description");
            schema
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => JsonObject::new(),
    }
}

/// Removes titles, formats and the default `null`, and the `null` beside the type of every optional value.
fn lean(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for word in ["$schema", "title", "format", "additionalProperties"] {
        object.remove(word);
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if object.get("minimum").and_then(Value::as_u64) == Some(0) {
        object.remove("minimum");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    merge_choices(object);
    for (word, inner) in object.iter_mut() {
        match (word.as_str(), inner) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(lean),
            ("items", inner) => lean(inner),
            _ => {}
        }
    }
}

/// Simplifies a choice between one thing and null to that thing, and a choice between words to a list of words.
fn merge_choices(object: &mut JsonObject) {
    for choice in ["anyOf", "oneOf"] {
        let Some(Value::Array(mut options)) = object.remove(choice) else { continue };
        options.retain(|option| option.get("type").is_none_or(|name| name != "null"));
        let words: Vec<Value> = options.iter().filter_map(|option| option.get("const").cloned()).collect();
        if words.len() == options.len() && !words.is_empty() {
            object.insert("type".to_owned(), "string".into());
            object.insert("enum".to_owned(), Value::Array(words));
        } else if let [Value::Object(only)] = options.as_mut_slice() {
            let mut only = std::mem::take(only);
            if object.contains_key("description") {
                only.remove("description");
            }
            object.extend(only);
            merge_choices(object);
        } else {
            object.insert(choice.to_owned(), Value::Array(options));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut schema: Value, expected: Value) {
        lean(&mut schema);
        assert_eq!(schema, expected);
    }

    #[test]
    fn what_tells_a_model_nothing_is_taken_out() {
        use serde_json::json;
        check(json!({"type": ["string", "null"], "title": "x", "default": null}), json!({"type": "string"}));
        check(json!({"type": "integer", "format": "uint", "minimum": 0}), json!({"type": "integer"}));
        check(json!({"type": "integer", "default": 120}), json!({"type": "integer", "default": 120}));
        check(
            json!({"anyOf": [{"type": "array", "items": {"type": ["integer", "null"]}}, {"type": "null"}]}),
            json!({"type": "array", "items": {"type": "integer"}}),
        );
        check(
            json!({"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]}),
            json!({"type": "string", "enum": ["a", "b"]}),
        );
        check(
            json!({"description": "outer", "anyOf": [{"type": "string", "enum": ["a"], "description": "inner"}, {"type": "null"}]}),
            json!({"description": "outer", "type": "string", "enum": ["a"]}),
        );
        // A property may have the name of a schema keyword.
        check(
            json!({"type": "object", "properties": {"title": {"type": "string", "title": "Title"}}}),
            json!({"type": "object", "properties": {"title": {"type": "string"}}}),
        );
    }
}
