//! How many messages a second go through the mesh, and how many a bare client publishes and has
//! acknowledged: the same server, the same body, the same number at once, each with a connection of its own.
//!
//! The bare client does so twice: with what the mesh asks of the server, which the budget speaks of, and into a
//! plain stream, so that both shares show what of the difference is the server's and what is ours.

use std::time::Instant;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::{self, stream};
use bench::Failure;
use bench::report::Report;
use mesh::messages::Draft;
use test_support::NatsServer;
use tokio::task::JoinSet;

use crate::Extent;
use crate::host::Host;

/// How many send at once.
const SENDERS: [usize; 3] = [1, 8, 32];
/// What share of the messages of a bare client with ids and news go through the mesh at least.
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
        Extent::Whole => (6_400, 5),
    };
    let recipient = Host::start(server, "everyone-writes-me").await?;
    recipient.end().await?;
    for senders in SENDERS {
        let mut hosts = Vec::new();
        for number in 0..senders {
            hosts.push(Host::start(server, &format!("sender-{senders}-{number}")).await?);
        }
        let mut shares = Vec::new();
        let mut kept = Vec::new();
        let mut rates = Vec::new();
        for _ in 0..rounds {
            let plain = bare(server, Asked::Nothing, senders, messages / senders).await?;
            let once = bare(server, Asked::OnceAndNews, senders, messages / senders).await?;
            let through = through_the_mesh(&hosts, messages / senders).await?;
            shares.push(through / plain);
            kept.push(through / once);
            rates.push((through, once));
        }
        rates.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (through, once) = rates[rates.len() / 2];
        let remark = format!(", {through:.0} against {once:.0} a second");
        report.share(&format!("{senders} at once"), middle(kept), BUDGET, &remark);
        let share = middle(shares) * 100.0;
        report.row(&format!("   of a bare client's whose messages have no ids and cause no news: {share:.0} %"));
        for host in hosts {
            host.end().await?;
        }
    }
    Ok(())
}

/// What a bare client asks of the server beyond keeping a message.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Nothing.
    Nothing,
    /// What the mesh does: to know a message again by its id, and to tell whoever watches.
    OnceAndNews,
}

impl Asked {
    fn stream(self) -> stream::Config {
        let (name, republish) = match self {
            Asked::Nothing => ("BARE", None),
            Asked::OnceAndNews => {
                let destination = "bare-news.>".to_owned();
                ("TOLD", Some(stream::Republish { source: ">".to_owned(), destination, headers_only: true }))
            }
        };
        stream::Config {
            name: name.to_owned(),
            subjects: vec![format!("{name}.>")],
            storage: stream::StorageType::File,
            republish,
            ..stream::Config::default()
        }
    }
}

async fn bare(server: &NatsServer, asked: Asked, senders: usize, each: usize) -> Result<f64, Failure> {
    let mut tasks: JoinSet<Result<(), Failure>> = JoinSet::new();
    let payload = vec![b'x'; BODY.len() + ENVELOPE];
    let mut ready = Vec::new();
    for number in 0..senders {
        let client = async_nats::connect(server.url()).await?;
        let jetstream = jetstream::new(client.clone());
        let config = asked.stream();
        let subject = format!("{}.{number}", config.name);
        jetstream.get_or_create_stream(config).await?;
        ready.push((client, jetstream, subject));
    }
    let begun = Instant::now();
    for (client, jetstream, subject) in ready {
        let payload = payload.clone();
        tasks.spawn(async move {
            for _ in 0..each {
                let (subject, payload) = (subject.clone(), payload.clone().into());
                match asked {
                    Asked::Nothing => jetstream.publish(subject, payload).await?.await?,
                    Asked::OnceAndNews => {
                        let mut headers = HeaderMap::new();
                        headers.insert(NATS_MESSAGE_ID, client.new_inbox().as_str());
                        jetstream.publish_with_headers(subject, headers, payload).await?.await?
                    }
                };
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok((senders * each) as f64 / begun.elapsed().as_secs_f64())
}

fn middle(mut shares: Vec<f64>) -> f64 {
    shares.sort_by(f64::total_cmp);
    shares[shares.len() / 2]
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
