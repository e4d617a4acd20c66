//! Notifications by D-Bus, as Linux desktops take them.

use notify_rust::{Notification, Timeout};

use crate::host_functions::{HostResult, failed};
use crate::template::Surroundings;

/// Whether there is a session bus: checked first, because connecting may start one.
pub(super) fn has_desktop(surroundings: &Surroundings) -> bool {
    let variable = |name: &str| surroundings.environment.get(name).filter(|value| !value.is_empty());
    variable("DBUS_SESSION_BUS_ADDRESS").is_some()
        || variable("XDG_RUNTIME_DIR").is_some_and(|folder| std::path::Path::new(folder).join("bus").exists())
}

pub(super) async fn show(title: &str, body: &str) -> HostResult<()> {
    let mut notice = Notification::new();
    notice
        .appname("relay-mesh")
        .summary(&without_markup(title))
        .body(&without_markup(body))
        .timeout(Timeout::Milliseconds(10_000));
    notice.show_async().await.map(drop).map_err(failed)
}

/// Desktops obey some markup: it is shown as it is written instead.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown_and_not_obeyed() {
        assert_eq!(without_markup("<b>a</b> & b"), "&lt;b&gt;a&lt;/b&gt; &amp; b");
    }

    #[test]
    fn without_a_session_there_is_no_bus() {
        assert!(!has_desktop(&Surroundings::default()));
    }
}
