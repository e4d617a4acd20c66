//! Payloads that no harness sends: cut off, of other types, empty, huge, not JSON. An adapter may return an error
//! for them. It may not break, and it may not make the harness's hook fail.

use std::io;

use mesh::ports::harness::{Harness as _, HarnessError, HookCall};
use serde_json::{Value, json};

use crate::fixtures::RecordedHook;
use crate::hook_host::{HookFindings, ScriptedHookHost};
use crate::report::{Check, shorten};
use crate::scratch::Stage;
use crate::{Bench, is_fault};

/// Texts in place of a JSON payload.
pub(crate) const TEXTS: &[&str] = &[
    "",
    " \n",
    "null",
    "true",
    "0",
    "-1e308",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[]]]]]]",
    "{\"a\":",
    "{}{}",
    "{\"\":{\"\":[]}}",
    "not JSON",
    "\u{0}",
    "\u{feff}{}",
    "\"\\ud800\"",
    "{'a':1}",
    "../../etc/passwd",
    "$(id)`id`\r\nX: y\n",
    "🥊\u{202e}\u{2028}",
];

/// Values in place of a field's own.
fn odd_values() -> [Value; 11] {
    let huge = 1e300;
    [
        Value::Null,
        json!(true),
        json!(-1),
        json!(huge),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}\n../.."),
        json!([]),
        json!([1, "a", null]),
        json!({}),
        json!({"a": {"b": [{}]}}),
    ]
}

/// Strange payloads for each recorded event, and unknown events.
pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    let mut seen = Vec::new();
    for hook in &bench.fixtures.hooks {
        if !seen.contains(&hook.content.event.as_str()) {
            seen.push(&hook.content.event);
            checks.push(event(bench, &hook.content).await?);
        }
    }
    checks.push(unknown(bench).await?);
    Ok(checks)
}

async fn event(bench: &Bench<'_>, hook: &RecordedHook) -> io::Result<Check> {
    let calls = strange(hook).into_iter().map(|payload| hook.with(payload)).collect();
    verdict(bench, &hook.event, calls).await
}

async fn unknown(bench: &Bench<'_>) -> io::Result<Check> {
    let long = "x".repeat(10_000);
    let names = ["", "NoSuchEvent", "..", "stop\n", "\u{0}", "🥊", long.as_str()];
    let call = |name: &str, payload: &str| HookCall {
        name: name.to_owned(),
        payload: payload.to_owned(),
        environment: Vec::new(),
        process: None,
    };
    let calls = names.iter().flat_map(|name| TEXTS.iter().map(|payload| call(name, payload))).collect();
    verdict(bench, "unknown events", calls).await
}

async fn verdict(bench: &Bench<'_>, name: &str, calls: Vec<HookCall>) -> io::Result<Check> {
    let stage = bench.scratch.stage()?;
    let (mut refused, tried) = (0, calls.len());
    let mut wrong = None;
    for call in calls {
        match answer(bench, &stage, &call).await {
            Reaction::Fine => {}
            Reaction::Refused => refused += 1,
            Reaction::Wrong { expected, got } => {
                wrong =
                    Some((expected, got, format!("`{}` was given {}", shorten(&call.name), shorten(&call.payload))));
                break;
            }
        }
    }
    stage.close().await?;
    Ok(match wrong {
        None => Check::held(name, format!("{tried} payloads: {refused} refused, none broke it")),
        Some((expected, got, hint)) => Check::failed(name, expected, got, hint),
    })
}

/// How an adapter took one strange call.
enum Reaction {
    Fine,
    Refused,
    Wrong { expected: &'static str, got: String },
}

/// Calls the hook with no findings, and with all findings if that was answered.
async fn answer(bench: &Bench<'_>, stage: &Stage<'_>, call: &HookCall) -> Reaction {
    const EXPECTED: &str = "an answer, `failed` or `unsupported`";
    let name = &bench.scratch.manifest.name;
    for found in [HookFindings::Nothing, HookFindings::Everything] {
        let outcome = match stage.adapter().await {
            Ok(adapter) => adapter.hook(call, &mut ScriptedHookHost::finding(found)).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(reply) if found == HookFindings::Nothing && reply.exit_code != 0 => {
                let got = format!("it ends with {} and says {:?}", reply.exit_code, reply.stderr);
                return Reaction::Wrong { expected: "a hook that ends with 0", got };
            }
            Ok(reply) if found == HookFindings::Nothing && reply.shows_mail => {
                let got = "it says that mail is shown, and there was none".to_owned();
                return Reaction::Wrong { expected: "no mail", got };
            }
            Ok(_) => {}
            Err(HarnessError::Busy(pause)) => {
                return Reaction::Wrong { expected: EXPECTED, got: format!("busy for {pause} ms") };
            }
            Err(error) if is_fault(name, &error) => {
                return Reaction::Wrong { expected: EXPECTED, got: error.to_string() };
            }
            Err(_) => return Reaction::Refused,
        }
    }
    Reaction::Fine
}

/// The variations of a recorded payload.
fn strange(hook: &RecordedHook) -> Vec<String> {
    let whole = hook.payload();
    let mut all: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    for part in 1..8 {
        all.push(whole.chars().take(whole.chars().count() * part / 8).collect());
    }
    if let Some(fields) = hook.json() {
        for name in fields.keys() {
            for value in odd_values() {
                let mut changed = fields.clone();
                changed.insert(name.clone(), value);
                all.push(Value::Object(changed).to_string());
            }
            let mut without = fields.clone();
            without.remove(name);
            all.push(Value::Object(without).to_string());
        }
        let mut more = fields.clone();
        more.insert("of_tomorrow".to_owned(), json!({"new": [1, 2, 3]}));
        all.push(Value::Object(more).to_string());
        let mut heavy = fields.clone();
        heavy.insert("filler".to_owned(), json!("x".repeat(1 << 20)));
        all.push(Value::Object(heavy).to_string());
        for (name, value) in fields {
            if value.is_string() {
                let mut long = fields.clone();
                long.insert(name.clone(), json!("y".repeat(64 * 1024)));
                all.push(Value::Object(long).to_string());
            }
        }
    }
    all.push("z".repeat(1 << 20));
    all.push("[".repeat(100_000));
    all.push(format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)));
    all
}
