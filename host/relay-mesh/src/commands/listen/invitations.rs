//! Invitations to sessions that have not joined: printed for the connector, and its receipts for them.

use mesh::messages::receipt::DeliveryStatus;
use mesh::names::MessageId;
use mesh::sessions::SessionRef;
use mesh::{TakenInvitation, reasons};

use super::Receipts;
use super::connector_lines::{News, Output};
use super::listener::{Listener, Printed};
use super::target::Target;
use crate::errors::CommandError;
use crate::shapes::rfc3339;

impl Listener {
    /// Prints an invitation that was taken for a watched session.
    pub(super) async fn invite(&mut self, target: Target, taken: &TakenInvitation) -> Result<(), CommandError> {
        let Target::Session(session) = &target else { return Ok(()) };
        let said = Output::Invitation {
            session: &session.id,
            id: taken.id,
            from: &taken.from,
            at: rfc3339(taken.at),
            lapses: rfc3339(taken.until),
            text: &taken.text,
        };
        let printed = self.printer.line(&said);
        match (printed, self.receipts) {
            (Ok(()), Receipts::Printing) => {
                self.mesh.advance_invitation(session, taken.id, DeliveryStatus::Shown).await?;
                Ok(())
            }
            (printed, Receipts::Printing | Receipts::Lines) => {
                self.pending.insert((taken.id, target), Printed::Invitation);
                printed
            }
        }
    }

    /// Takes the connector's receipt for an invitation. A session that has joined meanwhile has no invitation any
    /// more; a receipt that comes later is no error.
    pub(super) async fn invitation_receipt(
        &mut self,
        key: (MessageId, Target),
        printed: Printed,
        news: News,
    ) -> Result<(), String> {
        let (id, Target::Session(session)) = &key else { return Ok(()) };
        let status = match news {
            News::Notified => DeliveryStatus::Notified,
            News::Accepted => DeliveryStatus::Accepted,
            News::Shown | News::Acknowledged => DeliveryStatus::Shown,
            News::Refused => {
                let outcome = match printed {
                    Printed::Invitation => self.mesh.refuse_invitation(session, *id).await,
                    // The tool or the prompt had no place for it; it may still be delivered on its own.
                    Printed::AnsweredInvitation | Printed::Mail(_) => {
                        self.mesh.give_back_invitation(session, *id).await
                    }
                };
                self.pending.remove(&key);
                return outcome.map(|_| ()).map_err(|error| reasons(&error));
            }
        };
        self.mesh.advance_invitation(session, *id, status).await.map_err(|error| reasons(&error))?;
        if status.settles() {
            self.pending.remove(&key);
        }
        Ok(())
    }

    /// Takes a receipt for an invitation that an earlier process printed. Returns whether it exists.
    pub(super) async fn late_invitation(
        &self,
        session: &SessionRef,
        id: MessageId,
        news: News,
    ) -> Result<bool, String> {
        match news {
            News::Shown | News::Acknowledged => {
                self.mesh.advance_invitation(session, id, DeliveryStatus::Shown).await.map_err(|error| reasons(&error))
            }
            News::Notified | News::Accepted | News::Refused => Ok(false),
        }
    }

    pub(super) async fn give_back_invitation(&self, id: MessageId, target: &Target) {
        let Target::Session(session) = target else { return };
        if let Err(error) = self.mesh.give_back_invitation(session, id).await {
            tracing::warn!(%error, "an invitation was not given back; its lease lapses by itself");
        }
    }
}
