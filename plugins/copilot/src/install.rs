//! What an uninstall leaves: the plugin of a marketplace, which users add by Copilot's own commands. Nothing else of ours is
//! installed there.

use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Scope, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::{Error, Install};
use serde_json::Value;

use crate::Copilot;

/// The plugin's name; its marketplace follows it.
const PLUGIN: &str = "relay-mesh@";

impl Install for Copilot {
    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        if setup.scope == Scope::User
            && let Some(id) = plugin()?
        {
            draft.next_step(format!(
                "Copilot CLI has relay-mesh as the plugin `{id}`, which it removes itself: copilot plugin uninstall {id}"
            ));
        }
        Ok(())
    }
}

/// The plugin that is switched on, as `relay-mesh@MARKETPLACE`. Copilot keeps one that is switched off on its list.
fn plugin() -> Result<Option<String>, Error> {
    let text = Root::open("config")?.read_text("settings.json")?;
    // Copilot itself complains of a file that does not parse.
    let Ok(settings) = Document::parse(text.as_deref()) else { return Ok(None) };
    let enabled = settings.get(&["enabledPlugins"]);
    let enabled = enabled.as_ref().and_then(Value::as_object).into_iter().flatten();
    let mut ours = enabled.filter(|(id, is_on)| id.starts_with(PLUGIN) && **is_on == Value::Bool(true));
    Ok(ours.next().map(|(id, _)| id.clone()))
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::install::Action;
    use relay_mesh_sdk::testing::{Fakes, carry_out, setup};

    use super::*;

    fn removed(machine: Fakes, scope: Scope) -> String {
        carry_out::<Copilot>(&machine.start(), &setup(Action::Remove, scope))
    }

    /// As Copilot CLI 1.0.102 writes it, with a comment of its user.
    #[test]
    fn a_plugin_is_left_to_copilot_as_long_as_it_is_switched_on() {
        let settings = |is_on: bool| {
            let others = r#""extraKnownMarketplaces": {}, "enabledPlugins": {"other@here": true, "#;
            let text = format!("// mine\n{{{others}\"relay-mesh@here\": {is_on}}}}}\n");
            Fakes::default().file("config", "settings.json", text)
        };
        let expected = "--> Copilot CLI has relay-mesh as the plugin `relay-mesh@here`, which it removes itself: copilot \
                        plugin uninstall relay-mesh@here\n";
        assert_eq!(removed(settings(true), Scope::User), expected);
        assert_eq!(removed(settings(true), Scope::Project), "");
        assert_eq!(removed(settings(false), Scope::User), "");
        for text in ["", "{", "[]", "{\"enabledPlugins\": [\"relay-mesh@here\"]}"] {
            assert_eq!(removed(Fakes::default().file("config", "settings.json", text), Scope::User), "", "{text}");
        }
        assert_eq!(removed(Fakes::default().root("config"), Scope::User), "", "it was never started");
    }
}
