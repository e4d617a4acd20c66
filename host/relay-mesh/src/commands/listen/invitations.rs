//! Invitations of sessions that have not joined: printed for the connector, and what it says became of them.

use mesh::names::MessageId;
use mesh::receipt::DeliveryStatus;
use mesh::session::SessionRef;
use mesh::{TakenInvitation, reasons};

use super::Receipts;
use super::desk::{Desk, Printed};
use super::target::Target;
use super::words::{News, Said};
use crate::errors::CommandError;
use crate::shapes::rfc3339;

impl Desk {
    /// Prints one that was taken for a watched session.
    pub(super) async fn invite(&mut self, target: Target, taken: &TakenInvitation) -> Result<(), CommandError> {
        let Target::Session(session) = &target else { return Ok(()) };
        let said = Said::Invitation {
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

    /// What the connector says became of one. A session that has joined meanwhile has none any more, and
    /// nothing is wrong with a receipt that comes later than that.
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
                    // The tool or the prompt had no place for it; it may still be brought by itself.
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

    /// A receipt for one that an earlier process printed. Whether there is such an invitation.
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
