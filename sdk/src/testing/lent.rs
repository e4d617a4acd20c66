//! A test's hold on what it lent: the clock, the files, and what the adapter left behind.

use std::marker::PhantomData;
use std::rc::Rc;

use super::fakes;
use crate::install::Plan;
use crate::log::Level;

/// What was lent to this thread. Made by [`Fakes::lend`](super::Fakes::lend).
#[derive(Debug)]
pub struct Lent {
    /// What is lent belongs to one thread, and so does the hold on it.
    thread: PhantomData<Rc<()>>,
}

impl Lent {
    pub(crate) fn of_this_thread() -> Lent {
        Lent { thread: PhantomData }
    }

    /// Moves the clock on by so many milliseconds.
    pub fn advance(&self, milliseconds: u64) {
        fakes::with(|fakes| fakes.now += milliseconds);
    }

    /// Every line that the adapter logged so far.
    pub fn log(&self) -> Vec<(Level, String)> {
        fakes::with(|fakes| fakes.log.clone())
    }

    /// Every notice that it showed so far: title and body.
    pub fn notices(&self) -> Vec<(String, String)> {
        fakes::with(|fakes| fakes.notices.clone())
    }

    /// The keys that it keeps.
    pub fn state_keys(&self) -> Vec<String> {
        fakes::with(|fakes| fakes.state.keys().cloned().collect())
    }

    /// A file's text; none where it is not there or not text.
    pub fn text(&self, root: &str, path: &str) -> Option<String> {
        fakes::with(|fakes| fakes.roots.get(root)?.get(path).cloned()).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// Every file under every root, by `root/path`, for comparing before and after.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        fakes::with(|fakes| {
            let of_root = |(root, files): (&String, &std::collections::BTreeMap<String, Vec<u8>>)| {
                files.iter().map(|(path, bytes)| (format!("{root}/{path}"), bytes.clone())).collect::<Vec<_>>()
            };
            fakes.roots.iter().flat_map(of_root).collect()
        })
    }

    /// Writes a file, as a person or another program would.
    pub fn write(&self, root: &str, path: &str, content: impl Into<Vec<u8>>) {
        fakes::with(|fakes| fakes.roots.entry(root.to_owned()).or_default().insert(path.to_owned(), content.into()));
    }

    /// Applies a plan as the host does: every `before` must hold, or nothing is changed and the
    /// answer names the file.
    pub fn apply(&self, plan: &Plan) -> Result<(), String> {
        fakes::with(|fakes| {
            for edit in &plan.edits {
                let holds = fakes.roots.get(&edit.root).ok_or(format!("no root is named {}", edit.root))?;
                if holds.get(&edit.path).map(Vec::as_slice) != edit.before.as_deref().map(str::as_bytes) {
                    return Err(format!("{}/{} does not hold what the plan says", edit.root, edit.path));
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
