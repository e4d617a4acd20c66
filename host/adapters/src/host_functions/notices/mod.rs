//! Notifications on the user's desktop, if there is one.

use std::time::Duration;

use async_trait::async_trait;
use notify_rust::{Notification, Timeout};

use super::rates::Use;
use super::{HostResult, failed, within};
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
        if !has_desktop(&self.host_side.surroundings) {
            return Ok(Err(Error::Unsupported("there is no desktop session to notify".to_owned())));
        }
        let notice = notification(&title, &body);
        let shown = async { show(notice).await.map_err(failed) };
        Ok(within(self.host_side.settings.notices.timeout, "the desktop notification", shown).await)
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
        OwnNotices { has_desktop: has_desktop(surroundings) }
    }
}

#[async_trait]
impl mesh::ports::desktop::Desktop for OwnNotices {
    async fn notice(&self, title: &str, body: &str) {
        if !self.has_desktop {
            return;
        }
        let notice = notification(title, body);
        match tokio::time::timeout(Settings::default().timeout, show(notice)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the desktop shows no notice"),
            Err(_) => tracing::debug!("the desktop does not answer"),
        }
    }
}

/// macOS takes a notification by a call that returns at once.
async fn show(notice: Notification) -> notify_rust::error::Result<()> {
    #[cfg(not(target_os = "macos"))]
    return notice.show_async().await.map(drop);
    #[cfg(target_os = "macos")]
    return notice.show().map(drop);
}

fn notification(title: &str, body: &str) -> Notification {
    let mut notice = Notification::new();
    notice
        .appname("relay-mesh")
        .summary(&plain(title, LONGEST.0))
        .body(&plain(body, LONGEST.1))
        .timeout(Timeout::Milliseconds(10_000))
        .finalize()
}

/// Whether there is a desktop: that of macOS, or a session bus, which is looked for first because connecting may start
/// one.
fn has_desktop(surroundings: &Surroundings) -> bool {
    if cfg!(target_os = "macos") {
        return true;
    }
    let variable = |name: &str| surroundings.environment.get(name).filter(|value| !value.is_empty());
    variable("DBUS_SESSION_BUS_ADDRESS").is_some()
        || variable("XDG_RUNTIME_DIR").is_some_and(|folder| std::path::Path::new(folder).join("bus").exists())
}

/// Text without control characters, cut to length, with markup characters made harmless where desktops obey them.
fn plain(text: &str, longest: usize) -> String {
    let mut safe = String::new();
    for character in text.chars().take(longest) {
        match character {
            other if cfg!(target_os = "macos") && !other.is_control() => safe.push(other),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\n' => safe.push('\n'),
            other if other.is_control() => {}
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown_and_not_obeyed() {
        assert_eq!(plain("<b>a\u{7}</b> & b", 80), "&lt;b&gt;a&lt;/b&gt; &amp; b");
        assert_eq!(plain("abc", 2), "ab");
    }

    #[test]
    fn without_a_session_there_is_no_bus() {
        assert!(!has_desktop(&Surroundings::default()));
    }
}
