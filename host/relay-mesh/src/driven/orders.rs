//! Commands by the mesh that the process which drives an agent carries out itself: `/interrupt` stops the running turn, for
//! a sender whose commands the user has allowed. What else it is asked for is left to its harness, or to itself.

use mesh::commands::{Command, Ended};
use mesh::ports::driver::Action;
use mesh::ports::harness::{HarnessError, Means};
use mesh::sessions::{Activity, Session};
use mesh::{Ran, Runner};

use super::agent::Driving;
use super::link::LinkActions;
use crate::errors::CommandError;

/// The command.
const INTERRUPT: &str = "/interrupt";
/// How it is carried out, in listings.
const DRIVER: &str = "driver";

/// What is known of the running turn.
struct TurnStopper {
    /// The link by which it can be stopped, and the session; none if nothing can.
    running: Option<(LinkActions, String)>,
    /// Why nothing can.
    why_not: &'static str,
}

impl Runner for TurnStopper {
    async fn plan(&self, _: &Session, command: &Command) -> Result<Means, HarnessError> {
        match command.command.as_str() {
            INTERRUPT => Ok(Means { name: DRIVER.to_owned(), when: vec![Activity::Busy, Activity::Idle] }),
            other => Err(HarnessError::Unsupported(format!("`{other}` is none that works on any driven agent"))),
        }
    }

    async fn run(&self, _: &Session, _: &Command) -> Result<Ran, HarnessError> {
        let (ended, said) = match &self.running {
            Some((link, session)) => {
                link.act(Action::Interrupt(session.clone()));
                (Ended::Done, "its turn was told to stop")
            }
            None => (Ended::Failed, self.why_not),
        };
        Ok(Ran { ended: Some(ended), said: said.to_owned(), evidence: None })
    }
}

impl Driving {
    /// Carries out the commands that wait for it, as far as they are for this process.
    pub(super) async fn take_orders(&mut self) -> Result<(), CommandError> {
        let mesh = &self.host.open.mesh;
        if mesh.commands(Some(&self.name)).await?.is_empty() {
            return Ok(());
        }
        let Some(_alone) = mesh.hold_commands(&self.session).await? else { return Ok(()) };
        let linked = self.linked.as_ref().zip(self.linked.as_ref().and_then(|linked| linked.session.clone()));
        let (running, why_not) = match (&self.turn, linked) {
            (Some(_), Some((linked, session))) if linked.handle.able.interrupt => {
                (Some((linked.handle.actions(), session)), "")
            }
            (Some(_), Some(_)) => (None, "its harness cannot stop a turn"),
            (Some(_), None) | (None, _) => (None, "no turn runs"),
        };
        mesh.run_commands(&self.name, &self.session, &TurnStopper { running, why_not }).await?;
        Ok(())
    }
}
