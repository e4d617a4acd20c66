//! Runs an adapter natively, with everything that the host lends faked.
//!
//! [`Fakes`] is what is lent: folders in memory, state, scripted programs, origins and endpoints, a
//! clock that stands still. [`Fakes::lend`] hands it to the current thread and gives back a [`Lent`],
//! by which a test moves the clock, applies an install plan as the host would, and looks at what
//! the adapter left behind.
//!
//! ```
//! use relay_mesh_sdk::testing::Fakes;
//! use relay_mesh_sdk::{clock, files::Root, notices};
//!
//! let lent = Fakes::default().at(1_000).desktop().file("config", "settings.json", "{}").lend();
//! assert_eq!(clock::now(), 1_000);
//! lent.advance(500);
//! assert_eq!(clock::now(), 1_500);
//! assert_eq!(Root::open("config")?.read_text("settings.json")?.as_deref(), Some("{}"));
//! notices::show("relay-mesh", "mail waits")?;
//! assert_eq!(lent.notices(), [("relay-mesh".to_owned(), "mail waits".to_owned())]);
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

pub(crate) mod fakes;
mod lent;
mod recorded;
mod words;

pub use fakes::Fakes;
pub use lent::Lent;
pub use recorded::recorded;
pub use words::{SETTINGS, complaints, reading, reply};

use crate::hooks::{Call, Findings, Hooks, Reading, Reply};
use crate::install::{Action, Install, Scope, Server, Setup};
use crate::{Error, Mail, Priority};

/// Runs a hook as the host does: read, let `look_up` play the host's part, answer.
pub fn hook<A: Hooks>(call: &Call, look_up: impl FnOnce(&Reading) -> Findings) -> Result<(Reading, Reply), Error> {
    let reading = A::read(call)?;
    let found = look_up(&reading);
    let reply = A::answer(call, found)?;
    Ok((reading, reply))
}

/// A host that found nothing, for tests that change a field of it.
pub fn nothing_found() -> Findings {
    Findings {
        agent: None,
        mail: None,
        protocol: None,
        refusal: None,
        bell: "/relay/bells/session".to_owned(),
        ticket: "{}".to_owned(),
    }
}

/// Mail of one message at normal priority.
pub fn mail(text: &str) -> Mail {
    Mail { ids: vec!["01JD0000000000000000000000".to_owned()], text: text.to_owned(), priority: Priority::Normal }
}

/// A setup as a person's machine would ask for it.
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

/// Plans and applies; answers the plan in words: each file, then the steps. Nothing where the plan is
/// empty.
#[track_caller]
pub fn carry_out<A: Install>(lent: &Lent, setup: &Setup) -> String {
    let plan = A::propose(setup).unwrap_or_else(|error| panic!("no plan: {error}"));
    lent.apply(&plan).unwrap_or_else(|error| panic!("not applied: {error}"));
    let file = |edit: &crate::install::Edit| {
        let what = edit.after.as_deref().unwrap_or("(deleted)\n");
        format!("=== {}/{}\n{what}", edit.root, edit.path)
    };
    let steps = plan.next_steps.iter().map(|step| format!("--> {step}\n"));
    plan.edits.iter().map(file).chain(steps).collect()
}

/// What an install writes, each under its name, ready for a snapshot: into an empty project, for a user, and in
/// a project by way of HTTP. Of the last one the first file and the steps are shown, for in the others the
/// transport changes nothing.
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
    let plan = |setup: Setup| carry_out::<A>(&machine().lend(), &setup);
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

/// Installs twice and removes twice on a machine that holds files as people keep them: the second time of
/// each changes nothing, and in the end every byte is as it was.
#[track_caller]
pub fn leaves_every_byte<A: Install>(machine: Fakes, scope: Scope) {
    let lent = machine.lend();
    let files = || -> Vec<(String, String)> {
        let files = lent.files().into_iter();
        files.map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned())).collect()
    };
    let before = files();
    assert_ne!(carry_out::<A>(&lent, &setup(Action::Install, scope)), "", "something is to be done on {before:#?}");
    let installed = files();
    let again = carry_out::<A>(&lent, &setup(Action::Install, scope));
    assert_eq!(again, "", "a second install finds nothing to do on {installed:#?}");
    carry_out::<A>(&lent, &setup(Action::Remove, scope));
    assert_eq!(files(), before, "{scope:?}");
    assert_eq!(carry_out::<A>(&lent, &setup(Action::Remove, scope)), "", "nothing is left to take out");
}
