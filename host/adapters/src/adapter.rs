//! One adapter: a component and its grants, as a [`Harness`] of the mesh. Every call gets its own instance, so that
//! no call can affect another.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use mesh::ports::harness::{
    About, ClientTraces, Delivered, Finding, Findings, Harness, HarnessError, HookCall, HookHost, Mail, Occasion,
    OptionalInterfaces, Plan, Reading, Reply, Route, Setup,
};
use mesh::sessions::{Activity, Caller, Detection, Session};
use tokio::sync::Semaphore;
use wasmtime::{Store, Trap, WasmBacktrace};

use crate::answers::{self, Excess, HostTexts};
use crate::bindings::AdapterPre;
use crate::bindings::relay::adapter::types;
use crate::bounds::Bounds;
use crate::cache::Compilation;
use crate::convert::{from_guest, to_guest};
use crate::engine::Machinery;
use crate::faults::{Fault, Faults, Recovery};
use crate::grants::Denied;
use crate::guest::{Guest, HostSide, Stopped};
use crate::host_functions;
use crate::instance::{Component, Instance, bounded};
use crate::optional::Exported;
use crate::session_process::Nameable;
use crate::ticker::{Begun, Meter, Running};

/// Concurrent calls of one adapter. Further ones wait.
const CONCURRENT: usize = 16;

/// A loaded adapter.
pub struct Adapter {
    about: About,
    pre: AdapterPre<Guest>,
    pub(crate) exported: Exported,
    machinery: Arc<Machinery>,
    pub(crate) host_side: Arc<HostSide>,
    faults: Arc<Faults>,
    turns: Semaphore,
    compilation: Compilation,
    // A std mutex: nothing is awaited while it is held.
    usage: Mutex<Usage>,
}

/// The highest usage of an adapter's calls since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of finished calls.
    pub calls: u64,
    /// Processor time of the slowest call, in microseconds.
    pub slowest_us: u64,
    /// The function that the slowest call called.
    pub slowest: &'static str,
    /// Memory of the most demanding call, in bytes.
    pub largest: usize,
}

/// What a successful call proves about an adapter that failed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// It works again.
    OfRecovery,
    /// Nothing: the call did no work.
    OfNothing,
}

impl Adapter {
    /// Loads a component and calls its `describe`. The answer must match the manifest's name, because the user gave the
    /// grants to that name.
    pub(crate) async fn load(
        pre: AdapterPre<Guest>,
        machinery: Arc<Machinery>,
        host_side: Arc<HostSide>,
        faults: Arc<Faults>,
        compilation: Compilation,
    ) -> Result<Adapter, HarnessError> {
        let unknown = About {
            harness: host_side.name.clone(),
            title: String::new(),
            version: String::new(),
            aliases: Vec::new(),
            connection_per_session: false,
        };
        let mut adapter = Adapter {
            about: unknown,
            exported: Exported::probe(pre.instance_pre()),
            pre,
            machinery,
            host_side,
            faults,
            turns: Semaphore::new(CONCURRENT),
            compilation,
            usage: Mutex::default(),
        };
        // A component of which only `describe` works has not recovered.
        let about = adapter
            .ask_for(Proof::OfNothing, "describe", |store, component| {
                Box::pin(async move { Ok(Ok(component.relay_adapter_identity().call_describe(store).await?)) })
            })
            .await?;
        if about.harness != adapter.host_side.name {
            return Err(HarnessError::Failed(format!(
                "the adapter `{}` says that it is for `{}`: its manifest must have the same name",
                adapter.host_side.name,
                host_functions::log::plain(&about.harness)
            )));
        }
        adapter.about = from_guest::about(about);
        Ok(adapter)
    }

    pub(crate) fn name(&self) -> &str {
        &self.host_side.name
    }

    fn bounds(&self) -> Bounds<'_> {
        Bounds(&self.host_side.name)
    }

    pub(crate) fn host_side(&self) -> &HostSide {
        &self.host_side
    }

    pub(crate) fn compilation(&self) -> Compilation {
        self.compilation
    }

    /// Makes one call on a fresh instance.
    pub(crate) async fn ask<T>(
        &self,
        verb: &'static str,
        call: impl for<'i> FnOnce(
            &'i mut Store<Guest>,
            &'i Component,
        ) -> BoxFuture<'i, wasmtime::Result<Result<T, types::Error>>>,
    ) -> Result<T, HarnessError> {
        self.ask_for(Proof::OfRecovery, verb, call).await
    }

    async fn ask_for<T>(
        &self,
        proof: Proof,
        verb: &'static str,
        call: impl for<'i> FnOnce(
            &'i mut Store<Guest>,
            &'i Component,
        ) -> BoxFuture<'i, wasmtime::Result<Result<T, types::Error>>>,
    ) -> Result<T, HarnessError> {
        let _turn = self.turn().await?;
        self.ask_now(proof, verb, call).await
    }

    /// A further question within a call that has its turn already: waiting for a second one could wait for itself.
    pub(crate) async fn ask_within_a_turn<T>(
        &self,
        verb: &'static str,
        call: impl for<'i> FnOnce(
            &'i mut Store<Guest>,
            &'i Component,
        ) -> BoxFuture<'i, wasmtime::Result<Result<T, types::Error>>>,
    ) -> Result<T, HarnessError> {
        self.ask_now(Proof::OfNothing, verb, call).await
    }

    async fn ask_now<T>(
        &self,
        proof: Proof,
        verb: &'static str,
        call: impl for<'i> FnOnce(
            &'i mut Store<Guest>,
            &'i Component,
        ) -> BoxFuture<'i, wasmtime::Result<Result<T, types::Error>>>,
    ) -> Result<T, HarnessError> {
        let _running = self.run()?;
        let mut instance = self.instance(verb).await?;
        let outcome = instance.call(call).await;
        self.account(verb, &instance);
        match proof {
            Proof::OfRecovery if outcome.is_ok() => self.recovered().await,
            Proof::OfRecovery | Proof::OfNothing => {}
        }
        self.judge(verb, outcome).await
    }

    /// The highest usage of its calls so far.
    pub fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self, verb: &'static str, instance: &Instance) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = instance.meter.total_us();
        usage.calls += 1;
        usage.largest = usage.largest.max(instance.store.data().memory());
        if spent >= usage.slowest_us {
            (usage.slowest_us, usage.slowest) = (spent, verb);
        }
    }

    /// The protocol text as far as the adapter may word it.
    fn fitting(&self, base: &str, told: Option<String>) -> Option<String> {
        match self.host_side.grants.answers() {
            None => told,
            Some(_) => answers::fitting_protocol(base, told, self.host_side.grants.has_own_words()),
        }
    }

    /// A reply as far as the adapter may give it; an error names what it may not say.
    fn permitted(&self, reply: Reply, texts: Option<HostTexts>) -> Result<Reply, HarnessError> {
        let grants = &self.host_side.grants;
        let (Some(declared), Some(texts)) = (grants.answers(), texts) else { return Ok(reply) };
        answers::check(reply, declared, &texts, |grant| grants.is_given(grant)).map_err(|excess| {
            let name = &self.host_side.name;
            HarnessError::Denied(match excess {
                Excess::NotGiven(kind) => {
                    Denied::NotGiven { adapter: name.clone(), grant: kind.grant() }.to_string()
                }
                Excess::OwnWords => {
                    let grant = answers::OWN_WORDS.to_owned();
                    Denied::NotGiven { adapter: name.clone(), grant }.to_string()
                }
                Excess::Undeclared(what) => format!(
                    "the adapter `{name}` answered the hook with {what}, which is neither the mesh's own text nor declared \
                     in `[grants.answers]` of its manifest"
                ),
                Excess::TooLong(bytes) => format!("the adapter `{name}` answered the hook with {bytes} bytes"),
            })
        })
    }

    /// Waits for a free slot; fails during the pause that follows repeated faults.
    async fn turn(&self) -> Result<(tokio::sync::SemaphorePermit<'_>, Begun), HarnessError> {
        let turn = self.turns.acquire().await.map_err(|error| HarnessError::Failed(error.to_string()))?;
        match self.faults.begin(self.host_side.machine.now()) {
            Ok(()) => Ok((turn, self.machinery.ticker.begin())),
            Err(milliseconds) => Err(HarnessError::Busy(u32::try_from(milliseconds).unwrap_or(u32::MAX))),
        }
    }

    /// Runs the epoch ticker until the return value is dropped.
    fn run(&self) -> Result<Running, HarnessError> {
        self.machinery
            .ticker
            .start()
            .map_err(|error| HarnessError::Failed(format!("no thread could be started to watch a guest: {error}")))
    }

    /// Makes a fresh instance. Guest code may run here already; it is bounded like any other.
    async fn instance(&self, verb: &'static str) -> Result<Instance, HarnessError> {
        let meter = Arc::new(Meter::default());
        let mut store = Guest::store(&self.machinery, &self.host_side, &meter);
        let made = Component::of(&self.pre, &mut store);
        let made = bounded(&meter, self.host_side.settings.longest_call, made).await;
        match made {
            Ok(component) => Ok(Instance { store, component, meter }),
            Err(error) => Err(self.fault(verb, &error).await),
        }
    }

    async fn judge<T>(
        &self,
        verb: &'static str,
        outcome: wasmtime::Result<Result<T, types::Error>>,
    ) -> Result<T, HarnessError> {
        match outcome {
            Ok(answer) => answer.map_err(from_guest::error),
            Err(error) => Err(self.fault(verb, &error).await),
        }
    }

    /// Ends the pause after repeated faults, for this process and for later ones.
    async fn recovered(&self) {
        match self.faults.clear() {
            Recovery::WasWell => {}
            Recovery::Recovered => {
                let name = &self.host_side.name;
                if let Err(error) = Faults::note_recovery(self.host_side.store.as_ref(), name).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(adapter = name.as_str(), error, "it was not noted that it answers again");
                }
            }
        }
    }

    /// Records that a guest was stopped, and gives the reason in one sentence.
    async fn fault(&self, verb: &'static str, error: &wasmtime::Error) -> HarnessError {
        let name = &self.host_side.name;
        let what = format!("the adapter `{name}` failed in `{verb}`: {}", sentence(error));
        let at = self.host_side.machine.now();
        let pause = self.faults.count(at);
        match error.downcast_ref::<WasmBacktrace>() {
            Some(frames) => tracing::error!(adapter = name.as_str(), pause, "{what}\n{frames}"),
            None => tracing::error!(adapter = name.as_str(), pause, "{what}: {error:#}"),
        }
        let noted = self.faults.note(self.host_side.store.as_ref(), name, Fault { at, what: what.clone() }).await;
        if let Err(error) = noted {
            tracing::warn!(adapter = name.as_str(), error = &error as &dyn std::error::Error, "a fault was not noted");
        }
        HarnessError::Failed(what)
    }
}

/// Why a guest was stopped, without the stack frames, which the log has.
fn sentence(error: &wasmtime::Error) -> String {
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        return stopped.to_string();
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => {
            let trap = trap.to_string();
            format!("it trapped: {}", trap.strip_prefix("wasm trap: ").unwrap_or(&trap))
        }
        None => {
            let root: &dyn std::error::Error = error.as_ref();
            let mut deepest = root;
            while let Some(source) = deepest.source() {
                deepest = source;
            }
            host_functions::log::plain(&deepest.to_string())
        }
    }
}

#[async_trait]
impl Harness for Adapter {
    fn about(&self) -> &About {
        &self.about
    }

    fn traces(&self) -> ClientTraces {
        self.host_side.traces.clone()
    }

    async fn detect(&self, seen: &Caller) -> Result<Option<Detection>, HarnessError> {
        let grants = &self.host_side.grants;
        let nameable = Nameable::by_caller(&grants.asker(), seen.transport);
        let mut seen = to_guest::caller(seen, grants.narrow(&seen.environment));
        // The tools are ours, so their arguments are for us: in them are the texts of messages.
        if grants.arguments().is_err() {
            seen.arguments = None;
        }
        let found = self.ask("detect", |store, component| {
            Box::pin(async move { component.relay_adapter_sessions().call_detect(store, &seen).await })
        });
        let found = found.await?.map(from_guest::detection).map(|found| nameable.detection(found));
        found.map(|found| self.bounds().detection(found)).transpose()
    }

    async fn discover(&self) -> Result<Vec<Session>, HarnessError> {
        let found = self.ask("discover", |store, component| {
            Box::pin(async move { component.relay_adapter_sessions().call_discover(store).await })
        });
        self.bounds().sessions(found.await?.into_iter().map(from_guest::session).collect())
    }

    async fn activity_of(&self, session: &str) -> Result<Activity, HarnessError> {
        let session = session.to_owned();
        let found = self.ask("activity-of", |store, component| {
            Box::pin(async move { component.relay_adapter_sessions().call_activity_of(store, &session).await })
        });
        Ok(from_guest::activity(found.await?))
    }

    async fn protocol(
        &self,
        base: &str,
        occasion: Occasion,
        agent: Option<&str>,
    ) -> Result<Option<String>, HarnessError> {
        let (for_guest, agent) = (base.to_owned(), agent.map(str::to_owned));
        let occasion = to_guest::occasion(occasion);
        let told = self.ask("protocol", |store, component| {
            Box::pin(async move {
                component.relay_adapter_context().call_protocol(store, &for_guest, occasion, agent.as_deref()).await
            })
        });
        Ok(self.fitting(base, told.await?))
    }

    async fn routes(&self, to: &Session) -> Result<Vec<Route>, HarnessError> {
        let to = to_guest::session(to);
        let found = self.ask("routes", |store, component| {
            Box::pin(async move { component.relay_adapter_push().call_routes(store, &to).await })
        });
        self.bounds().routes(found.await?.into_iter().map(from_guest::route).collect())
    }

    async fn deliver(&self, to: &Session, route: &str, mail: &Mail) -> Result<Delivered, HarnessError> {
        let (to, route, mail) = (to_guest::session(to), route.to_owned(), to_guest::mail(mail));
        let sent = self.ask("deliver", |store, component| {
            Box::pin(async move { component.relay_adapter_push().call_deliver(store, &to, &route, &mail).await })
        });
        self.bounds().delivered(from_guest::delivered(sent.await?))
    }

    async fn confirm(&self, to: &Session, route: &str, sent: &Delivered) -> Result<Delivered, HarnessError> {
        let (to, route, sent) = (to_guest::session(to), route.to_owned(), to_guest::receipt(sent));
        let seen = self.ask("confirm", |store, component| {
            Box::pin(async move { component.relay_adapter_push().call_confirm(store, &to, &route, &sent).await })
        });
        self.bounds().delivered(from_guest::delivered(seen.await?))
    }

    async fn present(&self) -> Result<Option<String>, HarnessError> {
        self.ask("present", |store, component| {
            Box::pin(async move { component.relay_adapter_install().call_present(store).await })
        })
        .await
    }

    async fn propose(&self, setup: &Setup) -> Result<Plan, HarnessError> {
        let setup = to_guest::setup(setup);
        let plan = self.ask("propose", |store, component| {
            Box::pin(async move { component.relay_adapter_install().call_propose(store, &setup).await })
        });
        self.bounds().plan(from_guest::plan(plan.await?))
    }

    async fn check(&self, setup: &Setup) -> Result<Vec<Finding>, HarnessError> {
        let setup = to_guest::setup(setup);
        let found = self.ask("check", |store, component| {
            Box::pin(async move { component.relay_adapter_install().call_check(store, &setup).await })
        });
        self.bounds().findings(found.await?.into_iter().map(from_guest::finding).collect())
    }

    fn optional(&self) -> OptionalInterfaces<'_> {
        Exported::of(self)
    }

    fn shows_notices(&self) -> bool {
        self.host_side.grants.notice().is_some()
    }

    fn put_notice(&self, hook: &str, reply: &mut Reply, notice: &str) -> bool {
        self.host_side.grants.notice().is_some_and(|answer| answers::put_notice(answer, hook, reply, notice))
    }

    async fn hook(&self, call: &HookCall, hook_host: &mut dyn HookHost) -> Result<Reply, HarnessError> {
        let payload = self.host_side.grants.answers().map(|_| call.payload.clone());
        let call = to_guest::hook_call(call, self.host_side.grants.narrow(&call.environment));
        let _turn = self.turn().await?;
        let mut instance = {
            let _running = self.run()?;
            self.instance("hook").await?
        };
        let again = call.clone();
        let reading: Reading = {
            let _running = self.run()?;
            let read = instance.call(|store, component| {
                Box::pin(async move { component.relay_adapter_hooks().call_read(store, &call).await })
            });
            let read = read.await;
            self.account("hook read", &instance);
            let reading = from_guest::reading(self.judge("hook read", read).await?);
            self.bounds().reading(Nameable::by_hook(&self.host_side.grants.asker()).reading(reading))?
        };
        // No guest code runs while the host reads the files, so the ticker is off too.
        let occasion = reading.occasion;
        let mut found: Findings = hook_host.look_up(reading).await;
        let _running = self.run()?;
        if let (Some(base), Some(occasion)) = (found.protocol.take(), occasion) {
            let (agent, occasion) = (found.agent.clone(), to_guest::occasion(occasion));
            let for_guest = base.clone();
            let told = instance.call(|store, component| {
                Box::pin(async move {
                    component.relay_adapter_context().call_protocol(store, &for_guest, occasion, agent.as_deref()).await
                })
            });
            found.protocol = self.fitting(&base, self.judge("hook protocol", told.await).await?);
        }
        let texts = payload.map(|payload| HostTexts {
            mail: found.mail.as_ref().map(|mail| mail.text.clone()),
            protocol: found.protocol.clone(),
            refusal: found.refusal.clone(),
            names: found.agent.iter().chain([&found.wake_file]).cloned().collect(),
            ticket: found.ticket.clone(),
            payload,
        });
        let found = to_guest::findings(&found);
        let answer = instance.call(|store, component| {
            Box::pin(async move { component.relay_adapter_hooks().call_answer(store, &again, &found).await })
        });
        let answer = answer.await;
        self.account("hook answer", &instance);
        // Only now: an adapter that reads well but always fails to answer counts a fault each time.
        if answer.is_ok() {
            self.recovered().await;
        }
        let reply = from_guest::reply(self.judge("hook answer", answer).await?);
        self.permitted(reply, texts)
    }
}
