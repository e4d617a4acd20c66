//! The verbs that look back at what was said. They only read.

use store::StoreError;

use crate::Mesh;
use crate::conversations::{
    self, MailReader, NewestThreads, Search, SearchHits, Thread, ThreadError, ThreadFilter, ThreadSummary, Threads,
};
use crate::messages::status::MessageStatus;
use crate::names::AgentName;
use crate::ports::machine::Instant;

impl Mesh {
    /// A thread, by its name or by the id of one of its messages, or the id's first characters: its newest `limit`
    /// messages, whichever agents sent and got them, each with what became of it.
    pub async fn mail_thread(&self, reader: &MailReader, typed: &str, limit: usize) -> Result<Thread, ThreadError> {
        conversations::thread(&self.core, reader, typed, limit).await
    }

    /// All threads that are kept, and who wrote to whom. Reads through the mail that is kept.
    pub async fn mail_threads(&self, reader: &MailReader, filter: &ThreadFilter) -> Result<Threads, StoreError> {
        conversations::threads(&self.core, &self.inboxes, reader, filter).await
    }

    /// The newest threads, as `mail_threads` lists them for the user. The first reading reads through the mail that is
    /// kept, a further one what is new.
    pub async fn newest_threads(&self, newest: &mut NewestThreads) -> Result<Vec<ThreadSummary>, StoreError> {
        conversations::newest_threads(&self.core, &self.inboxes, newest).await
    }

    /// The messages that have all the words, best first. Reads through the mail that is kept.
    pub async fn search(&self, reader: &MailReader, search: &Search) -> Result<SearchHits, StoreError> {
        conversations::search(&self.core, reader, search).await
    }

    /// The newest `limit` messages that an agent sent, oldest first, with what became of each.
    pub async fn sent(
        &self,
        agent: &AgentName,
        since: Option<Instant>,
        limit: usize,
    ) -> Result<Vec<MessageStatus>, StoreError> {
        conversations::sent(&self.core, agent, since, limit).await
    }
}
