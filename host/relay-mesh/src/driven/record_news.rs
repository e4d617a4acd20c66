//! Tells each driven agent of changes that concern it: of its own record, and of those that its budget and its end hang
//! on. Else every change would have all agents look at everything again.

use std::collections::{BTreeMap, BTreeSet};

use mesh::driven::{DrivenId, DrivenRecord};
use tokio::sync::watch;

/// The agents of this process, each with its record as it was last read.
#[derive(Default)]
pub(super) struct RecordNews {
    agents: BTreeMap<DrivenId, (DrivenRecord, watch::Sender<()>)>,
}

impl RecordNews {
    /// What a new agent is told by; none if it is there already.
    pub(super) fn begin(&mut self, record: &DrivenRecord) -> Option<watch::Receiver<()>> {
        if self.agents.contains_key(&record.id) {
            return None;
        }
        let (sender, receiver) = watch::channel(());
        self.agents.insert(record.id, (record.clone(), sender));
        Some(receiver)
    }

    pub(super) fn forget(&mut self, id: DrivenId) {
        self.agents.remove(&id);
    }

    /// Tells those agents whose own record, or that of the agent above them or of the first of their tree, is another than
    /// the last time, or is not among the live ones any more.
    pub(super) fn tell(&mut self, live: Vec<DrivenRecord>) {
        let mut now: BTreeMap<DrivenId, DrivenRecord> = live.into_iter().map(|record| (record.id, record)).collect();
        let differs = |(id, (seen, _)): (&DrivenId, &(DrivenRecord, _))| (now.get(id) != Some(seen)).then_some(*id);
        let changed: BTreeSet<DrivenId> = self.agents.iter().filter_map(differs).collect();
        if changed.is_empty() {
            return;
        }
        for (id, (seen, sender)) in &mut self.agents {
            if [Some(*id), seen.parent, Some(seen.root)].iter().flatten().any(|of| changed.contains(of)) {
                sender.send_replace(());
            }
            if let Some(record) = now.remove(id) {
                *seen = record;
            }
        }
    }

    pub(super) fn tell_all(&self) {
        self.agents.values().for_each(|(_, sender)| _ = sender.send_replace(()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FIRST: &str = "01JD8Z3K5V0000000000000001";
    const BELOW: &str = "01JD8Z3K5V0000000000000002";
    const OTHER: &str = "01JD8Z3K5V0000000000000003";

    fn record(id: &str, parent: Option<&str>, further: &Value) -> DrivenRecord {
        let mut record = json!({
            "id": id, "harness": "toad", "by": null, "parent": parent, "root": parent.unwrap_or(id), "depth": 1,
            "asked_folder": "/project", "workplace": {"kind": "here", "top": null}, "about": "", "started": 0,
            "agent": {
                "name": "helper", "folder": "/project", "model": null, "guidance": "", "reach": "look",
                "approvals": "ask", "extensions": "mesh", "id": "one",
            },
            "limits": {"until": null, "turns": null, "tokens": null},
        });
        let (fields, further) = (record.as_object_mut().expect("fields"), further.as_object().expect("fields"));
        fields.extend(further.clone());
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn an_agent_hears_of_its_own_record_and_of_those_above_it_and_of_no_other() {
        let said = |words: &str| json!({"last_words": words});
        let all = |first: &Value, below: &Value, other: &Value| {
            vec![record(FIRST, None, first), record(BELOW, Some(FIRST), below), record(OTHER, None, other)]
        };
        let (nothing, mut news) = (json!({}), RecordNews::default());
        let begun = all(&nothing, &nothing, &nothing);
        let mut told: Vec<_> = begun.iter().map(|record| news.begin(record).expect("a new one")).collect();
        assert!(news.begin(&begun[0]).is_none(), "it is there already");
        for (live, expected) in [
            (all(&nothing, &nothing, &nothing), [false, false, false]),
            (all(&nothing, &nothing, &said("a")), [false, false, true]),
            (all(&nothing, &said("b"), &said("a")), [false, true, false]),
            (all(&said("c"), &said("b"), &said("a")), [true, true, false]),
            (all(&said("c"), &said("b"), &said("a")), [false, false, false]),
            // The first one has ended.
            (all(&said("c"), &said("b"), &said("a")).split_off(1), [true, true, false]),
        ] {
            news.tell(live);
            let heard: Vec<bool> = told.iter().map(|one| one.has_changed().expect("it is told")).collect();
            assert_eq!(heard, expected);
            told.iter_mut().for_each(watch::Receiver::mark_unchanged);
        }
    }
}
