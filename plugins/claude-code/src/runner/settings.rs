//! The settings of a run: the user's own, without what they load into Claude Code.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::optional::runner::Reach;
use serde_json::{Map, Value};

/// What loads programs of others into Claude Code, and what only a terminal shows.
const EXTENSIONS: [&str; 12] = [
    "hooks",
    "enabledPlugins",
    "extraKnownMarketplaces",
    "pluginConfigs",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "statusLine",
    "subagentStatusLine",
    "fileSuggestion",
    "outputStyle",
    "agent",
];

/// The user's settings for a run with no extensions but `hooks`. The project's files add rules about permissions and
/// nothing else: whoever wrote the project could otherwise name programs that run outside of every guard.
pub(super) fn without_extensions(reach: Reach, hooks: Value) -> Result<Value, Error> {
    let mut settings = read("config", "settings.json")?;
    for name in EXTENSIONS {
        settings.remove(name);
    }
    let mut rules = Map::new();
    let mine = settings.remove("permissions");
    let mut add = |permissions: Option<Value>| {
        let Some(Value::Object(permissions)) = permissions else { return };
        for (kind, listed) in permissions {
            if applies(&kind, reach)
                && let Value::Array(listed) = listed
                && let Value::Array(all) = rules.entry(kind).or_insert_with(|| Value::Array(Vec::new()))
            {
                all.extend(listed);
            }
        }
    };
    add(mine);
    for path in [".claude/settings.json", ".claude/settings.local.json"] {
        add(read("project", path)?.remove("permissions"));
    }
    settings.insert("permissions".to_owned(), Value::Object(rules));
    if !hooks.is_null() {
        settings.insert("hooks".to_owned(), hooks);
    }
    Ok(Value::Object(settings))
}

/// Rules that narrow hold for every run; those that widen are the harness's own rules, for `work` and above.
fn applies(kind: &str, reach: Reach) -> bool {
    match kind {
        "deny" | "ask" => true,
        "allow" | "additionalDirectories" => match reach {
            Reach::Look | Reach::Edit => false,
            Reach::Work | Reach::Unguarded => true,
        },
        _ => false,
    }
}

fn read(root: &str, path: &str) -> Result<Map<String, Value>, Error> {
    let Some(text) = Root::open(root)?.read_text(path)? else { return Ok(Map::new()) };
    let document = Document::parse(Some(&text)).map_err(|broken| Error::Failed(format!("{path}, {broken}")))?;
    match document.get(&[]) {
        None => Ok(Map::new()),
        Some(Value::Object(settings)) => Ok(settings),
        Some(_) => Err(Error::Failed(format!("{path} holds no JSON object"))),
    }
}
