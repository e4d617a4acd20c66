//! Fills a server as a mesh would: agents register by the mesh itself, and their mail is laid there byte for
//! byte as the mesh lays it, with what senders note of it, without waiting for each answer.

use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::{self, Context};
use bench::Failure;
use mesh::Registration;
use mesh::messages::{Draft, Message, Priority, Trace};
use mesh::names::{AgentName, MessageId};
use serde_json::json;
use test_support::NatsServer;
use tokio::task::JoinSet;

use crate::host::Host;

/// How much mail waits for each agent.
pub(super) const EACH: usize = 100;
/// On how many machines they live.
const MACHINES: usize = 16;
/// How many answers are waited for at once.
const AT_ONCE: usize = 500;
/// What is said: with the rest of a message it comes to about a kilobyte.
const BODY: usize = 600;

/// The machines on which everybody lives.
pub(super) struct Filler {
    hosts: Vec<Arc<Host>>,
    server: String,
}

impl Filler {
    pub(super) async fn start(server: &NatsServer) -> Result<Filler, Failure> {
        let mut hosts = Vec::new();
        for number in 0..MACHINES {
            hosts.push(Arc::new(Host::start(server, &name_of_machine(number)).await?));
        }
        Ok(Filler { hosts, server: server.url() })
    }

    /// Lets further agents come, each of whom is written to by the one after it.
    pub(super) async fn fill(&self, from: usize, to: usize) -> Result<(), Failure> {
        let mut tasks: JoinSet<Result<(), Failure>> = JoinSet::new();
        for (machine, host) in self.hosts.iter().enumerate() {
            let (host, server) = (Arc::clone(host), self.server.clone());
            tasks.spawn(async move {
                let own = || (from..to).filter(|number| number % MACHINES == machine);
                for number in own() {
                    let registration = Registration { name: Some(agent(number)?), ..Registration::default() };
                    host.mesh.register(&host.caller_of_nobody().await?, registration).await?;
                }
                let jetstream = jetstream::new(async_nats::connect(server).await?);
                let mut answers = Vec::new();
                for number in own() {
                    let recipient = if number + 1 == to { from } else { number + 1 };
                    write(&jetstream, &host, machine, (&agent(number)?, &agent(recipient)?), &mut answers).await?;
                    if answers.len() >= AT_ONCE {
                        all(&mut answers).await?;
                    }
                }
                all(&mut answers).await
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    }

    pub(super) async fn end(self) -> Result<(), Failure> {
        for host in self.hosts {
            Arc::into_inner(host).ok_or("a task still has it")?.end().await?;
        }
        Ok(())
    }
}

/// Waits for the answers.
async fn all(answers: &mut Vec<PublishAckFuture>) -> Result<(), Failure> {
    for answer in answers.drain(..) {
        answer.await?;
    }
    Ok(())
}

/// One agent's messages to another, its list of them and the event log's lines.
async fn write(
    jetstream: &Context,
    host: &Host,
    machine: usize,
    (from, to): (&AgentName, &AgentName),
    answers: &mut Vec<PublishAckFuture>,
) -> Result<(), Failure> {
    let root = format!("relay.of-{}", name_of_machine(machine));
    let (mut sent, mut event_log) = (Vec::new(), Vec::new());
    for _ in 0..EACH {
        let id: MessageId = ulid::Ulid::generate().to_string().parse()?;
        let draft = Draft { body: "It waits. ".repeat(BODY / 10), ..Draft::default() };
        let message = Message {
            id,
            at: host.mesh.machine().now(),
            from: from.clone(),
            to: to.clone(),
            subject: draft.subject_or_default(),
            body: draft.body,
            thread: id.to_string(),
            reply_to: None,
            priority: Priority::default(),
            tags: Vec::new(),
            idempotency_key: None,
            broadcast: false,
            trace: Trace { root: id, hops: 0 },
            held: None,
        };
        let Message { at, subject, thread, .. } = &message;
        sent.push(json!({ "id": id, "at": at, "to": [to], "subject": subject, "thread": thread }).to_string());
        event_log.push(json!({ "id": id, "from": from, "to": [to], "event": "sent", "at": at }).to_string());
        let inbox = format!("{root}.agents.{to}.inbox");
        answers.push(publish(jetstream, inbox, serde_json::to_string(&message)?).await?);
    }
    answers.push(publish(jetstream, format!("{root}.agents.{from}.sent"), sent.join("\n")).await?);
    answers.push(publish(jetstream, format!("{root}.global"), event_log.join("\n")).await?);
    Ok(())
}

async fn publish(jetstream: &Context, subject: String, body: String) -> Result<PublishAckFuture, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", jetstream.client().new_inbox().as_str());
    Ok(jetstream.publish_with_headers(subject, headers, body.into()).await?)
}

fn name_of_machine(number: usize) -> String {
    format!("filler-{number}")
}

fn agent(number: usize) -> Result<AgentName, Failure> {
    Ok(format!("agent-{number}").parse()?)
}
