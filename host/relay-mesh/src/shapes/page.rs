//! The page of the server: `ui --web`.

use serde::Serialize;

use crate::render::Show;

/// The address of the page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageShape {
    /// With a code that signs in one browser, once.
    pub(crate) address: String,
    /// Whether a browser was asked to open it.
    pub(crate) opened: bool,
}

impl Show for PageShape {
    fn text(&self) -> String {
        let what = if self.opened { "opened in your browser:" } else { "open this in a browser of this machine:" };
        format!("{what}\n{}\nit signs in one browser, once, within two minutes", self.address)
    }
}
