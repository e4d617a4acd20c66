//! Notifications on the person's desktop.

use crate::Error;

/// Shows one. Say who and that mail waits, never a message's text: others may see the screen.
/// Needs `grants.notices` in the manifest; [`Error::Unsupported`] where there is no desktop.
pub fn show(title: &str, body: &str) -> Result<(), Error> {
    #[cfg(target_arch = "wasm32")]
    return crate::bindings::relay::adapter::notices::show(title, body);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| {
        if !fakes.desktop {
            return Err(Error::Unsupported("there is no desktop".into()));
        }
        fakes.notices.push((title.to_owned(), body.to_owned()));
        Ok(())
    });
}
