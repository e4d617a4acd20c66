//! Sessions that a user has opened again and not yet typed in. A harness may run no hook then, or only that its session
//! has ended. It starts our server for the session, though, and keeps the session's record open.

use std::collections::BTreeSet;
use std::time::Duration;

use store::StoreError;

use crate::Mesh;
use crate::agents::remote_presence;
use crate::ports::harness::Harness;
use crate::sessions::identify::bare;
use crate::sessions::record;
use crate::sessions::screens::{self, ShownBy};
use crate::sessions::{Activity, Caller, ConnectionId, Session, SessionRef};

/// When to look, after our server was started: the client opens the record a little before or after that, and may still
/// be ending what the session was before.
const LOOKS_MS: [u64; 6] = [200, 400, 800, 1_600, 3_000, 4_000];
/// The most sessions that one client has open.
const MOST: usize = 64;

impl Mesh {
    /// Finds the sessions of this machine's agents that the client of a connection, the process that started this one,
    /// has opened again, and delivers their mail from now on.
    pub async fn find_reopened(&self, caller: &Caller, connection: &ConnectionId, client: u32) {
        for candidate in self.core.harnesses.candidates(caller).await {
            let harness = &candidate.harness;
            // Nobody else's adapter is told what the client has open.
            if !candidate.owns_match || harness.traces().record.is_none() {
                continue;
            }
            let mut reopened = BTreeSet::new();
            for wait in LOOKS_MS {
                tokio::time::sleep(Duration::from_millis(wait)).await;
                if let Err(error) = self.look_for_reopened(harness.as_ref(), connection, client, &mut reopened).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(error, "sessions that were opened again are not known yet");
                }
            }
        }
    }

    async fn look_for_reopened(
        &self,
        harness: &dyn Harness,
        connection: &ConnectionId,
        client: u32,
        reopened: &mut BTreeSet<SessionRef>,
    ) -> Result<(), StoreError> {
        let core = &self.core;
        let traces = harness.traces();
        let Some(name) = &traces.record else { return Ok(()) };
        let files = core.machine.open_files(client);
        let open: BTreeSet<SessionRef> = files
            .iter()
            .filter_map(|file| name.session_of(file))
            .take(MOST)
            .map(|id| SessionRef { harness: harness.about().harness.clone(), id: id.to_owned() })
            .collect();
        for session in &open {
            let Some(before) = record::session_record(core, session).await? else { continue };
            // One that is merely on no screen has not been opened again: its client goes on with it.
            if before.agent.is_none() || !record::has_ended(core, &before) {
                continue;
            }
            let session = Session { process: Some(client), ..bare(session, None) };
            let record = record::observe(core, &harness.about().harness, &session, Some(Activity::Idle)).await?;
            screens::note(core, &traces, &record.session, ShownBy::Opened).await?;
            let Some(agent) = record::own_agent(core, &record).await? else { continue };
            reopened.insert(record.session.clone());
            remote_presence::tell_of_session(core, &record.session).await;
            tracing::debug!(%agent, session = record.session.id, "a session was opened again");
            if self.connections.serves(connection, &agent) {
                self.delivery.joined.notify_waiters();
            }
        }
        // It was only being closed.
        for session in reopened.iter().filter(|session| !open.contains(session)) {
            record::change_session(core, session, |record| record.activity = Activity::Ended).await?;
            remote_presence::tell_of_session(core, session).await;
        }
        reopened.retain(|session| open.contains(session));
        Ok(())
    }
}
