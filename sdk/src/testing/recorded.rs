//! Recorded hook calls, from the same files that `relay-mesh plugin test` reads.

use serde_json::Value;

use crate::hooks::Call;

/// The call in `FOLDER/hooks/NAME.json`, in the format of relay-mesh's docs/fixtures.md: event, payload
/// and environment. Only `relay-mesh plugin test` checks what the file expects. A payload that is a string is
/// passed as it is; JSON is written on one line, with its keys in order.
///
/// ```
/// use relay_mesh_sdk::testing::recorded;
///
/// let folder = std::env::temp_dir().join(format!("recorded-{}", std::process::id()));
/// std::fs::create_dir_all(folder.join("hooks"))?;
/// std::fs::write(folder.join("hooks/1.0-Stop.json"), r#"{"event": "Stop", "payload": {"session": "s1"}}"#)?;
/// let call = recorded(&folder, "1.0-Stop");
/// assert_eq!((call.name.as_str(), call.payload.as_str()), ("Stop", r#"{"session":"s1"}"#));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn recorded(folder: impl AsRef<std::path::Path>, name: &str) -> Call {
    let path = folder.as_ref().join("hooks").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("the fixture {} cannot be read: {error}", path.display()));
    call(&text).unwrap_or_else(|error| {
        panic!("the fixture {} is not a recorded call: {error}; docs/fixtures.md has the format", path.display())
    })
}

fn call(text: &str) -> Result<Call, String> {
    let fixture: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let field = |name: &str| fixture.get(name).ok_or_else(|| format!("it has no `{name}`"));
    let payload = match field("payload")? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let variables = fixture.get("environment").and_then(Value::as_object);
    let environment = variables.into_iter().flatten().map(|(name, value)| match value.as_str() {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(format!("the variable `{name}` is no text")),
    });
    Ok(Call {
        environment: environment.collect::<Result<_, _>>()?,
        process: fixture.get("process").and_then(Value::as_str).map(str::to_owned),
        ..Call::new(field("event")?.as_str().ok_or("its `event` is no text")?, payload)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let told = match call(text) {
            Ok(call) => format!("{} {} {:?}", call.name, call.payload, call.environment),
            Err(error) => error,
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn a_fixture_is_a_call() {
        check(r#"{"event":"Stop","payload":{"b":1,"a":2}}"#, r#"Stop {"b":1,"a":2} []"#);
        check(r#"{"event":"Stop","payload":"no {","environment":{"A":"1"}}"#, r#"Stop no { [("A", "1")]"#);
        check(r#"{"event":"Stop"}"#, "it has no `payload`");
        check(r#"{"payload":1}"#, "it has no `event`");
        check(r#"{"event":"Stop","payload":1,"environment":{"A":1}}"#, "the variable `A` is no text");
    }
}
