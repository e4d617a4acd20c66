//! The protocol text for an agent: for each occasion that the adapter supports, its answer must contain the host's
//! whole text.

use std::io;

use mesh::ports::harness::{Harness as _, HarnessError, Occasion};

use crate::report::Check;
use crate::{Bench, is_fault};

/// Every occasion, with its word in fixtures.
pub(crate) const OCCASIONS: [(Occasion, &str); 4] = [
    (Occasion::Start, "start"),
    (Occasion::Registration, "registration"),
    (Occasion::Compaction, "compaction"),
    (Occasion::Resume, "resume"),
];

/// A text as the host would word it, with characters that a careless adapter gets wrong.
const BASE: &str = "You are `alice` in a mesh of agents.\n- \"Quotes\", \\back\\slashes, 100 % of {braces} and $SIGNS.\n- \
                    Zwölf Boxkämpfer 🥊 \u{2028}say <so>.\n\n";

/// The protocol text for every occasion, with and without an agent's name, short and long.
pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let stage = bench.scratch.stage()?;
    let name = &bench.scratch.manifest.name;
    let long = BASE.repeat(200);
    let mut checks = Vec::new();
    for (occasion, word) in OCCASIONS {
        let mut told = 0;
        let mut failure = None;
        for (base, agent) in [(BASE, Some("alice")), (BASE, None), (long.as_str(), Some("alice")), ("", None)] {
            let said = match stage.adapter().await {
                Ok(adapter) => adapter.protocol(base, occasion, agent).await,
                Err(error) => Err(error),
            };
            match said {
                // The first line says who the agent is; the server's instructions may say the rest.
                Ok(Some(text)) if text.contains(base) || base.lines().next() == Some(text.as_str()) => told += 1,
                Ok(Some(text)) => failure = Some(("the host's text, whole".to_owned(), text)),
                Ok(None) | Err(HarnessError::Unsupported(_)) => {}
                Err(error) if is_fault(name, &error) => {
                    failure = Some(("an answer".to_owned(), error.to_string()));
                }
                Err(error) => failure = Some(("the host's text, or nothing".to_owned(), error.to_string())),
            }
        }
        checks.push(match (failure, told) {
            (Some((expected, got)), _) => Check::failed(
                word,
                expected,
                got,
                "put the host's text into yours as it is, say its first line alone, or nothing",
            ),
            (None, 0) => Check::absent(word, "nothing is said"),
            (None, _) => Check::held(word, "the host's text, or who the agent is"),
        });
    }
    stage.close().await?;
    Ok(checks)
}
