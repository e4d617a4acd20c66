//! `relay-mesh detect-harness`: show the harness and session that this shell belongs to.

use mesh::ports::harness::Harnesses as _;
use mesh::sessions::{Certainty, Detection, SessionRef};
use serde::Serialize;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line};
use crate::setup::shapes::Detected;

/// Show what harness and session this shell belongs to
#[derive(clap::Args, Debug)]
#[command(after_help = "Example, in a shell that a harness started:\n  relay-mesh detect-harness\n\n\
    Exits with 3 if no harness matches.")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let seen = context.caller();
        let mut report = Report { detected: Vec::new() };
        let mut failed = Vec::new();
        for candidate in open.adapters.candidates(&seen).await {
            let name = &candidate.harness.about().harness;
            match candidate.detect(&seen).await {
                Ok(Some(detection)) => {
                    let session = SessionRef { harness: name.clone(), id: detection.session.id.clone() };
                    let agent = open.mesh.session(&session).await?.and_then(|view| view.record.agent);
                    report.detected.push(detected(name, detection, agent.map(|agent| agent.to_string())));
                }
                Ok(None) => {}
                // Another adapter may still know this shell.
                Err(error) => failed.push(format!("the adapter `{name}` could not look: {error}")),
            }
        }
        for why in &failed {
            // Without any other, it may be the reason that nothing is found.
            match report.detected.is_empty() {
                true => context.printer.warn_of_failure(why),
                false => context.printer.warn(why),
            }
        }
        context.printer.show(&report)?;
        Ok(if report.detected.is_empty() { Exit::NotFound } else { Exit::Success })
    }
}

fn detected(harness: &str, detection: Detection, agent: Option<String>) -> Detected {
    Detected {
        harness: harness.to_owned(),
        session: detection.session.id,
        workdir: detection.session.workdir,
        process: detection.session.process,
        certainty: match detection.certainty {
            Certainty::Certain => "certain",
            Certainty::Inherited => "inherited",
        },
        agent,
    }
}

#[derive(Debug, Serialize)]
struct Report {
    /// One entry for each adapter that knows this shell.
    detected: Vec<Detected>,
}

impl Show for Report {
    fn text(&self) -> String {
        if self.detected.is_empty() {
            return "no harness is matched in this shell".to_owned();
        }
        self.detected.iter().map(sentence).collect::<Vec<_>>().join("\n")
    }
}

fn sentence(found: &Detected) -> String {
    let agent = match &found.agent {
        Some(agent) => format!("its agent is {agent}"),
        None => "no agent is registered in it".to_owned(),
    };
    let workdir = match found.workdir.as_str() {
        "" => String::new(),
        folder => format!(" in {}", printable_line(folder)),
    };
    format!(
        "{}, session {}{workdir} ({}); {agent}",
        printable_line(&found.harness),
        printable_line(&found.session),
        found.certainty
    )
}

#[cfg(test)]
mod tests {
    use mesh::sessions::Session;

    use super::*;

    #[test]
    fn a_session_is_told_with_how_sure_we_are() {
        let session = Session {
            id: "s1".to_owned(),
            parent: None,
            workdir: "/srv/app".to_owned(),
            process: None,
            route_hint: None,
        };
        let detection = Detection { session, certainty: Certainty::Inherited };
        let report = Report { detected: vec![detected("claude-code", detection, None)] };
        assert_eq!(report.text(), "claude-code, session s1 in /srv/app (inherited); no agent is registered in it");
        assert_eq!(Report { detected: Vec::new() }.text(), "no harness is matched in this shell");
    }
}
