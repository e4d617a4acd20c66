//! A test's handle on the fake host: it moves the clock, changes files and reads what the adapter did.

use std::marker::PhantomData;
use std::rc::Rc;

use super::fakes;
use crate::install::Plan;
use crate::log::Level;

/// The fake host of this thread. Made by [`Fakes::start`](super::Fakes::start).
#[derive(Debug)]
pub struct FakeHost {
    /// Keeps the handle on its thread, because the fakes are thread-local.
    thread: PhantomData<Rc<()>>,
}

impl FakeHost {
    pub(crate) fn of_this_thread() -> FakeHost {
        FakeHost { thread: PhantomData }
    }

    /// Advances the clock.
    pub fn advance(&self, milliseconds: u64) {
        fakes::with(|fakes| fakes.now += milliseconds);
    }

    /// The lines that the adapter has logged.
    pub fn log(&self) -> Vec<(Level, String)> {
        fakes::with(|fakes| fakes.log.clone())
    }

    /// The notices that the adapter has shown: title and body.
    pub fn notices(&self) -> Vec<(String, String)> {
        fakes::with(|fakes| fakes.notices.clone())
    }

    /// The keys in the adapter's state, in order.
    pub fn state_keys(&self) -> Vec<String> {
        fakes::with(|fakes| fakes.state.keys().cloned().collect())
    }

    /// A file's text; none if it does not exist or is not UTF-8.
    pub fn text(&self, root: &str, path: &str) -> Option<String> {
        fakes::with(|fakes| fakes.roots.get(root)?.get(path).cloned()).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// Every file under every root, as `root/path` and content, to compare before and after.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        fakes::with(|fakes| {
            let of_root = |(root, files): (&String, &std::collections::BTreeMap<String, Vec<u8>>)| {
                files.iter().map(|(path, bytes)| (format!("{root}/{path}"), bytes.clone())).collect::<Vec<_>>()
            };
            fakes.roots.iter().flat_map(of_root).collect()
        })
    }

    /// Writes a file, as the user or another program would.
    pub fn write(&self, root: &str, path: &str, content: impl Into<Vec<u8>>) {
        fakes::with(|fakes| fakes.roots.entry(root.to_owned()).or_default().insert(path.to_owned(), content.into()));
    }

    /// Applies a plan as the host does: if a file does not hold its edit's `before`, nothing changes and the
    /// error names the file.
    pub fn apply(&self, plan: &Plan) -> Result<(), String> {
        fakes::with(|fakes| {
            for edit in &plan.edits {
                let holds = fakes.roots.get(&edit.root).ok_or_else(|| {
                    let name = &edit.root;
                    format!("the plan edits the root `{name}`, which the test does not fake; add `.root(\"{name}\")` to the Fakes")
                })?;
                if holds.get(&edit.path).map(Vec::as_slice) != edit.before.as_deref().map(str::as_bytes) {
                    return Err(format!(
                        "{}/{} does not hold the `before` of its edit; plan from what the file holds now",
                        edit.root, edit.path
                    ));
                }
            }
            for edit in &plan.edits {
                let files = fakes.roots.entry(edit.root.clone()).or_default();
                match &edit.after {
                    Some(after) => files.insert(edit.path.clone(), after.clone().into_bytes()),
                    None => files.remove(&edit.path),
                };
            }
            Ok(())
        })
    }
}
