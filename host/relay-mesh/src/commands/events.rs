//! `relay-mesh events`: follow events as JSON lines, without a server.

use std::time::Duration;

use mesh::MailReader;
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::{CommandError, Failure, StreamError};
use crate::events::{Cursor, Cut, Followed, Outlet, Socket, Subscription, Topic, Unwanted, follow};
use crate::exit::Exit;
use crate::line_reader::Lines;
use crate::runs::permission::mail_reader;
use crate::signals::Stop;

/// Ten years: the reader of a pipe may take its time.
const PATIENCE: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Follow events as JSON lines: mail, reservations, commands, turns, agents
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh events --subscribe reservations,commands\n  \
    relay-mesh events --agent bob | jq -r 'select(.topic == \"inbox\") | .body'\n  \
    relay-mesh events --topics deltas --agent helper | jq -j 'select(.event == \"delta\") | .text'\n  \
    relay-mesh events --topics messages,activity,asks\n  \
    relay-mesh events --subscribe commands --cursor \"$(cat cursor)\"\n\n\
    Prints each event once, from now on or from --cursor: every line carries the cursor after it, valid for the same \
    topics and agent. Mail is not marked as read. `messages` has the whole mesh's mail for its user, and its own for an \
    agent. A server sends the same lines on a Unix socket, see docs/events.md.")]
pub(crate) struct Args {
    /// What to follow [default: inbox if --agent is given, reservations, commands, turns, agents]
    #[arg(long, visible_alias = "topics", value_name = "TOPIC,…", value_enum, value_delimiter = ',')]
    subscribe: Vec<Topic>,
    /// Whose mail in `inbox`, `messages` and `delivery`, and whose words of `deltas`
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Where to start: the cursor of an earlier line, or `start` for every event that is kept
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<Cursor>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        print(subscription(self)?, context).await
    }
}

/// Prints what was subscribed to, until it is stopped.
pub(super) async fn print(mut subscription: Subscription, context: &Context) -> Result<Exit, CommandError> {
    let mut stop = Stop::listen().map_err(StreamError::Input)?;
    let open = context.open()?;
    if [Topic::Messages, Topic::Delivery].iter().any(|topic| subscription.topics.contains(topic)) {
        match mail_reader(context, &open, subscription.agent.clone()).await? {
            MailReader::User => {}
            MailReader::Agent(agent) => subscription.agent = Some(agent),
        }
    }
    subscription.check(&open.mesh).await?;
    let mut nobody = Lines::of(None::<tokio::io::Empty>, 0);
    let mut outlet = Outlet::new(tokio::io::stdout(), PATIENCE);
    let mut cursor = None;
    let deltas = Socket::path_of_deltas(&context.settings.dir.value, &context.environment).ok();
    let notices_silence = subscription.topics.contains(&Topic::Agents);
    let noticing = async {
        if notices_silence {
            open.mesh.keep_noticing_silence().await;
        }
        std::future::pending::<()>().await;
    };
    let followed = tokio::select! {
        () = stop.asked() => return Ok(Exit::Success),
        () = noticing => return Ok(Exit::Success),
        followed = follow(&open.mesh, deltas.as_deref(), &subscription, &mut cursor, &mut nobody, &mut outlet) => followed,
    };
    match followed {
        Followed::Cut(Cut::Gone(error)) => Err(error.into()),
        Followed::Cut(cut @ (Cut::Slow(_) | Cut::Nonsense(_))) => Err(Failure {
            what: cut.to_string(),
            hint: Some("begin without `--cursor`, or with `--cursor start`".to_owned()),
            exit: Exit::Usage,
            source: None,
        }
        .into()),
        Followed::Store(error) => Err(error.into()),
    }
}

fn subscription(args: Args) -> Result<Subscription, Unwanted> {
    let Args { subscribe, agent, cursor } = args;
    let is_usual = |topic: &Topic| topic.is_usual() && (*topic != Topic::Inbox || agent.is_some());
    let topics = if subscribe.is_empty() { Topic::ALL.into_iter().filter(is_usual).collect() } else { subscribe };
    Subscription::new(topics, agent, cursor)
}
