//! The shape of an answer: a JSON schema, checked here whatever a harness promises. Nothing is fetched for it.

use jsonschema::Validator;
use mesh::ports::runner::RunOutcome;
use mesh::runs::{SchemaCheck, fenced_json};
use serde_json::Value;

use crate::errors::Explain;
use crate::exit::Exit;

/// How many reasons are told of an answer that does not fit.
const REASONS: usize = 5;
/// The longest reason, in characters.
const LONGEST: usize = 300;

/// A schema that can be checked against.
pub(crate) struct AnswerSchema(Validator);

/// Why text is no schema.
#[derive(Debug, thiserror::Error)]
#[error("that is not a JSON schema: {0}")]
pub(crate) struct InvalidSchema(String);

impl Explain for InvalidSchema {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(
            "`--schema` takes a file with a JSON schema, or the schema itself; it may refer to nothing outside"
                .to_owned(),
        )
    }
}

impl AnswerSchema {
    pub(crate) fn of(schema: &Value) -> Result<AnswerSchema, InvalidSchema> {
        let is_schema = schema.is_object();
        if !is_schema {
            return Err(InvalidSchema("a schema of an answer is an object".to_owned()));
        }
        jsonschema::validator_for(schema).map(AnswerSchema).map_err(|error| InvalidSchema(shorten(&error.to_string())))
    }

    /// Parses and checks the text of a schema.
    pub(crate) fn parse(text: &str) -> Result<Value, InvalidSchema> {
        let schema: Value = serde_json::from_str(text).map_err(|error| InvalidSchema(error.to_string()))?;
        AnswerSchema::of(&schema)?;
        Ok(schema)
    }

    /// Whether what a harness answered has this shape.
    pub(crate) fn check(&self, outcome: &RunOutcome) -> SchemaCheck {
        let in_text = || outcome.answer.as_deref().and_then(fenced_json);
        let Some(value) = outcome.output.clone().or_else(in_text) else {
            return SchemaCheck::Misses("it holds no JSON".to_owned());
        };
        let reasons: Vec<String> = self
            .0
            .iter_errors(&value)
            .take(REASONS)
            .map(|error| {
                let at = error.instance_path().to_string();
                let said = shorten(&error.to_string());
                if at.is_empty() { said } else { format!("{at}: {said}") }
            })
            .collect();
        if reasons.is_empty() { SchemaCheck::Fits(value) } else { SchemaCheck::Misses(reasons.join("; ")) }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use mesh::ports::runner::Ending;
    use serde_json::json;

    use super::*;

    fn outcome(answer: Option<&str>, output: Option<Value>) -> RunOutcome {
        RunOutcome { answer: answer.map(str::to_owned), output, ..RunOutcome::of(Ending::Answered) }
    }

    #[test]
    fn an_answer_is_held_against_its_schema() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let shape = AnswerSchema::of(&schema).expect("a schema");
        let check = |answer, output, expected: &str| {
            let found = match shape.check(&outcome(answer, output)) {
                SchemaCheck::Fits(value) => format!("fits {value}"),
                SchemaCheck::Misses(why) => format!("misses {why}"),
                SchemaCheck::Free => "free".to_owned(),
            };
            assert!(found.contains(expected), "{found}");
        };
        check(None, Some(json!({"n": 1})), "fits {\"n\":1}");
        check(Some("```json\n{\"n\": 2}\n```"), None, "fits {\"n\":2}");
        check(Some("{\"n\": \"x\"}"), None, "misses /n: \"x\" is not of type");
        check(Some("{\"n\": 2}"), Some(json!({})), "\"n\" is a required property");
        check(Some("two"), None, "misses it holds no JSON");
        check(None, None, "misses it holds no JSON");
    }

    #[test]
    fn what_is_no_schema_is_refused_and_nothing_is_fetched() {
        for text in [
            "",
            "[]",
            "true",
            "{\"type\": 7}",
            "{\"$ref\": \"https://example.org/schema.json\"}",
            "{\"$ref\": \"file:///etc/passwd\"}",
        ] {
            assert!(AnswerSchema::parse(text).is_err(), "{text}");
        }
        assert!(AnswerSchema::parse("{\"type\": \"object\"}").is_ok());
    }
}
