//! Recorded calls of hooks: how the adapter reads them and what it answers.

use std::io;

use mesh::ports::harness::{Harness as _, HarnessError, Reading, Reply};

use crate::Bench;
use crate::fixtures::{ExpectedReading, Named, RecordedHook};
use crate::hook_host::{GivenTexts, HookFindings, ScriptedHookHost, events, occasion, place_of};
use crate::report::Check;
use crate::scratch::{Stage, StageOptions};

pub(crate) struct Called {
    pub(crate) reading: Reading,
    pub(crate) gave: GivenTexts,
    pub(crate) reply: Reply,
}

pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    if bench.fixtures.hooks.is_empty() {
        return Ok(vec![unrecorded(bench).await?]);
    }
    let mut checks = Vec::new();
    for hook in &bench.fixtures.hooks {
        let found = look(bench, hook).await?;
        checks.push(match found {
            Ok(evidence) => Check::held(&hook.name, evidence),
            Err(Wrong { expected, got, hint }) => Check::failed(&hook.name, expected, got, hint),
        });
    }
    Ok(checks)
}

/// Checks every recorded hook that names files about to be written: the adapter must refuse an edit of a file that
/// another agent has reserved, and allow any other edit.
pub(crate) async fn refusals(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for hook in &bench.fixtures.hooks {
        let options = StageOptions::default();
        let held = call(bench, &options, &hook.content, HookFindings::Everything).await?;
        let free = call(bench, &options, &hook.content, HookFindings::Nothing).await?;
        // The checks of hooks report a hook that is not answered at all.
        let (Ok(held), Ok(free)) = (held, free) else { continue };
        checks.extend(refusal(hook, &held, &free));
    }
    if checks.is_empty() {
        checks.push(Check::absent("edits", "no recorded hook names files about to be written"));
    }
    Ok(checks)
}

/// Whether a hook refuses an edit. None if it names no file and the fixture expects no refusal.
fn refusal(hook: &Named<RecordedHook>, held: &Called, free: &Called) -> Option<Check> {
    let expected = &hook.content.answers.refusal;
    let place = held.gave.refusal.as_deref().and_then(|refusal| place_of(&held.reply, refusal));
    let rules_out = match &hook.content.reads {
        Some(ExpectedReading::Reads(reads)) => reads.edits.as_ref().is_some_and(Vec::is_empty),
        Some(ExpectedReading::Fails(_)) | None => false,
    };
    let files = held.reading.edits.join(", ");
    let failed = |expected: String, got: String, hint: &str| Some(Check::failed(&hook.name, expected, got, hint));
    let (names_none, whole) = (held.reading.edits.is_empty(), "place the host's text as it is");
    match (expected, place) {
        (Some(Some(expected)), _) if names_none && !rules_out => {
            let hint = "name the files that are about to be written in the reading";
            failed(format!("the refusal at {expected}"), "the reading names no file".to_owned(), hint)
        }
        (_, _) if names_none => None,
        (Some(None), Some(place)) => {
            failed("no refusal".to_owned(), format!("the refusal at {place}"), "the fixture says null")
        }
        (Some(Some(expected)), Some(place)) if *expected != place => {
            failed(format!("the refusal at {expected}"), format!("the refusal at {place}"), whole)
        }
        (_, Some(_)) if free.reply == held.reply => {
            let got = "the same answer as where it is refused".to_owned();
            failed(
                format!("{files} is written although no agent has reserved it"),
                got,
                "refuse only where the host found a refusal",
            )
        }
        (_, Some(place)) => Some(Check::held(&hook.name, format!("{files}: refused at {place}"))),
        (_, None) => {
            let hint = "a reading that names edits promises that they can be refused";
            failed(
                "the refusal in the reply".to_owned(),
                format!("refusal nowhere whole in {:?}", held.reply.stdout),
                hint,
            )
        }
    }
}

/// Without a recording the kit can only see whether the adapter has hooks at all.
async fn unrecorded(bench: &Bench<'_>) -> io::Result<Check> {
    let stage = bench.scratch.stage()?;
    let call = mesh::ports::harness::HookCall {
        name: "Stop".to_owned(),
        payload: "{}".to_owned(),
        environment: Vec::new(),
        process: None,
    };
    let outcome = match stage.adapter().await {
        Ok(adapter) => adapter.hook(&call, &mut ScriptedHookHost::finding(HookFindings::Nothing)).await,
        Err(error) => Err(error),
    };
    stage.close().await?;
    let asks_for_none = bench.scratch.manifest.rehearsal.is_none();
    Ok(match outcome {
        Err(HarnessError::Unsupported(why)) if asks_for_none => Check::absent("hooks", why),
        Ok(_) | Err(_) => Check::untried("hooks", "record what the harness writes to a hook, in hooks/*.json"),
    })
}

/// Plays on a stage the hooks that come before a fixture.
pub(crate) async fn play(bench: &Bench<'_>, stage: &Stage<'_>, before: &[String]) -> Result<(), HarnessError> {
    for name in before {
        // An unknown name was refused when the fixtures were read.
        if let Some(hook) = bench.fixtures.hook(name) {
            let adapter = stage.adapter().await?;
            adapter.hook(&hook.call(), &mut ScriptedHookHost::finding(HookFindings::Nothing)).await?;
        }
    }
    Ok(())
}

pub(crate) async fn call(
    bench: &Bench<'_>,
    options: &StageOptions,
    hook: &RecordedHook,
    found: HookFindings,
) -> io::Result<Result<Called, HarnessError>> {
    let stage = bench.scratch.stage_on(options)?;
    let mut hook_host = ScriptedHookHost::finding(found).ringing(hook.wake_file.as_deref());
    let reply = match play(bench, &stage, &hook.after).await {
        Ok(()) => match stage.adapter().await {
            Ok(adapter) => {
                let reply = adapter.hook(&hook.call(), &mut hook_host).await;
                hook_host.fit_protocol(adapter.as_ref()).await;
                reply
            }
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    stage.close().await?;
    Ok(reply.map(|reply| Called { reading: hook_host.read.unwrap_or_default(), gave: hook_host.gave, reply }))
}

struct Wrong {
    expected: String,
    got: String,
    hint: String,
}

fn wrong<T>(expected: impl Into<String>, got: impl Into<String>, hint: &str) -> Result<T, Wrong> {
    Err(Wrong { expected: expected.into(), got: got.into(), hint: hint.to_owned() })
}

/// Calls one hook without findings, with all findings, and with all findings again.
async fn look(bench: &Bench<'_>, hook: &Named<RecordedHook>) -> io::Result<Result<String, Wrong>> {
    let options = StageOptions::default();
    let recorded = &hook.content;
    let quiet = call(bench, &options, recorded, HookFindings::Nothing).await?;
    let must_fail = matches!(recorded.reads, Some(ExpectedReading::Fails(_)));
    let quiet = match (quiet, must_fail) {
        (Err(error), true) if !crate::is_fault(&bench.scratch.manifest.name, &error) => {
            return Ok(Ok(format!("refused: {error}")));
        }
        (Ok(called), true) => {
            return Ok(wrong("a refusal", events(&called.reading).join(", "), "answer `failed` or `unsupported`"));
        }
        (Err(error), _) => {
            return Ok(wrong("an answer", error.to_string(), "the payload is one that the harness really sends"));
        }
        (Ok(called), false) => called,
    };
    let (full, again) = (
        call(bench, &options, recorded, HookFindings::Everything).await?,
        call(bench, &options, recorded, HookFindings::Everything).await?,
    );
    let (full, again) = match (full, again) {
        (Ok(full), Ok(again)) => (full, again),
        (Err(error), _) | (_, Err(error)) => {
            return Ok(wrong("an answer with mail", error.to_string(), "it answers when nothing is found"));
        }
    };
    Ok(judge(recorded, &quiet, &full, &again))
}

fn judge(recorded: &RecordedHook, quiet: &Called, full: &Called, again: &Called) -> Result<String, Wrong> {
    if let Some(ExpectedReading::Reads(reads)) = &recorded.reads {
        compare(reads, &full.reading)?;
    }
    if quiet.reply.exit_code != 0 {
        let got = format!("it ends with {}", quiet.reply.exit_code);
        return wrong("it ends with 0 where nothing was found", got, "a hook of ours never stops a harness");
    }
    if quiet.reply.shows_mail {
        let hint = "set `shows-mail` only where the mail's text is in the reply";
        return wrong("no mail is shown where none was found", "it says that mail is shown", hint);
    }
    let places = placed(recorded, full)?;
    if (&full.reading, &full.reply) != (&again.reading, &again.reply) {
        let got = format!("{:?}, then {:?}", full.reply, again.reply);
        return wrong("the same answer to the same call", got, "keep what matters in `state`, and nothing by chance");
    }
    let said = events(&full.reading);
    let said = if said.is_empty() { "nothing happened".to_owned() } else { said.join(", ") };
    Ok(std::iter::once(said).chain(places).collect::<Vec<_>>().join("; "))
}

/// Where the reply holds mail and protocol text, in words.
fn placed(recorded: &RecordedHook, called: &Called) -> Result<Vec<String>, Wrong> {
    let mut places = Vec::new();
    let Called { gave, reply, .. } = called;
    let answers = &recorded.answers;
    // A fixture whose reading rules out mail or protocol text cannot expect it in this reply.
    let (no_mail, no_protocol) = match &recorded.reads {
        Some(ExpectedReading::Reads(reads)) => (reads.mail == Some(false), reads.occasion == Some(None)),
        Some(ExpectedReading::Fails(_)) | None => (false, false),
    };
    for (what, given, expected, ruled_out) in
        [("mail", &gave.mail, &answers.mail, no_mail), ("protocol", &gave.protocol, &answers.protocol, no_protocol)]
    {
        let place = given.as_deref().and_then(|text| place_of(reply, text));
        match (expected, &place) {
            (Some(Some(expected)), Some(place)) if expected == place => {}
            (Some(Some(_)), None) if given.is_none() && ruled_out => {}
            (Some(Some(expected)), _) => {
                let got = match (given, &place) {
                    (None, _) => format!("the reading makes no room for {what}"),
                    (Some(_), Some(place)) => format!("the {what} at {place}"),
                    (Some(_), None) => format!("{what} nowhere whole in {:?}", reply.stdout),
                };
                return wrong(format!("the {what} at {expected}"), got, "place the host's text as it is");
            }
            (Some(None), Some(place)) => {
                return wrong(format!("no {what}"), format!("the {what} at {place}"), "the fixture says null");
            }
            (Some(None), None) | (None, _) => {}
        }
        places.extend(place.map(|place| format!("{what} at {place}")));
    }
    let mail = gave.mail.as_deref().and_then(|text| place_of(reply, text));
    if reply.shows_mail != mail.is_some() {
        let (expected, got) = match reply.shows_mail {
            true => ("the mail's text, whole, in the reply", "it says that mail is shown, and it is not there"),
            false => ("it says that mail is shown", "the mail is in the reply, and it says nothing of it"),
        };
        return wrong(expected, got, "`shows-mail` is what receipts rest on");
    }
    Ok(places)
}

fn compare(expected: &crate::fixtures::Reads, reading: &Reading) -> Result<(), Wrong> {
    let speaker = reading.speaker.as_ref();
    let shown = |text: Option<&str>| text.unwrap_or("null").to_owned();
    let list = |texts: &[String]| format!("[{}]", texts.join(", "));
    let fields = [
        (
            "session",
            expected.session.as_ref().map(|id| shown(id.as_deref())),
            shown(speaker.map(|one| one.id.as_str())),
        ),
        (
            "parent",
            expected.parent.as_ref().map(|id| shown(id.as_deref())),
            shown(speaker.and_then(|one| one.parent.as_deref())),
        ),
        ("events", expected.events.as_deref().map(list), list(&events(reading))),
        ("occasion", expected.occasion.as_ref().map(|word| shown(word.as_deref())), shown(occasion(reading))),
        ("mail", expected.mail.map(|fits| fits.to_string()), (reading.max_bytes > 0).to_string()),
        ("attended", expected.attended.map(|by_person| by_person.to_string()), reading.attended.to_string()),
        ("edits", expected.edits.as_deref().map(list), list(&reading.edits)),
    ];
    for (name, expected, got) in fields {
        if let Some(expected) = expected.filter(|expected| *expected != got) {
            return wrong(format!("{name}: {expected}"), format!("{name}: {got}"), "the fixture says what it means");
        }
    }
    Ok(())
}
