//! Doing what the final words of a turn ask for: messages, and agents that are wanted or dismissed, under the same consent
//! as the tools. What could not be done is told to the agent itself.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::Path;

use mesh::allowances::Asker;
use mesh::driven::{
    Directive, DrivenId, OwedWords, RequestKind, SpawnAsker, WantedAgent, directive_in_file, directives,
};
use mesh::messages::Draft;

use super::agent::Driving;
use super::permission::{self, PermissionOutcome};
use crate::errors::CommandError;
use crate::runs::begin::existing;
use crate::unix::{self, MetadataExt as _, OpenOptionsExt as _};

/// The largest file of an outbox that is read, in bytes.
const LARGEST: u64 = 256 * 1024;
/// The longest name of one.
const LONGEST_NAME: usize = 100;

/// Why something that was asked for is not done.
#[derive(Debug, thiserror::Error)]
enum NotDone {
    #[error("`{0}` is no plain name of a file in your outbox")]
    NoName(String),
    #[error("`{name}` of your outbox: {why}")]
    Unreadable { name: String, why: String },
}

impl Driving {
    /// Does what the final words of a turn ask for, each once, although a process is killed in between: after each it
    /// is noted how far it is.
    pub(super) async fn carry_out(&mut self, owed: &mut OwedWords) -> Result<(), CommandError> {
        for (number, found) in directives(&owed.words).into_iter().enumerate().skip(owed.carried_out) {
            let key = format!("said-{}-{number}", owed.turn);
            let done = match found {
                Ok(directive) => self.carry_out_one(owed, &key, directive).await,
                Err(error) => Err(error.to_string()),
            };
            owed.not_done.extend(done.err());
            (owed.carried_out, owed.begins) = (number + 1, None);
            self.keep_owed(owed).await?;
        }
        if owed.not_done.is_empty() {
            return Ok(());
        }
        // It is mail of the agent's own, so the loop guard counts it: one that never gets it right ends.
        let draft = Draft {
            body: format!("relay-mesh did not do what your final words asked for:\n- {}", owed.not_done.join("\n- ")),
            subject: Some("not done".to_owned()),
            idempotency_key: Some(format!("not-done-{}", owed.turn)),
            ..Draft::default()
        };
        self.send(&self.name, draft).await;
        Ok(())
    }

    /// Notes how far the directives of final words are.
    async fn keep_owed(&mut self, owed: &OwedWords) -> Result<(), CommandError> {
        self.change(|record| {
            for kept in record.owed.iter_mut().filter(|kept| kept.turn == owed.turn) {
                kept.clone_from(owed);
            }
        })
        .await
    }

    async fn carry_out_one(&mut self, owed: &mut OwedWords, key: &str, directive: Directive) -> Result<(), String> {
        match directive {
            Directive::Message { to, text } => {
                let draft = Draft { body: text, idempotency_key: Some(key.to_owned()), ..Draft::default() };
                let sent = self.host.open.mesh.send(&self.principal, std::slice::from_ref(&to), draft).await;
                sent.map(drop).map_err(|error| format!("to `{to}`: {}", mesh::reasons(&error)))
            }
            Directive::File(name) => {
                let text = read(&self.folder.outbox(), &name).map_err(|error| error.to_string())?;
                match directive_in_file(&text).map_err(|error| format!("`{name}`, {error}"))? {
                    Directive::File(_) => Err(format!("`{name}`: a file names no other file")),
                    other => Box::pin(self.carry_out_one(owed, key, other)).await,
                }
            }
            Directive::Spawn(wanted) => {
                let name = wanted.name.as_ref().map(ToString::to_string).unwrap_or_default();
                self.starts(owed, *wanted).await.map_err(|error| format!("spawn {name}: {}", told(&error)))
            }
            Directive::Release(name) => {
                self.releases(&name).await.map_err(|error| format!("release {name}: {}", told(&error)))
            }
        }
    }

    fn asker(&self) -> SpawnAsker {
        let harness = self.record.harness.clone();
        let asker = Asker::Session { harness, agent: Some(self.name.clone()) };
        SpawnAsker { asker, parent: Some(self.record.clone()), run: None }
    }

    async fn starts(&mut self, owed: &mut OwedWords, wanted: WantedAgent) -> Result<(), CommandError> {
        let id = self.id_of_next(owed).await?;
        // A process that was killed before it could say so has begun it.
        if self.host.open.mesh.driven(id).await?.is_some() {
            return Ok(());
        }
        let folder = existing(&self.record.agent.folder.join(&wanted.folder))?;
        let wanted = WantedAgent { folder, ..wanted };
        // This process drives it as well, so nothing has to be started.
        let (context, open) = (&self.host.context, &self.host.open);
        match permission::ask_for_as(context, open, &self.asker(), (id, wanted)).await? {
            PermissionOutcome::Begun(_) | PermissionOutcome::Waits(_) => Ok(()),
        }
    }

    /// The id of the agent that is begun next, on which two processes that begin it agree.
    async fn id_of_next(&mut self, owed: &mut OwedWords) -> Result<DrivenId, CommandError> {
        if let Some(id) = owed.begins {
            return Ok(id);
        }
        let id = self.host.open.mesh.new_driven_id();
        owed.begins = Some(id);
        self.keep_owed(owed).await?;
        Ok(id)
    }

    async fn releases(&self, name: &str) -> Result<(), CommandError> {
        let by = permission::may_dismiss(&self.host.open, &self.asker(), name).await?;
        let request = RequestKind::Dismiss { summary: false };
        self.host.open.mesh.ask_driven(name, request, Some(&by)).await?;
        Ok(())
    }
}

fn told(error: &CommandError) -> String {
    match error.hint() {
        Some(hint) => format!("{} ({hint})", mesh::reasons(error)),
        None => mesh::reasons(error),
    }
}

/// A file of an outbox: a plain name, no link, a regular file of one name, not too large.
fn read(outbox: &Path, name: &str) -> Result<String, NotDone> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(NotDone::NoName(name.chars().take(LONGEST_NAME).collect()));
    }
    let failed = |why: String| NotDone::Unreadable { name: name.to_owned(), why };
    let file = OpenOptions::new().read(true).custom_flags(unix::NO_LINK_NON_BLOCKING).open(outbox.join(name));
    let file = file.map_err(|error| failed(error.to_string()))?;
    let about = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !about.is_file() || about.nlink() != 1 {
        return Err(failed("it is no regular file of its own".to_owned()));
    }
    if about.len() > LARGEST {
        return Err(failed(format!("it has {} bytes, and {LARGEST} are the most", about.len())));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_the_outbox_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (outbox, outside) = (folder.path().join("outbox"), folder.path().join("secret"));
        std::fs::create_dir(&outbox).expect("made");
        std::fs::write(&outside, "TO: bob\n\nkey").expect("written");
        std::fs::write(outbox.join("plan"), "TO: bob\n\nhi").expect("written");
        std::fs::write(outbox.join("large"), "x".repeat(LARGEST as usize + 1)).expect("written");
        std::os::unix::fs::symlink(&outside, outbox.join("link")).expect("linked");
        std::fs::hard_link(&outside, outbox.join("twin")).expect("linked");
        std::fs::create_dir(outbox.join("sub")).expect("made");
        test_support::Program::new("mkfifo").arg(outbox.join("pipe")).succeed();
        assert_eq!(read(&outbox, "plan").expect("read"), "TO: bob\n\nhi");
        let refused =
            ["../secret", "/etc/passwd", ".", "..", "", "a/b", "link", "twin", "sub", "pipe", "large", "none"];
        for name in refused {
            assert!(read(&outbox, name).is_err(), "{name}");
        }
    }
}
