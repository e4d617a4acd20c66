//! The task that carries event hooks out, in every process that lives for long. Of all such processes one has the lock; the
//! others look now and then whether it is free. Where the user has no hook, it waits for one and does nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mesh::event_hooks::{Attempt, EventHook, HookAction, HookReader, Invocation, InvocationStage, next_stage};
use mesh::ports::machine::{Instant, Machine as _};
use store::{Durability, StoreError, Watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::queue::Queue;
use super::{Doing, attempt, command};
use crate::compose::Open;
use crate::config::EventHooks;
use crate::context::Context;

/// How often to look whether the process that carries hooks out has ended.
const LOOK: Duration = Duration::from_secs(2);
/// How long to wait after a fault of the store.
const AFTER_A_FAULT: Duration = Duration::from_secs(2);
/// How long what is being done may take to end when the process ends.
const ENDS: Duration = Duration::from_secs(5);

/// The task of one process.
pub(crate) struct Carrier {
    task: JoinHandle<()>,
    is_busy: Arc<AtomicBool>,
    stop: CancellationToken,
}

impl Carrier {
    pub(crate) fn start(context: &Context, open: Arc<Open>) -> Carrier {
        let (is_busy, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let work = Work {
            context: Arc::new(context.at(context.workdir.clone())),
            open,
            stop: stop.clone(),
            is_busy: Arc::clone(&is_busy),
        };
        Carrier { task: tokio::spawn(work.run()), is_busy, stop }
    }

    /// Whether a hook is being carried out, or is due.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Lets what is being done end, for a few seconds. The next process goes on with the rest.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "carrying out event hooks ended badly");
        }
    }
}

struct Work {
    context: Arc<Context>,
    open: Arc<Open>,
    stop: CancellationToken,
    is_busy: Arc<AtomicBool>,
}

/// The hooks that are being carried out.
type Running = JoinSet<(Invocation, Attempt)>;

impl Work {
    async fn run(self) {
        while !self.stop.is_cancelled() {
            if let Err(error) = self.wait_and_carry_out().await {
                tracing::warn!(error = %store::reasons(&error), "event hooks wait a little");
                tokio::select! {
                    () = self.stop.cancelled() => {}
                    () = tokio::time::sleep(AFTER_A_FAULT) => {}
                }
            }
        }
    }

    /// Waits for a hook and for the lock, and carries hooks out until none is left.
    async fn wait_and_carry_out(&self) -> Result<(), StoreError> {
        // Watch before reading, so that no change is missed in between.
        let mut changed = self.open.mesh.watch_event_hooks().await?;
        loop {
            let has_hooks = !self.hooks().is_empty();
            if has_hooks && let Some(_held) = self.open.mesh.hold_event_hooks().await? {
                self.carry_out(changed.as_mut()).await?;
            } else {
                tokio::select! {
                    () = self.stop.cancelled() => {}
                    change = changed.changed() => change?,
                    () = tokio::time::sleep(LOOK), if has_hooks => {}
                }
            }
            if self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    fn hooks(&self) -> Vec<EventHook> {
        let listed = EventHooks::of(&self.context.settings, &self.context.environment).and_then(|kept| kept.listed());
        listed.unwrap_or_else(|error| {
            tracing::warn!(error = %store::reasons(&error), "no event hook is carried out");
            Vec::new()
        })
    }

    async fn carry_out(&self, changed: &mut dyn Watch) -> Result<(), StoreError> {
        let mesh = &self.open.mesh;
        command::clean_up(&self.context);
        let mut hooks = self.hooks();
        let mut log = mesh.watch_event_log().await?;
        let kept = mesh.hook_invocations().await?;
        let mut reader = mesh.hook_reader(&hooks, &kept).await?;
        let (mut queue, broken) = Queue::of(kept);
        for id in broken {
            let at = self.open.machine.now();
            mesh.note_invocation(&id, InvocationStage::Unfinished { at }, Durability::Process).await?;
        }
        let mut running = Running::new();
        let outcome = loop {
            if let Err(error) = self.take(&hooks, &mut reader, &mut queue, &mut running).await {
                break Err(error);
            }
            let now = self.open.machine.now();
            self.is_busy.store(queue.is_busy(now), Ordering::Relaxed);
            if hooks.is_empty() && running.is_empty() {
                break Ok(());
            }
            let due = queue.next_due().map(|due| Duration::from_millis(due.since(now).max(1)));
            let step = tokio::select! {
                () = self.stop.cancelled() => break Ok(()),
                change = changed.changed() => change.map(|()| hooks = self.hooks()),
                grown = log.changed() => grown,
                Some(done) = running.join_next(), if !running.is_empty() => self.note(done, &mut queue).await,
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => Ok(()),
            };
            if let Err(error) = step {
                break Err(error);
            }
        };
        self.let_end(running, &mut queue).await;
        self.is_busy.store(false, Ordering::Relaxed);
        outcome
    }

    /// Takes the new events, and begins what is due.
    async fn take(
        &self,
        hooks: &[EventHook],
        reader: &mut HookReader,
        queue: &mut Queue,
        running: &mut Running,
    ) -> Result<(), StoreError> {
        let mesh = &self.open.mesh;
        for new in reader.take(mesh, hooks, &queue.counts()).await? {
            queue.add(new);
        }
        while let Some(next) = queue.begin(self.open.machine.now()) {
            let now = self.open.machine.now();
            let Some(hook) = hooks.iter().find(|hook| hook.id == next.hook).cloned() else {
                let why = "its hook was removed".to_owned();
                let stage = InvocationStage::Failed { at: now, tries: tries(&next), why };
                queue.end(&next, &stage);
                mesh.note_invocation(&next.id, stage, Durability::Process).await?;
                continue;
            };
            if matches!(hook.action, HookAction::Run(_)) {
                // On disk before it starts, so that it never starts twice.
                let stage = InvocationStage::Started { at: now, by: self.open.machine.this_process() };
                mesh.note_invocation(&next.id, stage, Durability::Synced).await?;
            }
            let (context, open) = (Arc::clone(&self.context), Arc::clone(&self.open));
            running.spawn(async move {
                let doing = Doing { context: &context, open: &open };
                let attempt = attempt(doing, &hook, &next.id, &next.event).await;
                (next, attempt)
            });
        }
        Ok(())
    }

    /// Notes what a try came to.
    async fn note(
        &self,
        done: Result<(Invocation, Attempt), tokio::task::JoinError>,
        queue: &mut Queue,
    ) -> Result<(), StoreError> {
        let (invocation, attempt) = match done {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "an event hook ended badly");
                return Ok(());
            }
        };
        let now: Instant = self.open.machine.now();
        let stage = next_stage(attempt, tries(&invocation), now, self.open.machine.random()[0]);
        let gone = queue.end(&invocation, &stage);
        self.open.mesh.note_invocation(&invocation.id, stage, Durability::Process).await?;
        for id in gone {
            self.open.mesh.forget_invocation(&id).await?;
        }
        Ok(())
    }

    /// Waits a little for what is being done. What is not done then is ended: commands by their guards.
    async fn let_end(&self, mut running: Running, queue: &mut Queue) {
        let ends = async {
            while let Some(done) = running.join_next().await {
                if let Err(error) = self.note(done, queue).await {
                    tracing::warn!(%error, "what an event hook did is not noted");
                }
            }
        };
        let _late = tokio::time::timeout(ENDS, ends).await;
    }
}

fn tries(invocation: &Invocation) -> u32 {
    if let InvocationStage::Waiting { tries, .. } = invocation.stage { tries } else { 0 }
}
