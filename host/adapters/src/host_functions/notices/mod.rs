//! Notifications on the user's desktop, if there is one.

#[cfg(not(target_os = "macos"))]
mod dbus;
#[cfg(any(target_os = "macos", test))]
#[cfg_attr(not(target_os = "macos"), expect(dead_code, reason = "elsewhere it is there for its test"))]
mod osascript;

use std::time::Duration;

use async_trait::async_trait;
#[cfg(not(target_os = "macos"))]
use dbus as system;
#[cfg(target_os = "macos")]
use osascript as system;

use super::rates::Use;
use super::{HostResult, within};
use crate::bindings::relay::adapter::notices::Host;
use crate::bindings::relay::adapter::types::Error;
use crate::guest::Guest;
use crate::template::Surroundings;

/// Limits of notices.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The longest wait for the desktop.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { timeout: Duration::from_secs(2) }
    }
}

/// The longest title and the longest body, in characters. A notice says that mail waits; it does not contain it.
const LONGEST: (usize, usize) = (80, 400);

impl Host for Guest {
    async fn show(&mut self, title: String, body: String) -> wasmtime::Result<HostResult<()>> {
        if let Err(error) = self.spend(Use::Notice) {
            return Ok(Err(error));
        }
        if let Err(denied) = self.host_side.grants.notices() {
            return Ok(Err(denied.into()));
        }
        if !system::has_desktop(&self.host_side.surroundings) {
            return Ok(Err(Error::Unsupported("there is no desktop session to notify".to_owned())));
        }
        Ok(show(self.host_side.settings.notices, &title, &body).await)
    }
}

/// Notices of the host itself.
#[derive(Clone, Debug)]
pub struct OwnNotices {
    /// Whether there is a desktop.
    has_desktop: bool,
}

impl OwnNotices {
    /// For a process with this environment.
    pub fn of(surroundings: &Surroundings) -> OwnNotices {
        OwnNotices { has_desktop: system::has_desktop(surroundings) }
    }
}

#[async_trait]
impl mesh::ports::desktop::Desktop for OwnNotices {
    async fn notice(&self, title: &str, body: &str) {
        if !self.has_desktop {
            return;
        }
        if let Err(error) = show(Settings::default(), title, body).await {
            tracing::debug!(?error, "the desktop shows no notice");
        }
    }
}

async fn show(settings: Settings, title: &str, body: &str) -> HostResult<()> {
    let (title, body) = (plain(title, LONGEST.0), plain(body, LONGEST.1));
    within(settings.timeout, "the desktop notification", system::show(&title, &body)).await
}

/// Text without control characters, cut to length.
fn plain(text: &str, longest: usize) -> String {
    text.chars().take(longest).filter(|character| *character == '\n' || !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_what_is_too_long_are_left_out() {
        assert_eq!(plain("a\u{7}b\nc\u{1b}[0m", 80), "ab\nc[0m");
        assert_eq!(plain("abc", 2), "ab");
    }
}
