//! Records what a run has seen of mail whose client was killed between its hand-over and a request to the model, for
//! the table of evidence: one line per kill, in the file of observations. A test run by hand records nothing.

use serde_json::json;

use crate::history::DeliveryHistory;
use crate::model::Model;
use crate::observations::note;
use crate::stage::Stage;
use crate::waiting::wait_or_show;

/// How an envelope says that its message may have been read before.
pub const REPEATED: &str = "repeated=\"perhaps\"";

/// What the same sender writes after the client was killed. It must not come first.
pub const AFTERWARDS: &str = "And mind the step";

/// A message whose client is killed before a request to its model held it.
pub struct Killed {
    harness: String,
    version: String,
    route: String,
    point: String,
    id: String,
    text: String,
    before: String,
    /// Its text had gone out.
    went_out: bool,
}

impl Killed {
    /// Call it after the kill. `route` is how the message was under way, `point` says in a few words what the client
    /// was doing.
    ///
    /// # Panics
    /// If a request held the message, or if its status says so.
    pub fn at(stage: &Stage, model: &Model, client: (&str, String), way: (&str, &str), mail: (&str, &str)) -> Killed {
        let killed = Killed::in_history(stage, model, client, way, mail);
        let settled = ["shown", "read", "acknowledged"].contains(&killed.before.as_str());
        assert!(!settled, "no request held it, and it is {}", killed.before);
        killed
    }

    /// The same where the message stood in the harness's own history of the session, which each later request holds.
    ///
    /// # Panics
    /// If a request held the message.
    pub fn in_history(
        stage: &Stage,
        model: &Model,
        client: (&str, String),
        way: (&str, &str),
        mail: (&str, &str),
    ) -> Killed {
        let ((harness, version), (route, point), (id, text)) = (client, way, mail);
        assert_eq!(model.times_told(text), 0, "no request held it");
        let before = DeliveryHistory::of(stage, id).statuses().last().cloned().unwrap_or_default();
        let went_out = before == "accepted";
        let [harness, route, point, id, text] = [harness, route, point, id, text].map(str::to_owned);
        Killed { harness, version, route, point, id, text, before, went_out }
    }

    /// For a message whose text was beside a prompt or a tool's result: nobody but the dead client knew it.
    #[must_use]
    pub fn went_out(self) -> Killed {
        Killed { went_out: true, ..self }
    }

    /// For a message that the harness kept as a prompt of the session: it is not put there again.
    #[must_use]
    pub fn kept(self) -> Killed {
        Killed { went_out: false, ..self }
    }

    /// Call it after the session was opened again: the message reaches the model, marked if it had gone out before.
    ///
    /// # Panics
    /// If it does not, comes twice without saying so, or does not become shown.
    pub fn comes_again(self, stage: &Stage, model: &Model) {
        let envelope = format!("<relay-mesh-message id=\"{}\"", self.id);
        let head = |from: &str| from.split('>').next().unwrap_or_default().to_owned();
        let heads = |told: &str| -> Vec<String> {
            // Codex escapes what its hooks say at a turn's end.
            let told = told.replace("&lt;", "<").replace("&gt;", ">");
            told.match_indices(&envelope).map(|(at, _)| head(&told[at..])).collect()
        };
        let look = || {
            let heard = model.heard().into_iter().map(|heard| heard.everything());
            heard.map(|told| (heads(&told), told)).find(|(heads, told)| !heads.is_empty() && told.contains(&self.text))
        };
        let show = || format!("{:?}", DeliveryHistory::of(stage, &self.id).statuses());
        let what = format!("{}, {}, {}: it comes again", self.harness, self.route, self.point);
        let (heads, told) = wait_or_show(&what, look, show);
        let unmarked = heads.iter().filter(|head| !head.contains(REPEATED)).count();
        if self.went_out {
            // What a harness had kept of the first time may stand before it.
            assert!(heads.iter().any(|head| head.contains(REPEATED)), "{what}, but is not marked: {told}");
        } else {
            assert_eq!((heads.len(), unmarked), (1, 1), "{what}: {told}");
        }
        assert!(unmarked <= 1, "{what} twice, unmarked: {told}");
        if let Some(second) = told.find(AFTERWARDS) {
            let first = told.find(&self.text).unwrap_or(usize::MAX);
            assert!(first < second, "{what} after a later message of the same sender: {told}");
        }
        for heard in model.heard().iter().map(|heard| heard.everything()) {
            assert!(!heard.contains(AFTERWARDS) || heard.contains(&self.text), "{what}, but a later one came first");
        }
        let after = DeliveryHistory::up_to(stage, &self.id, "shown").statuses().last().cloned().unwrap_or_default();
        let marked = if self.went_out { "yes" } else { "no" };
        note(&json!({"kill": {
            "harness": self.harness,
            "version": self.version,
            "route": self.route,
            "killed": self.point,
            "before": self.before,
            "after": after,
            "repeated": marked,
        }}));
    }
}
