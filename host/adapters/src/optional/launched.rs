//! What a run and a driven agent have in common: what is started, of the words of the manifest that the adapter chose.

use std::path::Path;
use std::time::Duration;

use mesh::ports::harness::HarnessError;
use mesh::ports::runner as mesh_side;

use crate::adapter::Adapter;
use crate::bindings::relay::adapter::types as guest;
use crate::host_functions::log::plain;
use crate::host_functions::programs::search;
use crate::launch::{Chosen, compose};
use crate::manifest::{Run, USERS_COMMAND};
use crate::template::OwnInstallation;

/// The name of our server in a harness's settings, as an installation has it.
const SERVER_NAME: &str = "relay-mesh";
/// The most steps in which a program is asked to stop, and the longest of them: after that it is killed in any case.
const MOST_STEPS: usize = 4;
const LONGEST_STEP: Duration = Duration::from_secs(30);

pub(super) fn reach(reach: mesh_side::Reach) -> guest::Reach {
    match reach {
        mesh_side::Reach::Look => guest::Reach::Look,
        mesh_side::Reach::Edit => guest::Reach::Edit,
        mesh_side::Reach::Work => guest::Reach::Work,
        mesh_side::Reach::Unguarded => guest::Reach::Unguarded,
    }
}

pub(super) fn extensions(extensions: mesh_side::Extensions) -> guest::Extensions {
    match extensions {
        mesh_side::Extensions::None => guest::Extensions::None,
        mesh_side::Extensions::Mesh => guest::Extensions::Mesh,
        mesh_side::Extensions::All => guest::Extensions::All,
    }
}

pub(super) fn installation(own: &OwnInstallation) -> guest::Installation {
    guest::Installation {
        server_name: SERVER_NAME.to_owned(),
        server: own.program.iter().cloned().chain(["mcp".to_owned()]).collect(),
        program: own.program.clone(),
        environment: own.environment.clone(),
    }
}

impl Adapter {
    /// What the host starts, of what the adapter chose.
    pub(super) fn launched(
        &self,
        run: &Run,
        chosen: guest::Launch,
        files: &Path,
    ) -> Result<mesh_side::Launch, HarnessError> {
        let surroundings = &self.host_side().surroundings;
        let (choices, stop, without) = taken_apart(chosen);
        let at_fault = |error: crate::launch::LaunchError| {
            HarnessError::Failed(format!("the adapter `{}` is at fault: {error}", self.name()))
        };
        let composed = compose(run, &choices, files, surroundings).map_err(at_fault)?;
        let program = match run.program.as_str() {
            // The host puts the user's in its place.
            USERS_COMMAND => Some(run.program.clone()),
            program => search(program, surroundings).and_then(|program| program.to_str().map(str::to_owned)),
        };
        let missing = || HarnessError::NotFound(format!("the program `{}` is not in PATH", run.program));
        let mut command = vec![program.ok_or_else(missing)?];
        command.extend(composed.arguments);
        Ok(mesh_side::Launch { command, environment: composed.environment, files: choices.files, stop, without })
    }
}

/// What the adapter chose, how the program is asked to stop, and what the harness cannot keep.
fn taken_apart(launch: guest::Launch) -> (Chosen, Vec<mesh_side::StopStep>, Vec<String>) {
    let step = |step: guest::StopStep| mesh_side::StopStep {
        signal: match step.signal {
            guest::StopSignal::Interrupt => mesh_side::StopSignal::Interrupt,
            guest::StopSignal::Terminate => mesh_side::StopSignal::Terminate,
        },
        grace: Duration::from_millis(step.grace_ms.into()).min(LONGEST_STEP),
    };
    let chosen = Chosen {
        options: launch.choices.into_iter().map(|choice| (choice.name, choice.values)).collect(),
        environment: launch.environment,
        files: launch.files.into_iter().map(|file| (file.name, file.text)).collect(),
    };
    let stop = launch.stop.into_iter().take(MOST_STEPS).map(step).collect();
    (chosen, stop, launch.without.iter().map(|clause| plain(clause)).collect())
}
