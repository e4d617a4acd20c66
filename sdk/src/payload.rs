//! A hook's payload: JSON whose shape the harness owns, parsed once.

use serde_json::Value;

use crate::Error;
use crate::hooks::Call;

/// The fields of one payload. An error for a missing field, or one of another type, names the event.
///
/// ```
/// use relay_mesh_sdk::{hooks::Call, payload::Fields};
///
/// let call = Call::new("Stop", r#"{"session_id":"s1","again":true}"#);
/// let fields = Fields::of(&call)?;
/// assert_eq!(fields.required("session_id")?, "s1");
/// assert!(fields.flag("again")?);
/// assert_eq!(fields.optional("cwd"), None);
/// assert!(fields.required("cwd").is_err());
/// # Ok::<(), relay_mesh_sdk::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fields {
    event: String,
    value: Value,
}

impl Fields {
    /// Parses the payload of a call.
    pub fn of(call: &Call) -> Result<Fields, Error> {
        let value = serde_json::from_str(&call.payload)
            .map_err(|error| Error::Failed(format!("the payload of {} is not JSON: {error}", call.name)))?;
        Ok(Fields { event: call.name.clone(), value })
    }

    /// The whole payload.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// A text field; none if it is missing or empty.
    pub fn optional(&self, name: &str) -> Option<String> {
        self.value.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A text field that every payload of this event has.
    pub fn required(&self, name: &str) -> Result<String, Error> {
        let found = self.value.get(name).and_then(Value::as_str).map(str::to_owned);
        found.ok_or_else(|| Error::Failed(format!("the payload of {} has no text `{name}`", self.event)))
    }

    /// A boolean field that every payload of this event has.
    pub fn flag(&self, name: &str) -> Result<bool, Error> {
        let found = self.value.get(name).and_then(Value::as_bool);
        found.ok_or_else(|| Error::Failed(format!("the payload of {} has no flag `{name}`", self.event)))
    }
}

/// Makes a path absolute that may be relative to the session's folder.
///
/// ```
/// use relay_mesh_sdk::payload::absolute;
/// assert_eq!(absolute("src/a.rs", "/home/u/app/"), "/home/u/app/src/a.rs");
/// assert_eq!(absolute("/etc/hosts", "/home/u/app"), "/etc/hosts");
/// assert_eq!(absolute("C:\\a", "/home/u/app"), "C:\\a");
/// assert_eq!(absolute("a", ""), "a");
/// ```
pub fn absolute(path: &str, folder: &str) -> String {
    let is_absolute = path.starts_with('/') || path.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/");
    if is_absolute || folder.is_empty() { path.to_owned() } else { format!("{}/{path}", folder.trim_end_matches('/')) }
}

/// The files that a patch writes, moves or deletes, as the patch names them. The format is that of the tool
/// `apply_patch` of Codex and OpenCode.
///
/// ```
/// use relay_mesh_sdk::payload::files_in_patch;
/// let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-*** Delete File: no\n*** End Patch";
/// assert_eq!(files_in_patch(patch), ["src/a.rs", "src/b.rs"]);
/// ```
pub fn files_in_patch(patch: &str) -> Vec<String> {
    let heads = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let named = |line: &str| heads.iter().find_map(|head| line.trim_end().strip_prefix(head).map(str::to_owned));
    patch.lines().filter_map(named).collect()
}

/// Whether a text contains one of the host's envelopes. Then this mesh wrote the prompt, not the user.
pub fn carries_mail(text: &str) -> bool {
    text.contains("<relay-mesh-message")
}
