//! The tools, one file each: input, output and action.
//!
//! To add one, write its file with an implementation of [`Tool`], and add its `mod` line and its line in
//! [`tools`] here. If a view of the crate `view` fits, that is its output, and `text.rs` has its text.

mod ask_agent;
mod ask_user;
mod atm;
mod bind_session;
mod broadcast;
mod channels;
mod checkout;
mod codex;
mod codex_threads;
mod command_status;
mod fetch_messages;
mod find_agents;
mod finish_command;
mod list_agents;
mod list_reservations;
mod message_status;
mod pending;
mod register_agent;
mod release_agent;
mod release_paths;
mod reserve_paths;
mod review_changes;
mod run_result;
mod runner;
mod running;
mod send_command;
mod send_message;
mod spawn_agent;
mod start_run;
mod stop_run;
mod take_command;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use mesh::Mesh;
use mesh::names::{AgentName, MessageId};
use mesh::sessions::{Principal, Ticket};
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::as_meant::as_meant;
use crate::caller::KEY;
use crate::lease_tracker::{MailOnItsWay, PendingLease};
use crate::profile::{Group, Profile};
use crate::run_host::RunHost;
use crate::schema;
use crate::spawn_host::SpawnHost;
use crate::text::Text;
use crate::thread_host::ThreadHost;
use crate::tool_error::ToolError;
pub(crate) use fetch_messages::WaitControl;

/// One tool.
trait Tool: 'static {
    /// The name that clients call.
    const NAME: &'static str;
    /// The name that users read.
    const TITLE: &'static str;
    /// The description for models. Every word costs context in every session.
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize + JsonSchema;

    fn run(
        call: ToolCall,
        input: Self::Input,
    ) -> impl Future<Output = Result<ToolOutput<Self::Output>, ToolError>> + Send;
}

/// A tool whose work is a run or a review, which a client that declares tasks follows by `tasks/get`.
trait TaskTool: Tool {
    /// Begins it. Returns its id.
    fn begin(call: &ToolCall, input: Self::Input) -> impl Future<Output = Result<String, ToolError>> + Send;
}

/// A tool's effect on the mesh, which clients are told as annotations. No tool destroys anything,
/// and none reaches beyond the mesh.
#[derive(Clone, Copy)]
enum Effect {
    /// Reads only.
    Reads,
    /// Changes something; repeating the call changes nothing more.
    Settles,
    /// Changes something each time.
    Adds,
}

/// One call of a tool.
pub(crate) struct ToolCall {
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) caller: Principal,
    /// The ticket that came with the call.
    pub(crate) ticket: Option<Ticket>,
    /// When to stop waiting for mail, and which client to send progress to.
    pub(crate) wait: WaitControl,
    /// What starts runs, if this server does.
    pub(crate) runs: Option<Arc<dyn RunHost>>,
    /// What starts agents, if this server does.
    pub(crate) spawns: Option<Arc<dyn SpawnHost>>,
    /// What talks with other agents, if this server does.
    pub(crate) threads: Option<Arc<dyn ThreadHost>>,
    /// Answers with mail that have not arrived yet.
    pub(crate) mail: MailOnItsWay,
}

impl ToolCall {
    /// The caller's agent; an error if the caller is not registered.
    fn agent(&self) -> Result<AgentName, ToolError> {
        self.caller.agent().cloned().ok_or_else(ToolError::not_registered)
    }

    fn spawns(&self) -> Result<Arc<dyn SpawnHost>, ToolError> {
        self.spawns.clone().ok_or_else(|| ToolError::new("this server starts no agents", "Ask your user to start one."))
    }

    /// Waits until what the caller has read is noted. What it writes now goes on with that, so the loop guard counts it;
    /// and what it fetches now is the rest.
    async fn has_read(&self) {
        if let Some(agent) = self.caller.agent() {
            self.mail.arrived(agent).await;
        }
    }

    /// The id of a message or a command, from the id or its first characters.
    async fn id(&self, typed: &str) -> Result<MessageId, ToolError> {
        Ok(self.mesh.id_of(&self.caller, typed).await?)
    }
}

struct ToolOutput<O> {
    output: O,
    /// The output as text, for clients that show only text.
    text: String,
    /// Mail or a command in the output.
    lease: Option<PendingLease>,
}

impl<O> ToolOutput<O> {
    fn new(output: O, text: impl Into<String>) -> ToolOutput<O> {
        ToolOutput { output, text: text.into(), lease: None }
    }
}

impl<O: Text> From<O> for ToolOutput<O> {
    fn from(view: O) -> ToolOutput<O> {
        let text = view.text();
        ToolOutput::new(view, text)
    }
}

/// A tool's answer, in the protocol's terms.
pub(crate) struct ToolAnswer {
    /// The typed output.
    pub(crate) structured: Value,
    /// The output as text.
    pub(crate) text: String,
    /// Mail or a command in the output.
    pub(crate) lease: Option<PendingLease>,
}

/// A tool as the server lists and runs it.
#[derive(Clone)]
pub(crate) struct ListedTool {
    /// The tool's entry in the list.
    pub(crate) listing: rmcp::model::Tool,
    /// Parses the arguments and runs the tool.
    pub(crate) run: fn(ToolCall, Value) -> BoxFuture<'static, Result<ToolAnswer, ToolError>>,
    /// Begins its work as a task, for clients that declare those. Returns the task's id.
    pub(crate) begin: Option<Begin>,
}

pub(crate) type Begin = fn(ToolCall, Value) -> BoxFuture<'static, Result<String, ToolError>>;

/// Whether tools take the key by which a client without connection identifies itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyArgument {
    /// No: the connection or the session identifies the caller.
    Hidden,
    /// Yes: nothing else identifies the caller.
    Shown,
}

/// The tools of a profile, by name.
pub(crate) fn tools(profile: Profile, keyed: KeyArgument) -> BTreeMap<&'static str, ListedTool> {
    let mut tools = BTreeMap::from([
        entry::<register_agent::RegisterAgent>(keyed),
        entry::<find_agents::FindAgents>(keyed),
        entry::<list_agents::ListAgents>(keyed),
        entry::<send_message::SendMessage>(keyed),
        entry::<broadcast::Broadcast>(keyed),
        entry::<fetch_messages::FetchMessages>(keyed),
        entry::<message_status::Status>(keyed),
        entry::<bind_session::BindSession>(keyed),
    ]);
    if profile.shows(Group::Reservations) {
        tools.extend([
            entry::<reserve_paths::ReservePaths>(keyed),
            entry::<release_paths::ReleasePaths>(keyed),
            entry::<list_reservations::ListReservations>(keyed),
        ]);
    }
    if profile.shows(Group::Commands) {
        tools.extend([
            entry::<send_command::SendCommand>(keyed),
            entry::<take_command::TakeCommand>(keyed),
            entry::<finish_command::FinishCommand>(keyed),
            entry::<command_status::CommandStatus>(keyed),
        ]);
    }
    if profile.shows(Group::Runs) {
        tools.extend([
            entry::<start_run::StartRun>(keyed),
            entry::<run_result::RunResult>(keyed),
            entry::<stop_run::StopRun>(keyed),
            task_entry::<review_changes::ReviewChanges>(keyed),
        ]);
    }
    if profile.shows(Group::Spawn) {
        tools.extend([entry::<spawn_agent::SpawnAgent>(keyed), entry::<release_agent::ReleaseAgent>(keyed)]);
    }
    if profile.shows(Group::Asks) {
        tools.extend([entry::<ask_user::AskUser>(keyed)]);
    }
    if profile.shows(Group::Channels) {
        tools.extend([entry::<channels::Channels>(keyed)]);
    }
    if profile.shows(Group::Codex) {
        tools.extend([
            entry::<codex::Codex>(keyed),
            entry::<codex::CodexReply>(keyed),
            entry::<codex_threads::CodexThreads>(keyed),
            entry::<codex_threads::CodexStatus>(keyed),
            entry::<pending::RelayPending>(keyed),
        ]);
    }
    if profile.shows(Group::Subagents) {
        tools.extend([entry::<ask_agent::AskAgent>(keyed), entry::<ask_agent::AskAgentReply>(keyed)]);
    }
    if profile.shows(Group::Atm) {
        tools.extend([
            entry::<atm::AtmSend>(keyed),
            entry::<atm::AtmRead>(keyed),
            entry::<atm::AtmBroadcast>(keyed),
            entry::<atm::AtmPendingCount>(keyed),
        ]);
    }
    if profile.shows(Group::Runners) {
        tools.extend([
            task_entry::<runner::ClaudeRun>(keyed),
            task_entry::<runner::CodexExec>(keyed),
            task_entry::<runner::GeminiRun>(keyed),
        ]);
    }
    tools
}

fn entry<T: Tool>(keyed: KeyArgument) -> (&'static str, ListedTool) {
    let mut input = schema::input::<T::Input>();
    match keyed {
        KeyArgument::Hidden => {}
        KeyArgument::Shown => {
            let properties = input.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                let key = json!({ "type": "string", "description": "from register_agent; says who you are" });
                properties.insert(KEY.to_owned(), key);
            }
        }
    }
    let annotations = ToolAnnotations::with_title(T::TITLE).destructive(false).open_world(false);
    let annotations = match T::EFFECT {
        Effect::Reads => annotations.read_only(true).idempotent(true),
        Effect::Settles => annotations.read_only(false).idempotent(true),
        Effect::Adds => annotations.read_only(false).idempotent(false),
    };
    let mut listing = rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, input).annotate(annotations);
    listing.title = Some(T::TITLE.to_owned());
    listing.output_schema = Some(schema::output::<T::Output>());
    (T::NAME, ListedTool { listing, run: run::<T>, begin: None })
}

fn task_entry<T: TaskTool>(keyed: KeyArgument) -> (&'static str, ListedTool) {
    let (name, tool) = entry::<T>(keyed);
    (name, ListedTool { begin: Some(begin::<T>), ..tool })
}

fn begin<T: TaskTool>(call: ToolCall, arguments: Value) -> BoxFuture<'static, Result<String, ToolError>> {
    Box::pin(async move {
        let input: T::Input = parse(arguments)?;
        T::begin(&call, input).await
    })
}

fn run<T: Tool>(call: ToolCall, arguments: Value) -> BoxFuture<'static, Result<ToolAnswer, ToolError>> {
    Box::pin(async move {
        let input: T::Input = parse(arguments)?;
        let ToolOutput { output, text, lease } = T::run(call, input).await?;
        let mut structured = serde_json::to_value(&output).expect("an output is a struct with keys that are text");
        make_harmless(&mut structured);
        Ok(ToolAnswer { structured, text, lease })
    })
}

/// Some clients show their model the structured output, where a peer's text stands outside of its envelope.
fn make_harmless(output: &mut Value) {
    match output {
        Value::String(text) => *text = mesh::harmless(text),
        Value::Array(items) => items.iter_mut().for_each(make_harmless),
        Value::Object(fields) => fields.values_mut().for_each(make_harmless),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn parse<I: DeserializeOwned + JsonSchema>(arguments: Value) -> Result<I, ToolError> {
    if let Ok(input) = serde_json::from_value(arguments.clone()) {
        return Ok(input);
    }
    let known: JsonObject = schema::input::<I>();
    let arguments = as_meant(arguments, &known);
    serde_json::from_value(arguments.clone()).map_err(|error| {
        let names: Vec<&str> = known
            .get("properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let next = match names.as_slice() {
            [] => "It takes no arguments.".to_owned(),
            names => format!("It takes {}.", names.join(", ")),
        };
        let wrong = in_plain_words(&error.to_string());
        ToolError::new(
            culprit::<I>(&arguments, &error).map_or(wrong.clone(), |name| format!("`{name}`: {wrong}")),
            next,
        )
    })
}

/// The invalid argument, if serde does not name it: the one whose removal changes or clears the error.
fn culprit<I: DeserializeOwned>(arguments: &Value, error: &serde_json::Error) -> Option<String> {
    let said = error.to_string();
    let names_it = ["missing field", "unknown field"].iter().any(|beginning| said.starts_with(beginning));
    let arguments = arguments.as_object().filter(|_| !names_it)?;
    let without = |name: &String| {
        let mut others = arguments.clone();
        others.remove(name);
        serde_json::from_value::<I>(Value::Object(others)).err().map(|error| error.to_string())
    };
    arguments.keys().find(|name| without(name).is_none_or(|other| other != said)).cloned()
}

/// Replaces the names of Rust's number types, which mean nothing to a model.
fn in_plain_words(said: &str) -> String {
    ["usize", "u64", "u32"].iter().fold(said.to_owned(), |said, number| {
        said.replace(&format!("expected {number}"), "expected a whole number that is not negative")
    })
}

/// A list. Models also write a single text instead, or the list as text.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "OneOrMany")]
struct List(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for List {
    fn from(list: OneOrMany) -> List {
        match list {
            OneOrMany::One(one) => List(serde_json::from_str(&one).unwrap_or_else(|_| vec![one])),
            OneOrMany::Many(many) => List(many),
        }
    }
}

impl JsonSchema for List {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "List".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<String>::json_schema(generator)
    }
}

/// For serde: a number that is left out if there is nothing to count.
fn is_zero(number: &usize) -> bool {
    *number == 0
}
