//! `relay-mesh ui --web`: the page of the running server in the user's browser, signed in.

use web::Codes;

use super::page::folder;
use crate::compose::Open;
use crate::context::Context;
use crate::environment::Environment;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::server::ServerRecord;

/// The address of a place on the page, with a code that signs in one browser. The code is behind `#`, which a browser sends
/// to no server.
pub(crate) fn address(context: &Context, open: &Open, place: &str) -> Result<String, CommandError> {
    let dir = &context.settings.dir.value;
    let server = ServerRecord::find(dir, open.machine.as_ref())?.ok_or_else(|| Failure {
        what: "no server is running, and the page is the server's".to_owned(),
        hint: Some("`relay-mesh up` starts one in the background".to_owned()),
        exit: Exit::Failure,
        source: None,
    })?;
    let code = Codes::of(folder(dir)).issue(open.machine.as_ref()).map_err(|error| Failure {
        what: error.to_string(),
        hint: Some("see whether the disk is full and the data folder is yours".to_owned()),
        exit: Exit::Store,
        source: Some(Box::new(error.source)),
    })?;
    Ok(format!("http://{}{place}#code={code}", server.listen))
}

/// Opens an address in the user's browser. False if there is no screen to open one on, or no browser.
pub(crate) fn open_it(address: &str, environment: &Environment) -> bool {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .into_iter()
            .any(|name| environment.get(name).is_some_and(|it| !it.is_empty()));
    has_screen && open::that_detached(address).is_ok()
}
