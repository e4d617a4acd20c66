//! Runs an adapter natively against a fake host.
//!
//! [`Fakes`] describes the host: folders in memory, state, scripted programs, origins and endpoints, a
//! clock that stands still. [`Fakes::start`] makes it the host of the current thread and returns a
//! [`FakeHost`], with which a test moves the clock, applies an install plan as the host would, and reads
//! what the adapter did.
//!
//! ```
//! use relay_mesh_sdk::testing::Fakes;
//! use relay_mesh_sdk::{clock, files::Root, notices};
//!
//! let host = Fakes::default().at(1_000).desktop().file("config", "settings.json", "{}").start();
//! assert_eq!(clock::now(), 1_000);
//! host.advance(500);
//! assert_eq!(clock::now(), 1_500);
//! assert_eq!(Root::open("config")?.read_text("settings.json")?.as_deref(), Some("{}"));
//! notices::show("relay-mesh", "mail waits")?;
//! assert_eq!(host.notices(), [("relay-mesh".to_owned(), "mail waits".to_owned())]);
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

pub(crate) mod conversation;
mod fake_host;
pub(crate) mod fakes;

mod recorded;
mod run;
mod words;

pub use conversation::converse;
pub use fake_host::FakeHost;
pub use fakes::Fakes;
pub use recorded::recorded;
pub use run::{agent, ended, recorded_runs, run, task};
pub use words::{SETTINGS, complaints, reading, reply};

use crate::hooks::{Call, Findings, Hooks, Reading, Reply};
use crate::install::{Action, Install, Scope, Server, Setup};
use crate::{Error, Mail, Priority};

/// Runs a hook as the host does: `read`, then `look_up` in the host's place, then `answer`.
pub fn hook<A: Hooks>(call: &Call, look_up: impl FnOnce(&Reading) -> Findings) -> Result<(Reading, Reply), Error> {
    let reading = A::read(call)?;
    let found = look_up(&reading);
    let reply = A::answer(call, found)?;
    Ok((reading, reply))
}

/// Findings without mail, protocol or refusal. Tests set the fields that they need.
pub fn nothing_found() -> Findings {
    Findings {
        agent: None,
        mail: None,
        protocol: None,
        refusal: None,
        wake_file: "/relay/wakes/session".to_owned(),
        ticket: "{}".to_owned(),
    }
}

/// Mail of one message with normal priority.
pub fn mail(text: &str) -> Mail {
    Mail { ids: vec!["01JD0000000000000000000000".to_owned()], text: text.to_owned(), priority: Priority::Normal }
}

/// A setup with typical values: a stdio server and a `RELAY_DIR`.
pub fn setup(action: Action, scope: Scope) -> Setup {
    Setup {
        action,
        scope,
        server: Server::Stdio(vec!["/opt/bin/relay-mesh".into(), "mcp".into()]),
        server_name: "relay-mesh".into(),
        program: vec!["/opt/bin/relay-mesh".into()],
        environment: vec![("RELAY_DIR".into(), "/srv/relay".into())],
    }
}

/// Plans, applies the plan, and returns it as text: each file, then the next steps. An empty plan gives an
/// empty text.
#[track_caller]
pub fn carry_out<A: Install>(host: &FakeHost, setup: &Setup) -> String {
    let plan = A::propose(setup)
        .unwrap_or_else(|error| panic!("`propose` must return a plan, and it returned an error: {error}"));
    host.apply(&plan).unwrap_or_else(|error| panic!("the plan cannot be applied: {error}"));
    let file = |edit: &crate::install::Edit| {
        let what = edit.after.as_deref().unwrap_or("(deleted)\n");
        format!("=== {}/{}\n{what}", edit.root, edit.path)
    };
    let steps = plan.next_steps.iter().map(|step| format!("--> {step}\n"));
    plan.edits.iter().map(file).chain(steps).collect()
}

/// What three installs write, each with a name for its snapshot: into an empty project, for a user, and into
/// a project over HTTP. The last one holds only the first file and the next steps, because the transport
/// changes nothing else.
///
/// ```no_run
/// # struct Toy;
/// # impl relay_mesh_sdk::Identity for Toy {
/// #     fn describe() -> relay_mesh_sdk::About { unimplemented!() }
/// # }
/// # impl relay_mesh_sdk::Install for Toy {}
/// # fn folders() -> relay_mesh_sdk::testing::Fakes { relay_mesh_sdk::testing::Fakes::default() }
/// for (name, plan) in relay_mesh_sdk::testing::install_plans::<Toy>(folders) {
///     println!("{name}\n{plan}"); // in a test: insta::assert_snapshot!(name, plan);
/// }
/// ```
#[track_caller]
pub fn install_plans<A: Install>(machine: impl Fn() -> Fakes) -> [(&'static str, String); 3] {
    let plan = |setup: Setup| carry_out::<A>(&machine().start(), &setup);
    let server = Server::Http("http://127.0.0.1:7423/mcp".into());
    let over_http = plan(Setup { server, ..setup(Action::Install, Scope::Project) });
    let first = over_http.match_indices("=== ").nth(1).map_or(over_http.len(), |(second, _)| second);
    let steps = over_http.find("\n--> ").map_or(over_http.len(), |steps| steps.max(first));
    [
        ("an_install_into_an_empty_project", plan(setup(Action::Install, Scope::Project))),
        ("an_install_for_a_user", plan(setup(Action::Install, Scope::User))),
        ("an_install_over_http", format!("{}{}", &over_http[..first], &over_http[steps..])),
    ]
}

/// Installs twice and removes twice on a machine that has settings files already. Fails if the second
/// install or removal changes anything, or if a byte differs in the end.
#[track_caller]
pub fn leaves_every_byte<A: Install>(machine: Fakes, scope: Scope) {
    let host = machine.start();
    let files = || -> Vec<(String, String)> {
        let files = host.files().into_iter();
        files.map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned())).collect()
    };
    let before = files();
    assert_ne!(
        carry_out::<A>(&host, &setup(Action::Install, scope)),
        "",
        "the install must propose edits on a machine without ours: {before:#?}"
    );
    let installed = files();
    let again = carry_out::<A>(&host, &setup(Action::Install, scope));
    assert_eq!(again, "", "a second install must propose no edit; compare with what the files hold: {installed:#?}");
    carry_out::<A>(&host, &setup(Action::Remove, scope));
    assert_eq!(files(), before, "a removal must leave every file as it was before the install ({scope:?})");
    assert_eq!(carry_out::<A>(&host, &setup(Action::Remove, scope)), "", "a second removal must propose no edit");
}
