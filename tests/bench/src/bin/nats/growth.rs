//! How long one agent's questions take, and how that grows with the mail that waits for all others: a table,
//! and a plot for docs/.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use bench::Failure;
use bench::report::Report;
use bench::sampling::median;
use mesh::Fetch;
use mesh::names::AgentName;
use test_support::NatsServer;
use tokio::task::JoinSet;

use crate::Extent;
use crate::host::Host;

/// The questions, as the table names them.
const ASKED: [&str; 4] = ["find", "agent", "status of a message", "fetch"];

/// Fills the stores step by step and asks at each.
pub(crate) async fn measure(server: &NatsServer, extent: Extent, report: &Report) -> Result<(), Failure> {
    let (agents, steps, times): (usize, &[usize], usize) = match extent {
        Extent::Quick => (20, &[100, 200], 5),
        Extent::Whole => (10_000, &[10_000, 100_000, 1_000_000], 31),
    };
    let host = Host::start(server, "asker").await?;
    let sent = host.mesh.send(&host.caller, &["asker".to_owned()], draft("to myself")).await?;
    fill_agents(server, agents).await?;
    let mut there = 0;
    let mut rows: Vec<(usize, Vec<Duration>)> = Vec::new();
    for step in steps {
        fill_mail(server, agents, there, *step).await?;
        there = *step;
        let mut row = Vec::new();
        for asked in ASKED {
            let mut took = Vec::new();
            // Whoever finds looks at every agent, so that is asked less often.
            for _ in 0..if asked == "find" { times.div_ceil(10) } else { times } {
                let begun = Instant::now();
                ask(&host, asked, sent.id).await?;
                took.push(begun.elapsed());
            }
            row.push(median(took));
        }
        for (asked, took) in ASKED.iter().zip(&row) {
            report.note(&format!("{asked}, {agents} agents, {there} messages"), *took);
        }
        rows.push((there, row));
    }
    if extent == Extent::Whole {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/nats-growth.svg");
        std::fs::write(path, plot(&rows))?;
    }
    host.end().await
}

async fn ask(host: &Host, asked: &str, id: mesh::names::MessageId) -> Result<(), Failure> {
    let asker: AgentName = "asker".parse()?;
    match asked {
        "find" => drop(host.mesh.find("asker", 3).await?),
        "agent" => drop(host.mesh.agent(&asker).await?),
        "fetch" => drop(host.mesh.fetch(&asker, &Fetch { peek: true, ..Fetch::default() }).await?),
        _ => drop(host.mesh.message_status(&host.caller, id).await?),
    }
    Ok(())
}

fn draft(body: &str) -> mesh::message::Draft {
    mesh::message::Draft { body: body.to_owned(), ..mesh::message::Draft::default() }
}

/// Registers agents, many at once.
async fn fill_agents(server: &NatsServer, agents: usize) -> Result<(), Failure> {
    let mut tasks: JoinSet<Result<(), Failure>> = JoinSet::new();
    for part in 0..16 {
        let host = Host::start(server, &format!("filler-{part}")).await?;
        let mesh = Arc::clone(&host.mesh);
        tasks.spawn(async move {
            for number in (part..agents).step_by(16) {
                let name: AgentName = format!("agent-{number}").parse()?;
                let registration = mesh::Registration { name: Some(name), ..mesh::Registration::default() };
                mesh.register(&host.caller_of_nobody().await?, registration).await?;
            }
            host.end().await
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Lays mail into the agents' inboxes as the mesh would, without waiting for each answer.
async fn fill_mail(server: &NatsServer, agents: usize, from: usize, to: usize) -> Result<(), Failure> {
    let jetstream = jetstream::new(async_nats::connect(server.url()).await?);
    let mut answers = Vec::new();
    for number in from..to {
        let recipient = format!("agent-{}", number % agents);
        let id = ulid::Ulid::generate();
        let message = serde_json::json!({
            "id": id.to_string(), "at": id.timestamp_ms(), "from": "asker", "to": recipient, "subject": "waiting",
            "body": "This message waits.", "thread": id.to_string(),
            "trace": {"root": id.to_string(), "hops": 0},
        });
        let subject = format!("relay.of-asker.agents.{recipient}.inbox");
        answers.push(jetstream.publish(subject, message.to_string().into()).await?);
        if answers.len() == 1_000 {
            for answer in answers.drain(..) {
                answer.await?;
            }
        }
    }
    for answer in answers {
        answer.await?;
    }
    Ok(())
}

/// The table as a picture: messages that wait, in powers of ten, across, and milliseconds upwards.
fn plot(rows: &[(usize, Vec<Duration>)]) -> String {
    const COLOURS: [&str; 4] = ["#4477aa", "#228833", "#aa3377", "#ccbb44"];
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    let highest = rows.iter().flat_map(|(_, row)| row.iter().map(milliseconds)).fold(1.0, f64::max);
    let x = |index: usize| 70.0 + 420.0 * index as f64 / (rows.len().max(2) - 1) as f64;
    let y = |time: f64| 300.0 - 260.0 * (1.0 + time).ln() / (1.0 + highest).ln();
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 360\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"680\" height=\"360\" fill=\"white\"/>\n\
         <text x=\"70\" y=\"22\">What one agent asks, while the mail of others grows (p50, ms, logarithmic)</text>\n",
    );
    // Writing to a string cannot fail.
    for (index, (messages, _)) in rows.iter().enumerate() {
        let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"325\" text-anchor=\"middle\">{messages}</text>", x(index));
    }
    for (place, (asked, colour)) in ASKED.iter().zip(COLOURS).enumerate() {
        let points: Vec<String> = rows
            .iter()
            .enumerate()
            .map(|(index, (_, row))| format!("{:.1},{:.1}", x(index), y(milliseconds(&row[place]))))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        let last = rows.last().map_or(0.0, |(_, row)| milliseconds(&row[place]));
        let _ =
            writeln!(svg, "<text x=\"500\" y=\"{:.1}\" fill=\"{colour}\">{asked}: {last:.2} ms</text>", y(last) + 4.0);
    }
    svg.push_str("<text x=\"280\" y=\"348\" text-anchor=\"middle\">messages that wait</text>\n</svg>\n");
    svg
}
