//! A pair of harnesses: one asks, the other one is idle, is woken and answers.

use serde_json::json;
use test_support::{Client, DeliveryHistory, Heard, Script, id_of};

/// Who asks whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// Who sends first.
    pub(crate) asker: Client,
    /// Who is idle until then.
    pub(crate) asked: Client,
}

impl Pair {
    /// Every ordered pair.
    pub(crate) fn all() -> impl Iterator<Item = Pair> {
        let others = |asker| Client::ALL.into_iter().filter(move |asked| *asked != asker);
        Client::ALL.into_iter().flat_map(move |asker| others(asker).map(move |asked| Pair { asker, asked }))
    }

    /// What the asker's person says.
    pub(crate) fn order(self) -> String {
        format!("Please write to {}.", self.asked.name())
    }

    /// What the asker writes.
    pub(crate) fn question(self) -> String {
        format!("Question from {} to {}", self.asker.name(), self.asked.name())
    }

    /// What the asked one replies.
    pub(crate) fn answer(self) -> String {
        format!("Answer from {} to {}", self.asked.name(), self.asker.name())
    }

    /// The question's id, by what its recipient was told.
    pub(crate) fn id_of_the_question(self, woken: &Heard) -> String {
        id_of(&woken.news(), &self.question())
    }

    /// The pair's row in the table.
    pub(crate) fn row(self, history: &DeliveryHistory, duplicates: usize) -> [String; 5] {
        let took = history
            .between("stored", "accepted")
            .or_else(|| history.between("stored", "shown"))
            .map_or_else(|| "-".to_owned(), |time| time.as_millis().to_string());
        [
            format!("{} → {}", self.asker.name(), self.asked.name()),
            history.carried_by().unwrap_or_else(|| "-".to_owned()),
            took,
            duplicates.to_string(),
            history.statuses().join(" "),
        ]
    }
}

/// The part of one harness in all pairs.
pub(crate) fn part(client: Client) -> Script {
    let joins = Script::new().call("Join the mesh", &client.tool("register_agent"), json!({"name": client.agent()}));
    Pair::all().fold(joins, |script, pair| {
        if pair.asker == client {
            let question = json!({"to": pair.asked.agent(), "body": pair.question()});
            script.call(&pair.order(), &client.tool("send_message"), question).say(&pair.answer(), "Thank you.")
        } else if pair.asked == client {
            let reply = move |news: &str| {
                let id = id_of(news, &pair.question());
                json!({"to": pair.asker.agent(), "body": pair.answer(), "reply_to": id})
            };
            script.call_with(&pair.question(), &client.tool("send_message"), reply)
        } else {
            script
        }
    })
}

/// The rows as a table, and below it what was lost.
pub(crate) fn table(rows: &[[String; 5]], lost: usize) -> String {
    let head = ["pair", "route", "ms from stored to handed over", "duplicates", "history"].map(str::to_owned);
    let width = |column: usize| {
        std::iter::once(&head).chain(rows).map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = std::iter::once(&head).chain(rows).map(line).collect();
    lines.push(format!("lost: {lost}"));
    lines.join("\n")
}
