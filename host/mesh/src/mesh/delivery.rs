//! The verbs of delivery.

use crate::Mesh;
use crate::delivery::hook::HookOutcome;
use crate::delivery::invitation::{InvitationAnswer, TakenInvitation};
use crate::delivery::invite::{InviteError, Invited};
use crate::delivery::{hook, invitation, invite};
use crate::messages::receipt::DeliveryStatus;
use crate::names::MessageId;
use crate::sessions::{Principal, SessionRef};
use store::StoreError;

impl Mesh {
    /// Says that the reply was flushed to the harness: its mail counts as shown.
    pub async fn confirm_hook(&self, outcome: HookOutcome, event: &str) -> Result<(), crate::FetchError> {
        hook::confirm_hook(&self.core, &self.inboxes, outcome, event).await
    }

    /// Whether an invitation waits that whoever listens for a session may bring to it now: the session is idle
    /// and it is another one than the last that they were given.
    pub async fn invitation_waits(&self, session: &SessionRef, last: Option<MessageId>) -> Result<bool, StoreError> {
        invitation::invitation_waits(&self.core, session, last).await
    }

    /// Gives back an invitation that was taken and not presented.
    pub async fn give_back_invitation(&self, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
        invitation::give_back_invitation(&self.core, session, id).await
    }

    /// Notes that whoever listens did not take an invitation.
    pub async fn refuse_invitation(&self, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
        invitation::refuse_invitation(&self.core, session, id).await
    }

    /// Notes how far an invitation came. False where the session has no such invitation any more.
    pub async fn advance_invitation(
        &self,
        session: &SessionRef,
        id: MessageId,
        status: DeliveryStatus,
    ) -> Result<bool, StoreError> {
        invitation::advance_invitation(&self.core, session, id, status).await
    }

    /// Takes it, for whoever listens for the session. They say by [`Mesh::advance_invitation`] how far it came.
    pub async fn take_invitation_to_bring(
        &self,
        session: &SessionRef,
        last: Option<MessageId>,
    ) -> Result<Option<TakenInvitation>, StoreError> {
        invitation::take_invitation_to_bring(&self.core, session, last).await
    }

    /// Where the invitation of a session stands; none where it was not invited, or it lapsed.
    pub async fn invitation(&self, session: &SessionRef) -> Result<Option<InvitationAnswer>, StoreError> {
        invitation::invitation(&self.core, session).await
    }

    /// Once more for an invitation that nobody has seen. A session that has only just begun does not watch its
    /// wake file yet; and what whoever listens refused, or left alone while the session is idle, goes another way
    /// where there is one.
    pub async fn remind(&self, invited: Invited) -> Result<Invited, InviteError> {
        invite::remind(&self.core, invited).await
    }

    /// Invites a live session of this machine to join.
    pub async fn invite(
        &self,
        caller: &Principal,
        session: &str,
        harness: Option<&str>,
        text: &str,
    ) -> Result<Invited, InviteError> {
        invite::invite(&self.core, caller, session, harness, text).await
    }
}
