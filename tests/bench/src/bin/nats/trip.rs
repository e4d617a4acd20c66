//! How long a message takes to an agent of another machine that waits for its mail, and how long a bare one
//! takes to a bare consumer, in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{DeliverPolicy, push};
use async_nats::jetstream::{self, stream};
use bench::Failure;
use bench::report::Report;
use bench::sampling::{Compared, median};
use futures::StreamExt;
use mesh::Fetch;
use mesh::messages::Draft;
use mesh::messages::receipt::DeliveryStatus;
use mesh::names::AgentName;
use test_support::NatsServer;
use tokio::sync::mpsc;

use crate::Extent;
use crate::host::Host;

/// How many times as long as the bare one's a message's way may take.
const BUDGET: f64 = 3.0;

/// Measures both in turns.
pub(crate) async fn measure(server: &NatsServer, extent: Extent, report: &Report) -> Result<(), Failure> {
    let runs = match extent {
        Extent::Quick => 30,
        Extent::Whole => 500,
    };
    let (one, other) = (Host::start(server, "asker").await?, Host::start(server, "answerer").await?);
    let (came, mut delivered) = mpsc::channel::<Instant>(1);
    let mesh = Arc::clone(&other.mesh);
    let waiting = tokio::spawn(async move {
        let name: AgentName = "answerer".parse()?;
        let ask = Fetch::default();
        // As whoever listens does.
        let mut mail = mesh.watch_mail(&name).await?;
        loop {
            let fetched = mesh.fetch(&name, &ask).await?;
            let at = Instant::now();
            if let Some(lease) = &fetched.lease {
                mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await?;
            }
            for _ in &fetched.messages {
                if came.send(at).await.is_err() {
                    return Ok::<(), Failure>(());
                }
            }
            mail.may_have_come(&ask).await?;
        }
    });
    let publisher = jetstream::new(async_nats::connect(server.url()).await?);
    let config = stream::Config {
        name: "TRIP".to_owned(),
        subjects: vec!["trip".to_owned()],
        storage: stream::StorageType::File,
        ..stream::Config::default()
    };
    publisher.get_or_create_stream(config).await?;
    let client = async_nats::connect(server.url()).await?;
    let deliver_subject = client.new_inbox().to_string();
    let consumer = jetstream::new(client).get_stream("TRIP").await?;
    let ordered =
        push::OrderedConfig { deliver_subject, deliver_policy: DeliverPolicy::New, ..push::OrderedConfig::default() };
    let mut bare = consumer.create_consumer(ordered).await?.messages().await?;

    let (mut through, mut alone): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let begun = Instant::now();
        publisher.publish("trip", "x".repeat(400).into()).await?.await?;
        bare.next().await.ok_or("the consumer ended")??;
        alone.push(begun.elapsed());

        let draft = Draft { body: "x".repeat(120), ..Draft::default() };
        let begun = Instant::now();
        one.mesh.send(&one.caller, &["answerer".to_owned()], draft).await?;
        let at = delivered.recv().await.ok_or("whoever waited has ended")?;
        through.push(at.duration_since(begun));
    }
    report.ratio("p50", &Compared { subject: median(through), baseline: median(alone) }, BUDGET);
    drop(delivered);
    waiting.abort();
    one.end().await?;
    other.end().await
}
