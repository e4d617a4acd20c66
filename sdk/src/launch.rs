//! What the host is to start, of the words of the manifest: for a run, and for an agent that is driven.

pub use crate::bindings::relay::adapter::types::{
    Choice, Extensions, Installation, Launch, Reach, RunFile, StopSignal, StopStep,
};

impl Launch {
    /// A launch by the manifest's run or drive of this name, so far without options.
    pub fn of(run: &str) -> Launch {
        Launch {
            run: run.to_owned(),
            choices: Vec::new(),
            environment: Vec::new(),
            files: Vec::new(),
            stop: Vec::new(),
            without: Vec::new(),
        }
    }

    /// Adds an option of the manifest, with the values of its blanks.
    #[must_use]
    pub fn option<'v>(mut self, name: &str, values: impl IntoIterator<Item = &'v str>) -> Launch {
        let values = values.into_iter().map(str::to_owned).collect();
        self.choices.push(Choice { name: name.to_owned(), values });
        self
    }

    /// Adds an option with one value, if there is a value.
    #[must_use]
    pub fn option_if(self, name: &str, value: Option<impl AsRef<str>>) -> Launch {
        match value {
            Some(value) => self.option(name, [value.as_ref()]),
            None => self,
        }
    }

    /// Sets a variable that the manifest lists. `value` fills its blank; it is empty if there is none.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Launch {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Gives a file of the run's own folder, which a blank `{file:NAME}` names.
    #[must_use]
    pub fn file(mut self, name: &str, text: impl Into<String>) -> Launch {
        self.files.push(RunFile { name: name.to_owned(), text: text.into() });
        self
    }

    /// Adds a way of asking the program to stop, after those before it.
    #[must_use]
    pub fn stop(mut self, signal: StopSignal, grace_ms: u32) -> Launch {
        self.stop.push(StopStep { signal, grace_ms });
        self
    }

    /// Says what was asked for and cannot be kept, if it was asked for.
    #[must_use]
    pub fn without(mut self, was_asked: bool, clause: &str) -> Launch {
        self.without.extend(was_asked.then(|| clause.to_owned()));
        self
    }
}
