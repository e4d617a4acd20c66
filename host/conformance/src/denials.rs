//! Grants withheld, one at a time. The adapter must go on, and name the grant in the error of each call that needs
//! it.

use std::collections::BTreeMap;
use std::io;

use mesh::ports::harness::{Action, Harness as _, HarnessError};

use crate::fake_peer::FaultPlan;
use crate::hook_host::HookFindings;
use crate::report::Check;
use crate::scratch::StageOptions;
use crate::setups::INSTALL_VARIANTS;
use crate::{Bench, context, deliveries, detection, hooks, installing, is_fault};

pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let whole = battery(bench, None).await?;
    let mut checks = Vec::new();
    for grant in bench.scratch.grants() {
        let less = battery(bench, Some(grant.name.clone())).await?;
        checks.push(compare(bench, &grant.name, &whole, &less));
    }
    Ok(checks)
}

/// The result of each call, by its name.
type CallResults = BTreeMap<String, Result<(), HarnessError>>;

fn compare(bench: &Bench<'_>, grant: &str, whole: &CallResults, less: &CallResults) -> Check {
    let name = format!("without {grant}");
    let mut said = Vec::new();
    for (call, answer) in less {
        let Err(error) = answer else { continue };
        if whole.get(call) == Some(answer) {
            continue;
        }
        if is_fault(&bench.scratch.manifest.name, error) || matches!(error, HarnessError::Busy(_)) {
            let hint = format!("`{call}`: treat `denied` as an answer like any other");
            return Check::failed(name, "an answer, or an error that names the grant", error.to_string(), hint);
        }
        if whole.get(call).is_some_and(Result::is_ok) {
            if !error.to_string().contains(grant) {
                let hint = format!("`{call}` works with the grant: hand on the host's `denied`, which names it");
                return Check::failed(name, format!("an error that names `{grant}`"), error.to_string(), hint);
            }
            said.push(call.as_str());
        }
    }
    let went_on = less.len() - said.len();
    match said.first() {
        None => Check::held(name, format!("{went_on} calls went on")),
        Some(first) => Check::held(name, format!("{went_on} calls went on, {} said so, such as `{first}`", said.len())),
    }
}

/// Every call that an adapter gets, once.
async fn battery(bench: &Bench<'_>, without: Option<String>) -> io::Result<CallResults> {
    let mut answers = CallResults::new();
    let options = StageOptions { without: without.clone(), ..StageOptions::default() };
    for seen in &bench.fixtures.callers {
        let (after, caller) = (&seen.content.after, seen.content.caller());
        let found = detection::detect(bench, &options, after, &caller).await?;
        answers.insert(format!("detect {}", seen.name), found.map(drop));
    }
    for hook in &bench.fixtures.hooks {
        let called = hooks::call(bench, &options, &hook.content, HookFindings::Everything).await?;
        answers.insert(format!("hook {}", hook.name), called.map(drop));
    }
    for delivery in &bench.fixtures.deliveries {
        let sent = deliveries::send(bench, without.clone(), &delivery.content, FaultPlan::None).await?;
        let outcome = match sent {
            Ok(sent) => sent.outcome.map(drop),
            Err(why) => Err(HarnessError::Failed(why)),
        };
        answers.insert(format!("deliver {}", delivery.name), outcome);
    }
    let stage = bench.scratch.stage_on(&options)?;
    let adapter = match stage.adapter().await {
        Ok(adapter) => adapter,
        Err(error) => {
            answers.insert("describe".to_owned(), Err(error));
            stage.close().await?;
            return Ok(answers);
        }
    };
    for (occasion, word) in context::OCCASIONS {
        let said = adapter.protocol("base", occasion, Some("alice")).await;
        answers.insert(format!("protocol {word}"), said.map(drop));
    }
    answers.insert("discover".to_owned(), adapter.discover().await.map(drop));
    answers.insert("present".to_owned(), adapter.present().await.map(drop));
    for variant in INSTALL_VARIANTS {
        for (word, action) in [("install", Action::Install), ("remove", Action::Remove)] {
            let planned = installing::propose(&stage, variant, action).await;
            answers.insert(format!("{word} {}", variant.name), planned.map(drop));
        }
        let checked = adapter.check(&variant.setup(Action::Install)).await;
        answers.insert(format!("check {}", variant.name), checked.map(drop));
    }
    stage.close().await?;
    Ok(answers)
}
