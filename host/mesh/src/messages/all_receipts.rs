//! The receipts of all inboxes, for one who follows the mail of the whole mesh.
//!
//! Each inbox has a log of its own, so there is no single position in them. A follower keeps one for each, and is told in
//! which of them there is more. A store that counts what was appended tells that of all of them at once; of files, the
//! end of each is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::StreamExt as _;
use store::{Child, ChildLeaf, Key, Leaf, Position, StoreError};

use crate::agents::list::of_each;
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::keys::{self, META, RECEIPTS};

/// A count is the same again where as much was retired as appended, so the ends are looked up now and then nevertheless.
/// In milliseconds.
const COUNTS_ARE_BELIEVED: u64 = 60_000;

/// How many appends each log had when it was looked at last, as far as the store counts them.
#[derive(Clone, Debug, Default)]
pub struct ReceiptCounts {
    counts: BTreeMap<AgentName, u64>,
    /// When the ends of all were looked up last.
    looked: Option<Instant>,
}

/// What has changed in the receipts of all inboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrownReceipts {
    /// The inboxes whose receipts go on, and where.
    pub more: Vec<(AgentName, Position)>,
    /// Agents that are no more, and their receipts neither.
    pub gone: Vec<AgentName>,
}

/// The end of each inbox's receipts. One that never had any is left out.
pub(crate) async fn ends(core: &Core) -> Result<BTreeMap<AgentName, Position>, StoreError> {
    let asked = logs(core).await?.into_iter().filter(|(_, leaf)| !matches!(leaf, ChildLeaf::Nothing));
    let mut ends = pin!(of_each(core, asked.map(|(agent, _)| agent).collect(), |agent| end_of(core, agent)));
    let mut all = BTreeMap::new();
    while let Some(end) = ends.next().await {
        let (agent, end) = end?;
        if end != Position::START {
            all.insert(agent, end);
        }
    }
    Ok(all)
}

async fn end_of(core: &Core, agent: AgentName) -> Result<(AgentName, Position), StoreError> {
    let end = core.shared.end(&keys::receipts(&agent)).await?;
    Ok((agent, end))
}

/// Where there is more than was read. A log that is shorter than that is another one, of an agent that was deleted and
/// registered anew, and begins at its start.
pub(crate) async fn grown(
    core: &Core,
    read: &BTreeMap<AgentName, Position>,
    known: &mut ReceiptCounts,
) -> Result<GrownReceipts, StoreError> {
    let now = core.machine.now();
    if known.looked.is_none_or(|looked| now.since(looked) >= COUNTS_ARE_BELIEVED || now < looked) {
        *known = ReceiptCounts { counts: BTreeMap::new(), looked: Some(now) };
    }
    let logs = logs(core).await?;
    let names: BTreeSet<&AgentName> = logs.iter().map(|(agent, _)| agent).collect();
    // The receipts of one that was forgotten are there until they are old, and go on if it comes back.
    let mut asked: Vec<AgentName> = read.keys().filter(|agent| !names.contains(agent)).cloned().collect();
    let mut counts = BTreeMap::new();
    for (agent, leaf) in logs {
        match leaf {
            ChildLeaf::Nothing => {}
            ChildLeaf::Appends(count) => {
                if known.counts.get(&agent) != Some(&count) {
                    asked.push(agent.clone());
                }
                counts.insert(agent, count);
            }
            ChildLeaf::Value(_) | ChildLeaf::Unknown => asked.push(agent),
        }
    }
    let mut ends = pin!(of_each(core, asked, |agent| end_of(core, agent)));
    let (mut more, mut gone) = (Vec::new(), Vec::new());
    while let Some(end) = ends.next().await {
        let (agent, end) = end?;
        let at = read.get(&agent).copied().unwrap_or(Position::START);
        let from = if end < at { Position::START } else { at };
        if from < end {
            more.push((agent, from));
        } else if end == Position::START && at != Position::START {
            gone.push(agent);
        }
    }
    // Noted only now: if looking fails, the next look asks again.
    known.counts = counts;
    Ok(GrownReceipts { more, gone })
}

/// Every agent, with what the listing tells of its receipts.
async fn logs(core: &Core) -> Result<Vec<(AgentName, ChildLeaf)>, StoreError> {
    let (mut logs, mut rest) = (Vec::new(), Vec::new());
    let of = |child: Child<'_>| {
        let agent = Key::decode(child.name).parse().ok()?;
        Some((agent, child.beside.pop().unwrap_or(ChildLeaf::Unknown)))
    };
    let (mut first, mut second) =
        (|child: Child<'_>| logs.extend(of(child)), |child: Child<'_>| rest.extend(of(child)));
    core.shared.children(&keys::agents(), META, &[Leaf::Log(RECEIPTS)], [&mut first, &mut second]).await?;
    logs.append(&mut rest);
    Ok(logs)
}
