//! `evidence`: whether a model request held the mail that answers of hooks carried.

use async_trait::async_trait;
use mesh::ports::harness::{HandedOver, HarnessError, HarnessEvidence, HookCall, Verdict};
use mesh::names::MessageId;
use mesh::ports::machine::Instant;

use crate::adapter::Adapter;

use bindings::exports::relay::adapter::evidence;

pub(super) use bindings::GivesEvidenceIndices as Indices;

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "relay:adapter/gives-evidence",
        exports: { default: async },
        with: { "relay:adapter/types": crate::bindings::relay::adapter::types },
    });
}

#[async_trait]
impl HarnessEvidence for Adapter {
    async fn look(&self, call: &HookCall, handed: &[HandedOver]) -> Result<Vec<(MessageId, Verdict)>, HarnessError> {
        let Some(indices) = self.exported.evidence.clone() else { return Ok(Vec::new()) };
        let call = evidence::Occurrence {
            name: call.name.clone(),
            payload: call.payload.clone(),
            environment: self.host_side.grants.narrow(&call.environment),
        };
        let handed: Vec<evidence::HandedOver> = handed.iter().map(to_guest).collect();
        let judgements = self.ask_within_a_turn("evidence", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_evidence().call_look(store, &call, &handed).await
            })
        });
        Ok(judgements.await?.iter().filter_map(from_guest).collect())
    }
}

fn to_guest(handed: &HandedOver) -> evidence::HandedOver {
    let Instant(at) = handed.at;
    evidence::HandedOver { id: handed.id.to_string(), hook: handed.hook.clone(), at }
}

/// None for an id that is none of ours.
fn from_guest(judgement: &evidence::Judgement) -> Option<(MessageId, Verdict)> {
    let verdict = match judgement.verdict {
        evidence::Verdict::Shown => Verdict::Shown,
        evidence::Verdict::Lost => Verdict::Lost,
    };
    Some((judgement.id.parse().ok()?, verdict))
}
