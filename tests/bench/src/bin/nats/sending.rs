//! How many messages a second go through the mesh, and how many a bare client publishes and has
//! acknowledged: the same server, the same body, the same number at once, each with a connection of its own.

use std::time::Instant;

use async_nats::jetstream::{self, stream};
use bench::Failure;
use bench::report::Report;
use mesh::message::Draft;
use test_support::NatsServer;
use tokio::task::JoinSet;

use crate::Extent;
use crate::host::Host;

/// How many send at once.
const SENDERS: [usize; 3] = [1, 8, 32];
/// What share of the bare client's messages go through the mesh at least.
const BUDGET: f64 = 0.8;
/// What is said.
const BODY: &str = "The parser is yours from here on: src/parser compiles, its tests pass, and what is open stands in \
                    docs/parser.md. Tell me before you touch src/lexer, for I am in the middle of it.";
/// What a message holds beside its body: ids, names, times.
const ENVELOPE: usize = 280;

/// Measures each number of senders.
pub(crate) async fn measure(server: &NatsServer, extent: Extent, report: &Report) -> Result<(), Failure> {
    let (messages, rounds) = match extent {
        Extent::Quick => (320, 1),
        Extent::Whole | Extent::Growth => (6_400, 5),
    };
    let recipient = Host::start(server, "everyone-writes-me").await?;
    recipient.end().await?;
    for senders in SENDERS {
        let mut hosts = Vec::new();
        for number in 0..senders {
            hosts.push(Host::start(server, &format!("sender-{senders}-{number}")).await?);
        }
        let mut ratios = Vec::new();
        let mut rates = Vec::new();
        for _ in 0..rounds {
            let bare = bare(server, senders, messages / senders).await?;
            let through = through_the_mesh(&hosts, messages / senders).await?;
            ratios.push(through / bare);
            rates.push((through, bare));
        }
        ratios.sort_by(f64::total_cmp);
        rates.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (through, bare) = rates[rates.len() / 2];
        let remark = format!(", {through:.0} against {bare:.0} a second");
        report.share(&format!("{senders} at once"), ratios[ratios.len() / 2], BUDGET, &remark);
        for host in hosts {
            host.end().await?;
        }
    }
    Ok(())
}

async fn bare(server: &NatsServer, senders: usize, each: usize) -> Result<f64, Failure> {
    let mut tasks: JoinSet<Result<(), Failure>> = JoinSet::new();
    let payload = vec![b'x'; BODY.len() + ENVELOPE];
    let mut ready = Vec::new();
    for number in 0..senders {
        let jetstream = jetstream::new(async_nats::connect(server.url()).await?);
        let config = stream::Config {
            name: "BARE".to_owned(),
            subjects: vec!["bare.>".to_owned()],
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        jetstream.get_or_create_stream(config).await?;
        ready.push((jetstream, format!("bare.{number}")));
    }
    let begun = Instant::now();
    for (jetstream, subject) in ready {
        let payload = payload.clone();
        tasks.spawn(async move {
            for _ in 0..each {
                jetstream.publish(subject.clone(), payload.clone().into()).await?.await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok((senders * each) as f64 / begun.elapsed().as_secs_f64())
}

async fn through_the_mesh(hosts: &[Host], each: usize) -> Result<f64, Failure> {
    let mut tasks: JoinSet<Result<(), Failure>> = JoinSet::new();
    let begun = Instant::now();
    for host in hosts {
        let (mesh, caller) = (std::sync::Arc::clone(&host.mesh), host.caller.clone());
        tasks.spawn(async move {
            for _ in 0..each {
                let draft = Draft { body: BODY.to_owned(), ..Draft::default() };
                mesh.send(&caller, &["everyone-writes-me".to_owned()], draft).await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok((hosts.len() * each) as f64 / begun.elapsed().as_secs_f64())
}
