//! The mesh against a plain map: whatever agents do in whatever order, each message is confirmed
//! once, in one process or another, and none is lost.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{World, draft, name};
use crate::messages::receipt::DeliveryStatus;
use crate::names::MessageId;
use crate::testing::shell_call;
use crate::{Fetch, Lease, Limits};

const AGENTS: [&str; 3] = ["alice", "bob", "carol"];

/// A random step.
#[derive(Clone, Debug)]
enum Act {
    Send { to: usize, key: Option<u8> },
    Fetch { agent: usize, process: usize, limit: usize },
    Confirm { which: usize },
    Release { which: usize },
    Acknowledge { agent: usize, which: usize },
    Pass { milliseconds: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    let agent = 0..AGENTS.len();
    prop_oneof![
        4 => (agent.clone(), proptest::option::of(0..4_u8)).prop_map(|(to, key)| Act::Send { to, key }),
        4 => (agent.clone(), 0..2_usize, 1..4_usize)
            .prop_map(|(agent, process, limit)| Act::Fetch { agent, process, limit }),
        2 => any::<usize>().prop_map(|which| Act::Confirm { which }),
        1 => any::<usize>().prop_map(|which| Act::Release { which }),
        1 => (agent, any::<usize>()).prop_map(|(agent, which)| Act::Acknowledge { agent, which }),
        1 => (0..90_000_u64).prop_map(|milliseconds| Act::Pass { milliseconds }),
    ]
}

/// What the mesh must know about one message.
#[derive(Clone, Debug, Default)]
struct Expected {
    settled: bool,
    /// The number of the lease on it, and until when that lasts.
    lease: Option<(usize, u64)>,
}

async fn run(acts: Vec<Act>) {
    let world = World::new();
    for agent in AGENTS {
        world.joined(agent).await;
    }
    let other = world.another_process();
    let processes = [&world, &other];
    let mut mail: [BTreeMap<MessageId, Expected>; 3] = Default::default();
    // One sender wrote them all, in this order.
    let mut order: [Vec<MessageId>; 3] = Default::default();
    let mut keys: BTreeMap<(usize, u8), MessageId> = BTreeMap::new();
    let mut leases: Vec<(usize, usize, Option<Lease>)> = Vec::new();
    let mut now = 0;
    for act in acts {
        match act {
            Act::Send { to, key } => {
                let keyed = crate::messages::Draft { idempotency_key: key.map(|key| format!("k{key}")), ..draft("x") };
                let sent = world.send(&shell_call(None), AGENTS[to], keyed).await.expect("sent");
                let first = key.map(|key| *keys.entry((to, key)).or_insert(sent.id));
                assert_eq!(sent.id, first.unwrap_or(sent.id));
                mail[to].entry(sent.id).or_insert_with(|| {
                    order[to].push(sent.id);
                    Expected::default()
                });
            }
            Act::Fetch { agent, process, limit } => {
                let ask = Fetch { limit, ..Fetch::default() };
                let fetched = processes[process].mesh.fetch(&name(AGENTS[agent]), &ask).await.expect("fetched");
                let free =
                    |expected: &Expected| !expected.settled && expected.lease.is_none_or(|(_, until)| now >= until);
                let waiting = mail[agent].values().filter(|expected| free(expected)).count();
                let leased = |expected: &Expected| !expected.settled && !free(expected);
                let ahead = order[agent].iter().take_while(|id| !leased(&mail[agent][*id]));
                let next: Vec<MessageId> = ahead.filter(|id| free(&mail[agent][*id])).take(limit).copied().collect();
                let presented: Vec<MessageId> = fetched.messages.iter().map(|fetched| fetched.message.id).collect();
                assert_eq!(presented, next, "in order, and none past one that is leased");
                assert_eq!(fetched.waiting, waiting - next.len());
                for message in &fetched.messages {
                    let expected = mail[agent].get_mut(&message.message.id).expect("a message that was sent");
                    assert!(free(expected), "{:?} is presented twice", message.message.id);
                    expected.lease = Some((leases.len(), now + Limits::default().lease));
                }
                if let Some(lease) = fetched.lease {
                    leases.push((agent, process, Some(lease)));
                }
            }
            Act::Confirm { which } | Act::Release { which } if leases.is_empty() => {
                let _nothing_is_claimed = which;
            }
            Act::Confirm { which } => {
                let index = which % leases.len();
                let (agent, process, lease) = &mut leases[index];
                if let Some(lease) = lease.take() {
                    processes[*process]
                        .mesh
                        .confirm(&lease, DeliveryStatus::Read, "fetch", None)
                        .await
                        .expect("confirmed");
                    for id in &lease.messages {
                        mail[*agent].insert(*id, Expected { settled: true, lease: None });
                    }
                }
            }
            Act::Release { which } => {
                let index = which % leases.len();
                let (agent, process, lease) = &mut leases[index];
                if let Some(lease) = lease.take() {
                    let ids = lease.messages.clone();
                    processes[*process].mesh.release(lease).await.expect("released");
                    for id in ids {
                        let expected = mail[*agent].get_mut(&id).expect("leased");
                        expected.lease = expected.lease.filter(|(of, _)| *of != index);
                    }
                }
            }
            Act::Acknowledge { agent, which } => {
                let ids: Vec<MessageId> = mail[agent].keys().copied().collect();
                if let Some(id) = ids.get(which.checked_rem(ids.len()).unwrap_or_default()) {
                    world.mesh.acknowledge(&name(AGENTS[agent]), &[*id]).await.expect("acknowledged");
                    mail[agent].insert(*id, Expected { settled: true, lease: None });
                }
            }
            Act::Pass { milliseconds } => {
                world.machine.pass(milliseconds);
                now += milliseconds;
            }
        }
    }
    world.machine.pass(Limits::default().lease);
    for (agent, expected) in AGENTS.iter().zip(&mail) {
        let waiting: BTreeSet<MessageId> =
            expected.iter().filter(|(_, expected)| !expected.settled).map(|(id, _)| *id).collect();
        let all = Fetch { limit: usize::MAX, ..Fetch::default() };
        let fetched = world.another_process().mesh.fetch(&name(agent), &all).await.expect("fetched");
        let found: BTreeSet<MessageId> = fetched.messages.iter().map(|fetched| fetched.message.id).collect();
        assert_eq!(found, waiting, "what waits for {agent}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn mail_is_confirmed_once_and_never_lost(acts in proptest::collection::vec(act(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(run(acts));
    }
}
