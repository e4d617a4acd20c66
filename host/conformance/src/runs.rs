//! Tasks: which command lines the adapter words, and what it makes of output: recorded, torn, of tomorrow, none at
//! all. Nothing is started.

use std::io;
use std::path::Path;
use std::time::Duration;

use mesh::ports::harness::{Harness as _, HarnessError};
use mesh::ports::runner::{Ending, Extensions, OutputLine, ProcessExit, Reach, RunEvent, RunOutcome, Start, Task};
use serde_json::json;

use crate::fixtures::{LONGEST_STOP, RecordedRun, ended, lines, plain_task};
use crate::garbage::TEXTS;
use crate::report::Check;
use crate::scratch::Stage;
use crate::{Bench, is_fault};

const REACHES: [Reach; 4] = [Reach::Look, Reach::Edit, Reach::Work, Reach::Unguarded];
const EXTENSIONS: [Extensions; 3] = [Extensions::None, Extensions::Mesh, Extensions::All];

pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let stage = bench.scratch.stage()?;
    let runs = match stage.adapter().await {
        Ok(adapter) => adapter.optional().runner.is_some(),
        Err(_) => false,
    };
    if !runs {
        stage.close().await?;
        return Ok(vec![Check::absent("prepare", "it does not export `runner`: relay-mesh runs no tasks with it")]);
    }
    // The programs only have to be there: nothing is started.
    for run in bench.scratch.manifest.requests.runs.values() {
        stage.place_program(&run.program)?;
    }
    let mut checks = vec![prepared(bench, &stage).await, garbage(bench, &stage).await, silence(bench, &stage).await];
    for run in &bench.fixtures.runs {
        checks.push(recorded(bench, &stage, &run.name, &run.content).await);
        if run.content.concludes.ending == Ending::Answered {
            checks.push(torn(&stage, &run.name, &run.content).await);
        }
    }
    if bench.fixtures.runs.is_empty() {
        checks.push(Check::untried("conclude", "what the harness printed for a task, in runs/NAME.json"));
    }
    stage.close().await?;
    Ok(checks)
}

/// Every reach with every choice of extensions: a command line, or the reason why there is none.
async fn prepared(bench: &Bench<'_>, stage: &Stage<'_>) -> Check {
    const TOLD: &str = "prepare";
    let (mut can, mut cannot) = (Vec::new(), 0);
    let wild = Task {
        model: Some("--relay-mesh-has-no-such-option".to_owned()),
        schema: Some(json!({"type": "object"})),
        guidance: Some("- Say `$(touch it)`.\n\"quoted\"\n".to_owned()),
        start: Start::Resume("--relay-mesh-has-no-such-session".to_owned()),
        ..plain_task()
    };
    // Apart, because a harness that keeps no limits refuses them.
    let limited = Task { turns: Some(3), cost: Some(1), ..plain_task() };
    for reach in REACHES {
        for extensions in EXTENSIONS {
            for task in [plain_task(), wild.clone(), limited.clone()] {
                match prepare(stage, &Task { reach, extensions, ..task }).await {
                    Ok(launch) => {
                        let stray = launch.command[1..].iter().find(|word| word.starts_with("--relay-mesh-has-no"));
                        if let Some(word) = stray {
                            let hint = "give such values by `--option={value}` in the manifest";
                            return Check::failed(TOLD, "a value inside of a word", format!("the word `{word}`"), hint);
                        }
                        let stop: Duration = launch.stop.iter().map(|step| step.grace).sum();
                        if stop > LONGEST_STOP {
                            let hint = "after the last step everything is killed: give each step seconds";
                            return Check::failed(TOLD, "a stop within a minute", format!("{stop:?}"), hint);
                        }
                        let name = format!("{reach:?}").to_lowercase();
                        if !can.contains(&name) {
                            can.push(name);
                        }
                    }
                    // A value that fits no word of the manifest is refused by the host, and never reaches a program.
                    Err(HarnessError::Failed(why)) if why.contains("would be read as an option") => cannot += 1,
                    Err(HarnessError::Unsupported(_)) => cannot += 1,
                    Err(error) => {
                        let hint = "answer `unsupported` with the reason if a promise cannot be kept";
                        let got = format!("{error} for {reach:?} with {extensions:?}");
                        return Check::failed(TOLD, "a command line, or `unsupported`", got, hint);
                    }
                }
            }
        }
    }
    if bench.scratch.manifest.requests.runs.is_empty() {
        return Check::failed(TOLD, "a `[runs.NAME]` in the manifest", "none", "name the program and its words there");
    }
    Check::held(TOLD, format!("it keeps {}; {cannot} of 36 tasks are refused", can.join(", ")))
}

/// Lines that no harness prints.
async fn garbage(bench: &Bench<'_>, stage: &Stage<'_>) -> Check {
    const TOLD: &str = "strange output";
    let mut all = lines(TEXTS.iter().copied());
    all.extend(lines([r#"{"type":"of_tomorrow","new":[1,{"a":null}]}"#, r#"{"type":1}"#, r#"{"type":null}"#]));
    for run in &bench.fixtures.runs {
        for line in &run.content.output {
            let half: String = line.chars().take(line.chars().count() / 2).collect();
            all.push(OutputLine { text: half.clone(), cut: true });
            all.push(OutputLine { text: half, cut: false });
        }
    }
    let many: Vec<OutputLine> = all.iter().cycle().take(5_000).cloned().collect();
    let mut last = None;
    for given in [&all, &many] {
        match follow(stage, &plain_task(), given, usize::MAX, &ended(0)).await {
            Ok((_, outcome)) if outcome.ending == Ending::Answered => {
                let hint = "without the harness's own last event a run broke off, whatever its exit code";
                return Check::failed(TOLD, "no answer", "the ending `answered`", hint);
            }
            Ok((_, outcome)) => last = outcome.why,
            Err(error) => {
                let hint = "leave out what you do not know, and keep little in memory";
                return Check::failed(TOLD, "a reading", error.to_string(), hint);
            }
        }
    }
    Check::held(TOLD, format!("{} lines, then 5000: it goes on, and says {:?}", all.len(), last.unwrap_or_default()))
}

/// No output at all, with every exit.
async fn silence(bench: &Bench<'_>, stage: &Stage<'_>) -> Check {
    const TOLD: &str = "no output";
    let killed = ProcessExit { signal: Some(9), ..ProcessExit::default() };
    let stopped = ProcessExit { asked_to_stop: true, ..ended(0) };
    let mut endings = Vec::new();
    for exit in [ended(0), ended(1), killed, stopped] {
        match follow(stage, &plain_task(), &[], 1, &exit).await {
            Ok((_, outcome)) if outcome.ending == Ending::Answered => {
                let hint = "an exit code is no result: without a last event it broke off";
                return Check::failed(TOLD, "no answer", format!("`answered` after {exit:?}"), hint);
            }
            Ok((_, outcome)) => endings.push(format!("{:?}", outcome.ending)),
            Err(error) => {
                let name = &bench.scratch.manifest.name;
                let expected = if is_fault(name, &error) { "an outcome" } else { "an outcome, not an error" };
                return Check::failed(TOLD, expected, error.to_string(), "conclude every run, also an empty one");
            }
        }
    }
    Check::held(TOLD, format!("exit 0, exit 1, killed, told to stop: {}", endings.join(", ")))
}

/// A recorded run, line by line on instances of their own, all at once, and with events of tomorrow in between.
async fn recorded(bench: &Bench<'_>, stage: &Stage<'_>, name: &str, run: &RecordedRun) -> Check {
    let told = format!("run {name}");
    let plain = lines(run.output.iter().map(String::as_str));
    let of_tomorrow = lines(run.output.iter().flat_map(|line| [r#"{"type":"of_tomorrow","id":7}"#, line.as_str()]));
    let mut evidence = None;
    for (given, at_once) in [(&plain, 1), (&plain, usize::MAX), (&of_tomorrow, 3)] {
        match follow(stage, &run.task(), given, at_once, &run.exit()).await {
            Ok((events, outcome)) => match run.concludes.differs(&events, &outcome) {
                Some(differs) => {
                    let hint = format!("it was given {} lines, {at_once} at once", given.len());
                    return Check::failed(told, "what was recorded", differs, hint);
                }
                None => evidence = Some(format!("{:?}: {}", outcome.ending, outcome.why.unwrap_or_default())),
            },
            Err(error) if is_fault(&bench.scratch.manifest.name, &error) => {
                return Check::failed(told, "an outcome", error.to_string(), "see the log");
            }
            Err(error) => return Check::failed(told, "an outcome", error.to_string(), "conclude every run"),
        }
    }
    Check::held(told, evidence.unwrap_or_default())
}

/// An answer whose last event is missing, or torn, broke off.
async fn torn(stage: &Stage<'_>, name: &str, run: &RecordedRun) -> Check {
    let told = format!("run {name}, cut off");
    let Some((last, before)) = run.output.split_last() else {
        return Check::failed(told, "lines", "none", "record what the harness prints");
    };
    let half: String = last.chars().take(last.chars().count() / 2).collect();
    for given in [before.to_vec(), before.iter().cloned().chain([half]).collect()] {
        let given = lines(given.iter().map(String::as_str));
        match follow(stage, &run.task(), &given, usize::MAX, &ended(0)).await {
            Ok((_, outcome)) if outcome.ending == Ending::BrokeOff => {}
            Ok((_, outcome)) => {
                let hint = "only the last event says that a run has ended";
                return Check::failed(told, "the ending `broke-off`", format!("{:?}", outcome.ending), hint);
            }
            Err(error) => return Check::failed(told, "an outcome", error.to_string(), "a torn line is no error"),
        }
    }
    Check::held(told, "without its last event it broke off, with exit code 0")
}

async fn prepare(stage: &Stage<'_>, task: &Task) -> Result<mesh::ports::runner::Launch, HarnessError> {
    stage.adapter().await?.runner()?.prepare(task, Path::new("/relay-mesh/runs/1")).await
}

/// Reads lines in portions, each on an instance of its own, and concludes.
async fn follow(
    stage: &Stage<'_>,
    task: &Task,
    lines: &[OutputLine],
    at_once: usize,
    exit: &ProcessExit,
) -> Result<(Vec<RunEvent>, RunOutcome), HarnessError> {
    let adapter = stage.adapter().await?;
    let runner = adapter.runner()?;
    let (mut memory, mut events) = (None, Vec::new());
    for portion in lines.chunks(at_once.min(lines.len()).max(1)) {
        let reading = runner.read(task, memory.as_ref(), portion).await?;
        memory = reading.memory;
        events.extend(reading.events);
    }
    Ok((events, runner.conclude(task, memory.as_ref(), exit).await?))
}
