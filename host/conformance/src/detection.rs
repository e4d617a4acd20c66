//! Which session an adapter takes a caller for: with recorded callers, with garbage, and with a session id that a
//! model typed, which is no evidence.

use std::io;

use mesh::ports::harness::{Harness as _, HarnessError};
use mesh::sessions::{Caller, Certainty, Detection, Transport};
use serde_json::json;

use crate::fixtures::{Detects, Named, RecordedCaller};
use crate::hooks::play;
use crate::report::{Check, shorten};
use crate::scratch::StageOptions;
use crate::{Bench, garbage, is_fault};

/// Arguments in which a model may type a session's id.
const TYPED: [&str; 8] =
    ["session", "session_id", "sessionId", "threadId", "thread_id", "conversation_id", "agent_id", "id"];

/// Every recorded caller, strange callers, and typed ids.
pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for seen in &bench.fixtures.callers {
        checks.push(recorded(bench, seen).await?);
    }
    if bench.fixtures.callers.is_empty() {
        checks.push(Check::untried("callers", "record what callers look like, in callers/*.json"));
    }
    checks.push(strangers(bench).await?);
    checks.push(typed(bench).await?);
    Ok(checks)
}

/// Detects on a fresh stage, after playing the hooks named in `before`.
pub(crate) async fn detect(
    bench: &Bench<'_>,
    options: &StageOptions,
    before: &[String],
    seen: &Caller,
) -> io::Result<Result<Option<Detection>, HarnessError>> {
    let stage = bench.scratch.stage_on(options)?;
    let found = match play(bench, &stage, before).await {
        Ok(()) => match stage.adapter().await {
            Ok(adapter) => adapter.detect(seen).await,
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    stage.close().await?;
    Ok(found)
}

async fn recorded(bench: &Bench<'_>, seen: &Named<RecordedCaller>) -> io::Result<Check> {
    let Named { name, content } = seen;
    let options = StageOptions::default();
    let first = detect(bench, &options, &content.after, &content.caller()).await?;
    let again = detect(bench, &options, &content.after, &content.caller()).await?;
    if first != again {
        let hint = "keep what matters in `state`, and nothing by chance";
        return Ok(Check::failed(
            name,
            "the same answer to the same caller",
            format!("{first:?}, then {again:?}"),
            hint,
        ));
    }
    let expected = content.detects.as_ref().map_or_else(|| "no session".to_owned(), wanted);
    let got = match (&first, &content.detects) {
        (Ok(None), _) => "no session".to_owned(),
        (Ok(Some(found)), Some(detects)) => told(found, detects),
        (Ok(Some(found)), None) => format!("session {}", found.session.id),
        (Err(error), _) => error.to_string(),
    };
    Ok(Check::equal(name, &expected, &got, "the fixture says who this caller is"))
}

/// The detection that a fixture expects, in words.
fn wanted(detects: &Detects) -> String {
    let mut words = vec!["a session".to_owned()];
    words.extend(detects.session.as_ref().map(|id| format!("id {id}")));
    words.extend(detects.parent.as_ref().map(|parent| format!("parent {}", parent.as_deref().unwrap_or("null"))));
    words.extend(detects.certainty.clone());
    words.join(", ")
}

/// The detection, in words, with only the fields that the fixture compares.
fn told(found: &Detection, detects: &Detects) -> String {
    let mut words = vec!["a session".to_owned()];
    words.extend(detects.session.as_ref().map(|_| format!("id {}", found.session.id)));
    let parent = found.session.parent.as_deref().unwrap_or("null");
    words.extend(detects.parent.as_ref().map(|_| format!("parent {parent}")));
    words.extend(detects.certainty.as_ref().map(|_| certainty(found.certainty).to_owned()));
    words.join(", ")
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        Certainty::Inherited => "inherited",
    }
}

/// Callers that no harness produces. An adapter may find nothing or return an error. It may not break, and a
/// session needs an id.
async fn strangers(bench: &Bench<'_>) -> io::Result<Check> {
    const NAME: &str = "strange callers";
    let adapter_name = &bench.scratch.manifest.name;
    let stage = bench.scratch.stage()?;
    let mut tried = 0;
    let mut wrong = None;
    for seen in strange(bench) {
        let found = match stage.adapter().await {
            Ok(adapter) => adapter.detect(&seen).await,
            Err(error) => Err(error),
        };
        tried += 1;
        let got = match found {
            Err(error) if is_fault(adapter_name, &error) => error.to_string(),
            Err(HarnessError::Busy(pause)) => format!("busy for {pause} ms"),
            Ok(Some(found)) if found.session.id.is_empty() => "a session without an id".to_owned(),
            Ok(_) | Err(_) => continue,
        };
        wrong = Some((shorten(&format!("{seen:?}")), got));
        break;
    }
    stage.close().await?;
    Ok(match wrong {
        None => Check::held(NAME, format!("{tried} of them broke nothing")),
        Some((seen, got)) => {
            let hint = format!("it was shown {seen}");
            Check::failed(NAME, "no session, a session with an id, or an error", got, hint)
        }
    })
}

fn strange(bench: &Bench<'_>) -> Vec<Caller> {
    let manifest = &bench.scratch.manifest;
    let clients = manifest.matches.clients.iter().filter(|client| *client != "*").cloned();
    let client = clients.into_iter().next();
    let variables = |value: &str| {
        manifest.requests.environment.iter().map(|name| (name.clone(), value.to_owned())).collect::<Vec<_>>()
    };
    let plain = Caller {
        transport: Transport::Stdio,
        client_name: client,
        client_version: None,
        meta: None,
        headers: Vec::new(),
        tool: Some("send_message".to_owned()),
        arguments: Some("{}".to_owned()),
        environment: Vec::new(),
        workdir: None,
    };
    let recorded = bench.fixtures.callers.iter().map(|seen| seen.content.caller());
    let bases: Vec<Caller> = std::iter::once(plain).chain(recorded).collect();
    let mut all = Vec::new();
    for base in &bases {
        for transport in [Transport::Stdio, Transport::Http, Transport::CommandLine] {
            all.push(Caller { transport, ..base.clone() });
        }
        for text in garbage::TEXTS {
            all.push(Caller { meta: Some((*text).to_owned()), ..base.clone() });
            all.push(Caller { arguments: Some((*text).to_owned()), ..base.clone() });
            all.push(Caller { environment: variables(text), ..base.clone() });
            all.push(Caller { headers: vec![((*text).to_owned(), (*text).to_owned())], ..base.clone() });
            all.push(Caller { workdir: Some((*text).to_owned()), tool: Some((*text).to_owned()), ..base.clone() });
        }
    }
    let large = "x".repeat(1 << 20);
    let base = &bases[0];
    all.push(Caller { meta: Some(format!("{{\"a\":\"{large}\"}}")), ..base.clone() });
    all.push(Caller { arguments: Some(large.clone()), ..base.clone() });
    all.push(Caller { environment: variables(&large[..64 * 1024]), ..base.clone() });
    all
}

/// A session id from another caller, typed into the arguments of a call that has no evidence of a session.
async fn typed(bench: &Bench<'_>) -> io::Result<Check> {
    const NAME: &str = "an id that a model typed";
    let ids = bench.fixtures.callers.iter().filter_map(|seen| seen.content.detects.as_ref()?.session.clone());
    let mut tried = 0;
    for id in ids.chain(["kit-session".to_owned()]) {
        let arguments: serde_json::Map<_, _> = TYPED.iter().map(|name| ((*name).to_owned(), json!(id))).collect();
        let seen = Caller { arguments: Some(json!(arguments).to_string()), ..strange(bench)[0].clone() };
        let found = detect(bench, &StageOptions::default(), &[], &seen).await?;
        tried += 1;
        if let Ok(Some(found)) = found
            && found.session.id == id
        {
            let got = format!("session {id}, {}", certainty(found.certainty));
            let hint = "take a session from `_meta`, the environment, or a note of a hook of yours";
            return Ok(Check::failed(NAME, "not that session", got, hint));
        }
    }
    Ok(Check::held(NAME, format!("{tried} of them proved nothing")))
}

/// The harness's own list of sessions, and a session's activity.
pub(crate) async fn listing(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let name = &bench.scratch.manifest.name;
    let stage = bench.scratch.stage()?;
    let (listed, activity) = match stage.adapter().await {
        Ok(adapter) => (adapter.discover().await.map(|found| found.len()), adapter.activity_of("kit-session").await),
        Err(error) => (Err(error.clone()), Err(error)),
    };
    stage.close().await?;
    let hint =
        "answer `unsupported` where the harness keeps no list, and `not-found` for a session that it does not know";
    let discover = match listed {
        Ok(0) => Check::held("discover", "nothing runs here, and nothing is listed"),
        Ok(count) => Check::failed("discover", "no session: nothing runs here", format!("{count} sessions"), hint),
        Err(HarnessError::Unsupported(why)) => Check::absent("discover", why),
        Err(error) if is_fault(name, &error) => Check::failed("discover", "a list", error.to_string(), hint),
        // The harness is not here, so there may be nothing to ask.
        Err(error) => Check::held("discover", format!("says that it cannot: {error}")),
    };
    let activity = match activity {
        Ok(mesh::sessions::Activity::Ended) => Check::held("activity", "an unknown session is gone"),
        Ok(other) => Check::failed("activity", "not-found", format!("an unknown session is {}", other.as_str()), hint),
        Err(HarnessError::Unsupported(why)) => Check::absent("activity", why),
        Err(error) if is_fault(name, &error) => Check::failed("activity", "not-found", error.to_string(), hint),
        Err(error) => Check::held("activity", format!("an unknown session: {error}")),
    };
    Ok(vec![discover, activity])
}
