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
    /// Notes that the reply was flushed to the harness: its mail counts as shown.
    pub async fn confirm_hook(&self, outcome: HookOutcome, event: &str) -> Result<(), crate::FetchError> {
        let confirmed = hook::confirm_hook(&self.core, outcome, event).await;
        self.notice_stores().await;
        confirmed
    }

    /// Whether the session's listener can deliver an invitation now: the session is idle, and the invitation is not
    /// `last`, which the listener already got.
    pub async fn invitation_waits(&self, session: &SessionRef, last: Option<MessageId>) -> Result<bool, StoreError> {
        invitation::invitation_waits(&self.core, session, last).await
    }

    /// Returns an invitation that was taken and not presented.
    pub async fn give_back_invitation(&self, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
        invitation::give_back_invitation(&self.core, session, id).await
    }

    /// Notes that the listener refused an invitation.
    pub async fn refuse_invitation(&self, session: &SessionRef, id: MessageId) -> Result<bool, StoreError> {
        invitation::refuse_invitation(&self.core, session, id).await
    }

    /// Notes an invitation's new status. Returns false if the session no longer has that invitation.
    pub async fn advance_invitation(
        &self,
        session: &SessionRef,
        id: MessageId,
        status: DeliveryStatus,
    ) -> Result<bool, StoreError> {
        invitation::advance_invitation(&self.core, session, id, status).await
    }

    /// Takes the invitation for the session's listener, which reports its status by [`Mesh::advance_invitation`].
    pub async fn take_invitation_to_bring(
        &self,
        session: &SessionRef,
        last: Option<MessageId>,
    ) -> Result<Option<TakenInvitation>, StoreError> {
        invitation::take_invitation_to_bring(&self.core, session, last).await
    }

    /// The state of a session's invitation; `None` if there is none or it expired.
    pub async fn invitation(&self, session: &SessionRef) -> Result<Option<InvitationAnswer>, StoreError> {
        invitation::invitation(&self.core, session).await
    }

    /// Delivers an unseen invitation again. A session that has just started does not watch its wake file yet; and an
    /// invitation that the listener refused, or ignored while the session is idle, goes by another route if there is
    /// one.
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
