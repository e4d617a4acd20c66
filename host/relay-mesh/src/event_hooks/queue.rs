//! What is still to be carried out, in the process that carries it out: for each hook in the order of the events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mesh::event_hooks::{Invocation, InvocationStage};
use mesh::ports::machine::Instant;

/// The most finished invocations of a hook that are kept.
const MOST_FINISHED: usize = 100;
/// The most hooks that are carried out at once.
const MOST_AT_ONCE: usize = 8;

/// The open invocations of every hook.
#[derive(Debug, Default)]
pub(super) struct Queue {
    open: BTreeMap<String, VecDeque<Invocation>>,
    /// The hooks that are being carried out.
    running: BTreeSet<String>,
    /// The finished invocations of each hook that are kept, oldest first.
    finished: BTreeMap<String, VecDeque<String>>,
}

impl Queue {
    /// Takes what is in the store. Returns the commands whose process was killed.
    pub(super) fn of(kept: Vec<Invocation>) -> (Queue, Vec<String>) {
        let (mut queue, mut broken) = (Queue::default(), Vec::new());
        for invocation in kept {
            match invocation.stage {
                InvocationStage::Waiting { .. } => queue.add(invocation),
                InvocationStage::Started { .. } => broken.push(invocation.id),
                InvocationStage::Done { .. } => {
                    queue.finished.entry(invocation.hook).or_default().push_back(invocation.id);
                }
                InvocationStage::Failed { .. }
                | InvocationStage::Unfinished { .. }
                | InvocationStage::Skipped { .. } => {}
            }
        }
        (queue, broken)
    }

    pub(super) fn add(&mut self, invocation: Invocation) {
        self.open.entry(invocation.hook.clone()).or_default().push_back(invocation);
    }

    /// How many of each hook are open.
    pub(super) fn counts(&self) -> BTreeMap<String, usize> {
        self.open.iter().map(|(hook, open)| (hook.clone(), open.len())).collect()
    }

    /// The next invocation that is due, of a hook that does nothing now.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Invocation> {
        if self.running.len() >= MOST_AT_ONCE {
            return None;
        }
        let idle = self.open.iter_mut().filter(|(hook, _)| !self.running.contains(*hook));
        for (hook, open) in idle {
            // One that is tried again lets the ones behind it pass.
            if let Some(at) = open.iter().position(|one| due(one) <= now) {
                let next = open.remove(at)?;
                self.running.insert(hook.clone());
                return Some(next);
            }
        }
        None
    }

    /// A hook has done what it did. Returns the finished invocations that are one too many.
    pub(super) fn end(&mut self, invocation: &Invocation, stage: &InvocationStage) -> Vec<String> {
        self.running.remove(&invocation.hook);
        match stage {
            InvocationStage::Waiting { .. } => {
                self.add(Invocation { stage: stage.clone(), ..invocation.clone() });
                Vec::new()
            }
            InvocationStage::Done { .. } => {
                let finished = self.finished.entry(invocation.hook.clone()).or_default();
                finished.push_back(invocation.id.clone());
                let too_many = finished.len().saturating_sub(MOST_FINISHED);
                finished.drain(..too_many).collect()
            }
            InvocationStage::Started { .. }
            | InvocationStage::Failed { .. }
            | InvocationStage::Unfinished { .. }
            | InvocationStage::Skipped { .. } => Vec::new(),
        }
    }

    /// When the next one is due, if one waits for that.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let idle = self.open.iter().filter(|(hook, _)| !self.running.contains(*hook));
        idle.flat_map(|(_, open)| open).map(due).min()
    }

    /// Whether something is being done or is due.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        !self.running.is_empty() || self.next_due().is_some_and(|due| due <= now)
    }
}

fn due(invocation: &Invocation) -> Instant {
    if let InvocationStage::Waiting { due, .. } = invocation.stage { due } else { Instant(0) }
}

#[cfg(test)]
mod tests {
    use mesh::event_hooks::{HookTrigger, Occurrence};

    use super::*;

    fn invocation(id: &str, due: u64) -> Invocation {
        Invocation {
            id: id.to_owned(),
            hook: id.split('-').next().unwrap_or_default().to_owned(),
            event: Occurrence { at: Instant(0), on: HookTrigger::Ended, details: serde_json::Map::new() },
            stage: InvocationStage::Waiting { due: Instant(due), tries: 0, why: None },
        }
    }

    fn begun(queue: &mut Queue, now: u64) -> Vec<String> {
        std::iter::from_fn(|| queue.begin(Instant(now))).map(|one| one.id).collect()
    }

    #[test]
    fn each_hook_does_one_thing_at_a_time_in_order_and_none_waits_for_another() {
        let mut queue = Queue::default();
        for id in ["a-1", "a-2", "b-1"] {
            queue.add(invocation(id, 0));
        }
        assert_eq!(begun(&mut queue, 0), ["a-1", "b-1"]);
        assert!(queue.is_busy(Instant(0)));
        let retried = InvocationStage::Waiting { due: Instant(2_000), tries: 1, why: None };
        queue.end(&invocation("a-1", 0), &retried);
        assert_eq!(begun(&mut queue, 10), ["a-2"], "what is tried again lets the next one pass");
        for id in ["a-2", "b-1"] {
            queue.end(&invocation(id, 0), &InvocationStage::Done { at: Instant(10), told: String::new() });
        }
        assert!(!queue.is_busy(Instant(10)));
        assert_eq!(queue.next_due(), Some(Instant(2_000)));
        assert_eq!(begun(&mut queue, 2_000), ["a-1"]);
    }

    #[test]
    fn what_a_killed_process_had_started_is_told_and_not_started_again() {
        let by = mesh::ports::machine::Process { pid: 1, start: 1, space: None };
        let started = Invocation { stage: InvocationStage::Started { at: Instant(0), by }, ..invocation("a-1", 0) };
        let (mut queue, broken) = Queue::of(vec![started, invocation("a-2", 0)]);
        assert_eq!(broken, ["a-1"]);
        assert_eq!(begun(&mut queue, 0), ["a-2"]);
    }

    #[test]
    fn what_is_done_is_kept_up_to_a_bound() {
        let mut queue = Queue::default();
        let done = InvocationStage::Done { at: Instant(0), told: String::new() };
        let gone: Vec<String> =
            (0..103).flat_map(|number| queue.end(&invocation(&format!("a-{number}"), 0), &done)).collect();
        assert_eq!(gone, ["a-0", "a-1", "a-2"]);
    }
}
