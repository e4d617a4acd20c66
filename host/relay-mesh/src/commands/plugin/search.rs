//! `relay-mesh plugin search`: look for adapters of others in a list, which is one JSON file.

use ::fetch::Request;
use adapters::PublisherKey;
use serde::{Deserialize, Serialize};

use super::source::{Network, SourceError};
use crate::config::{self, IndexAt};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line, table};
use crate::runs::permission;

/// The largest list, in bytes: tens of thousands of adapters.
const LARGEST: u64 = 8 * 1024 * 1024;

/// Look for adapters of others in a list
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin search\n  \
    relay-mesh plugin search toad --index https://raw.githubusercontent.com/acme/adapters/main/adapters.json\n\n\
    The list is a JSON file that anybody can keep in a repository; docs/installing-adapters.md shows one. `adapters.index` of your \
    settings says where yours is. Nothing in it is trusted: what is installed shows its own key.")]
pub(super) struct Args {
    /// Show those that hold each of these words in their name, title or description
    words: Vec<String>,
    /// The list: `https://…` or a file [default: `adapters.index` of the settings]
    #[arg(long, value_name = "ADDRESS")]
    index: Option<IndexAt>,
    #[command(flatten)]
    network: Network,
}

/// A list of adapters. What else it says is for others.
#[derive(Debug, Deserialize)]
struct Index {
    adapters: Vec<Listed>,
}

/// An adapter in a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Listed {
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    /// What `install` takes.
    source: String,
    /// The keys that its publisher signs with, as the list says.
    #[serde(default)]
    keys: Vec<PublisherKey>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let set = context.settings.index.value.clone();
    let Some(index) = args.index.or(set) else {
        let own = printable_line(&config::own_file(&context.environment));
        return Err(CommandError::usage(
            "there is no list to look in",
            &format!("name one by `--index`, or set `index` under [adapters] in {own}"),
        ));
    };
    let hint = Some("docs/installing-adapters.md shows such a list".to_owned());
    let what = format!("`{index}` is no list of adapters");
    let bytes = match &index {
        IndexAt::File(path) => std::fs::read(context.workdir.join(path))
            .map_err(|error| CommandError::caused_by(&what, hint.clone(), Exit::NotFound, error))?,
        IndexAt::Url(url) => {
            permission::only_the_user(context, &context.open()?, "ask a server").await?;
            let client = args.network.client(context)?;
            let answer = client.send(Request::new(hyper::Method::GET, url.clone(), LARGEST)).await;
            answer.and_then(::fetch::Response::good).map_err(SourceError::from)?.body.to_vec()
        }
    };
    let listed: Index =
        serde_json::from_slice(&bytes).map_err(|error| CommandError::caused_by(&what, hint, Exit::Failure, error))?;
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let adapters = listed.adapters.into_iter().filter(|one| one.holds(&words)).collect();
    context.printer.show(&SearchOutput { adapters })?;
    Ok(Exit::Success)
}

impl Listed {
    fn holds(&self, words: &[String]) -> bool {
        let text = format!("{} {} {}", self.name, self.title, self.description).to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

/// What `search` prints.
#[derive(Debug, Serialize)]
struct SearchOutput {
    adapters: Vec<Listed>,
}

impl Show for SearchOutput {
    fn text(&self) -> String {
        if self.adapters.is_empty() {
            return "No adapter in the list is like this.".to_owned();
        }
        let row = |one: &Listed| {
            let about = if one.description.is_empty() { &one.title } else { &one.description };
            [&one.name, &one.source, about].map(|text| printable_line(text)).to_vec()
        };
        table(&["ADAPTER", "INSTALL", "ABOUT"], &self.adapters.iter().map(row).collect::<Vec<_>>())
    }
}
