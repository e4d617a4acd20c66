//! Asks the user whether an agent may have another one started, if they have not allowed it before. The agent is started
//! by the process that takes the answer; if that is killed, by the next that looks.

use store::StoreError;

use crate::Mesh;
use crate::asks::ask::AskError;
use crate::asks::record::{Ask, AskKind, AskedBy, ConsentFor, NewAsk};
use crate::asks::retention::KEPT;
use crate::asks::{answer, list};
use crate::driven::WantedAgent;
use crate::ports::driver::UserAnswer;

impl Mesh {
    /// Asks the user about an agent that another one wants. Nobody waits: what comes of it is told by mail.
    pub async fn ask_about_agent(&self, by: AskedBy, wanted: WantedAgent, why: String) -> Result<Ask, AskError> {
        let new = NewAsk {
            reason: Some(why),
            by_mail: true,
            ..NewAsk::new(by, AskKind::Consent(ConsentFor::Spawn(Box::new(wanted))))
        };
        self.ask(new).await
    }

    /// The agents that the user has agreed to within a day and that nobody has started yet, with their questions. Does
    /// what the ends of other questions still set off, so that the server's round reads the questions only once.
    pub async fn agreed_agents(&self) -> Result<Vec<(Ask, WantedAgent)>, StoreError> {
        let now = self.core.machine.now();
        let is_open = |ask: &Ask| !ask.done && now.since(ask.over_since()) < KEPT;
        let asks = list::carried_out(self).await?.into_iter().filter(is_open);
        Ok(asks.filter_map(|ask| wanted(&ask).map(|wanted| (ask, wanted))).collect())
    }

    /// Tells the agent that wanted another one what came of it, and notes that it is done.
    pub async fn agent_was_started(&self, ask: &Ask, outcome: Result<&str, &str>) -> Result<(), StoreError> {
        if let Some(agent) = &ask.by.agent {
            let told = match outcome {
                Ok(name) => format!("Your user agreed: the agent `{name}` is here, and its first result comes to you."),
                Err(why) => format!("Your user agreed, but it could not be started: {why}."),
            };
            answer::mail(self, ask, agent, &told).await?;
        }
        answer::is_done(&self.core, ask).await
    }
}

/// What is to be started, if the user has agreed to it.
fn wanted(ask: &Ask) -> Option<WantedAgent> {
    match (&ask.what, ask.answer()) {
        (AskKind::Consent(ConsentFor::Spawn(wanted)), Some(UserAnswer::Allow)) => Some(wanted.as_ref().clone()),
        _ => None,
    }
}
