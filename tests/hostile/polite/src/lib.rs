//! A component that answers and does nothing else: the neighbour of hostile ones, and what the benchmark measures.

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "adapter", generate_all });

use exports::relay::adapter::{context, hooks, identity, install, push, sessions};
use relay::adapter::types::{Activity, Error, Mail, Occasion, Priority, Session};

struct Polite;

/// A session, in the process that stands behind `@` in its id.
fn session(id: &str) -> Session {
    let process = id.split_once('@').and_then(|(_, process)| process.parse().ok());
    Session { id: id.to_owned(), parent: None, workdir: "/".to_owned(), process, route_hint: None }
}

impl identity::Guest for Polite {
    fn describe() -> identity::About {
        identity::About {
            harness: "polite".to_owned(),
            title: "A polite adapter".to_owned(),
            version: "0.1.0".to_owned(),
            aliases: Vec::new(),
            connection_per_session: true,
        }
    }
}

impl hooks::Guest for Polite {
    fn read(call: hooks::Call) -> Result<hooks::Reading, Error> {
        let seen = session(&call.payload);
        Ok(hooks::Reading {
            speaker: Some(seen.clone()),
            events: vec![
                hooks::Event::Alive(seen),
                hooks::Event::Activity((call.payload.clone(), Activity::Busy)),
                hooks::Event::Rebound(("before".to_owned(), call.payload.clone())),
                hooks::Event::UserSpoke(call.payload.clone()),
            ],
            occasion: Some(Occasion::Compaction),
            max_bytes: 1000,
            attended: true,
            watches_wake_file: false,
            edits: vec!["a.rs".to_owned()],
        })
    }

    fn answer(call: hooks::Call, found: hooks::Findings) -> Result<hooks::Reply, Error> {
        let mail = found.mail.map(|mail| mail.text).unwrap_or_default();
        Ok(hooks::Reply {
            stdout: Some(format!("{} {} {mail}", call.name, found.ticket)),
            stderr: found.refusal,
            exit_code: 2,
            shows_mail: true,
        })
    }
}

impl sessions::Guest for Polite {
    fn detect(seen: sessions::Caller) -> Result<Option<sessions::Detection>, Error> {
        let detection =
            |id: String| sessions::Detection { session: session(&id), certainty: sessions::Certainty::Certain };
        Ok(seen.meta.map(detection))
    }

    fn discover() -> Result<Vec<Session>, Error> {
        Ok(vec![session("one"), session("two")])
    }

    fn activity_of(id: String) -> Result<Activity, Error> {
        if id == "asks" { Ok(Activity::NeedsInput) } else { Err(Error::NotFound(id)) }
    }
}

impl context::Guest for Polite {
    fn protocol(base: String, occasion: Occasion, agent: Option<String>) -> Result<Option<String>, Error> {
        Ok(Some(format!("{base} {occasion:?} {agent:?}")))
    }
}

impl push::Guest for Polite {
    fn routes(_to: Session) -> Result<Vec<push::Route>, Error> {
        Ok(vec![push::Route {
            name: "wake-file".to_owned(),
            carries: push::Carries::Notification,
            proves: push::DeliveryStatus::Notified,
            when: vec![Activity::Idle],
            least: Priority::High,
            max_bytes: 0,
            timeout_ms: 5,
        }])
    }

    fn deliver(to: Session, route: String, mail: Mail) -> Result<push::Receipt, Error> {
        let evidence = Some(format!("\"{} {route} {:?} {:?}\"", to.id, mail.ids, mail.priority));
        Ok(push::Receipt { status: push::DeliveryStatus::Notified, evidence })
    }

    fn confirm(_to: Session, _route: String, sent: push::Receipt) -> Result<push::Receipt, Error> {
        Ok(push::Receipt { status: push::DeliveryStatus::Shown, evidence: sent.evidence })
    }
}

impl install::Guest for Polite {
    fn present() -> Result<Option<String>, Error> {
        Ok(Some("1.0".to_owned()))
    }

    fn propose(setup: install::Setup) -> Result<install::Plan, Error> {
        let edit = install::Edit {
            root: "config".to_owned(),
            path: setup.server_name,
            before: None,
            after: Some(format!("{:?} {:?}", setup.action, setup.scope)),
            executable: false,
        };
        Ok(install::Plan { edits: vec![edit], next_steps: setup.program })
    }

    fn check(_setup: install::Setup) -> Result<Vec<install::Finding>, Error> {
        Ok(vec![install::Finding { severity: install::Severity::Warning, what: "what".to_owned(), fix: None }])
    }
}

export!(Polite);

/// The same adapter with the optional interface `commands`, which reports what it was asked to run.
mod further {
    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        world: "runs-commands",
        with: { "relay:adapter/types@0.1.0": crate::relay::adapter::types },
    });

    use exports::relay::adapter::commands::{Command, Guest, Means, Progress, Stage};

    use crate::relay::adapter::types::{Activity, Error, Session};

    struct Commander;

    impl Guest for Commander {
        fn plan(to: Session, command: Command) -> Result<Means, Error> {
            match command.name.as_str() {
                "no" => Err(Error::Unsupported("it says no".to_owned())),
                name => Ok(Means { name: format!("{name} in {}", to.id), when: vec![Activity::Idle, Activity::Busy] }),
            }
        }

        fn run(_: Session, command: Command) -> Result<Progress, Error> {
            let evidence = Some(format!("{} {:?}", command.id, command.arguments));
            Ok(Progress { stage: Stage::Begun, said: None, evidence })
        }

        fn watch(_: Session, command: Command, begun: Progress) -> Result<Progress, Error> {
            let stage = if command.arguments.is_empty() { Stage::Failed } else { Stage::Succeeded };
            Ok(Progress { stage, said: begun.evidence.clone(), ..begun })
        }
    }

    export!(Commander);
}

/// The optional interface `runner`. It says what it was given, and wants as much memory as a line asks for.
mod tasks {
    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        world: "runs-tasks",
        with: { "relay:adapter/types@0.1.0": crate::relay::adapter::types },
    });

    use exports::relay::adapter::runner::*;

    use crate::relay::adapter::types::{Choice, Error, RunFile, StopSignal, StopStep};

    struct Runner;

    impl Guest for Runner {
        fn ready() -> Result<Readiness, Error> {
            let able = Abilities::LOOK | Abilities::FORK;
            Ok(Readiness { version: "1.0".to_owned(), login: Login::LoggedIn, why: Some("a\nkey".to_owned()), able })
        }

        fn prepare(task: Task) -> Result<Launch, Error> {
            if task.reach == Reach::Unguarded {
                return Err(Error::Unsupported("it says no".to_owned()));
            }
            let told = format!("{} {:?} {:?} {:?}", task.id, task.extensions, task.schema, task.cost);
            let model = task.model.unwrap_or_default();
            let choices = vec![
                Choice { name: "tell".to_owned(), values: vec![told] },
                Choice { name: model.clone(), values: Vec::new() },
            ];
            Ok(Launch {
                run: "task".to_owned(),
                choices,
                environment: vec![("POLITE_SETTINGS".to_owned(), String::new())],
                files: vec![RunFile { name: "settings.json".to_owned(), text: task.installation.server.join(" ") }],
                stop: vec![StopStep { signal: StopSignal::Interrupt, grace_ms: 5 }],
                without: vec!["no limit".to_owned()],
            })
        }

        fn read(_: Task, memory: Option<String>, lines: Vec<OutputLine>) -> Result<OutputReading, Error> {
            let before: u64 = memory.as_deref().unwrap_or("0").parse().unwrap_or(u64::MAX);
            let mut events = Vec::new();
            let mut kept = (before + lines.len() as u64).to_string();
            for line in lines {
                match line.text.split_once(' ') {
                    Some(("keep", bytes)) => kept = format!("\"{}\"", "x".repeat(bytes.parse().unwrap_or_default())),
                    Some(("piece", text)) => events.push(Event::Piece(text.to_owned())),
                    Some(("say", text)) => events.push(Event::Said(text.to_owned())),
                    Some(_) | None => events.push(Event::Note(format!("{} {}", line.text.len(), line.cut))),
                }
            }
            Ok(OutputReading { memory: Some(kept), events })
        }

        fn conclude(_: Task, memory: Option<String>, exit: ProcessExit) -> Result<Outcome, Error> {
            Ok(Outcome {
                ending: Ending::Answered,
                answer: None,
                output: memory,
                session: None,
                usage: Some(Usage {
                    input: 1,
                    cached_input: 2,
                    output: 3,
                    reasoning: None,
                    cost: Some(4),
                    whole_session: true,
                }),
                turns: exit.code.map(i32::unsigned_abs),
                denials: vec![Denial { tool: "Bash".to_owned(), why: "no\nway".to_owned() }],
                why: Some(exit.stderr_end),
                retry_after_ms: Some(5),
            })
        }
    }

    export!(Runner);
}

/// The optional interface `driver`. It says what it was given, and answers as much as a frame asks for.
mod driving {
    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        world: "drives-agents",
        with: { "relay:adapter/types@0.1.0": crate::relay::adapter::types },
    });

    use exports::relay::adapter::driver::*;

    use crate::relay::adapter::types::{Activity, Choice, Error};

    struct Driver;

    fn exchange(memory: Option<String>, frames: Vec<String>, event: Event) -> Exchange {
        let session = Some("s".to_owned());
        Exchange { memory, frames, events: vec![SessionEvent { session, event }] }
    }

    impl Guest for Driver {
        fn connections(agent: Agent, resume: Option<String>) -> Result<Vec<Connection>, Error> {
            let told = format!("{} {:?} {:?} {resume:?}", agent.name, agent.approvals, agent.extensions);
            let choices = vec![
                Choice { name: "tell".to_owned(), values: vec![told] },
                Choice { name: agent.model.unwrap_or_default(), values: Vec::new() },
            ];
            let launch = Launch {
                run: "pipe".to_owned(),
                choices,
                environment: Vec::new(),
                files: Vec::new(),
                stop: Vec::new(),
                without: Vec::new(),
            };
            Ok(vec![Connection {
                name: "polite".to_owned(),
                start: launch,
                abilities: Abilities::STEER | Abilities::ONCE,
                proves: PromptStatus::Shown,
            }])
        }

        fn connect(connection: String) -> Result<Exchange, Error> {
            Ok(exchange(None, vec![format!("hello {connection}")], Event::Ready))
        }

        fn act(memory: Option<String>, action: Action) -> Result<Exchange, Error> {
            Ok(exchange(
                memory,
                vec![format!("{action:?}")],
                Event::Activity(Activity::Busy),
            ))
        }

        /// Counts frames in its memory. `keep N` wants N bytes of it, `send N` sends N frames.
        fn receive(memory: Option<String>, frames: Vec<String>) -> Result<Exchange, Error> {
            let before: u64 = memory.as_deref().unwrap_or("0").parse().unwrap_or(u64::MAX);
            let mut kept = (before + frames.len() as u64).to_string();
            let mut sent = Vec::new();
            for frame in &frames {
                match frame.split_once(' ') {
                    Some(("keep", bytes)) => kept = format!("\"{}\"", "x".repeat(bytes.parse().unwrap_or_default())),
                    Some(("send", count)) => sent = vec![String::new(); count.parse().unwrap_or_default()],
                    Some(_) | None => {}
                }
            }
            Ok(exchange(Some(kept), sent, Event::Note(format!("{} frames", frames.len()))))
        }
    }

    export!(Driver);
}
