//! The user's desktop, if there is one.

use async_trait::async_trait;

/// Shows notices. It never fails: a notice is not worth failing for.
#[async_trait]
pub trait Desktop: Send + Sync + 'static {
    /// Shows a notice, if there is a desktop. Returns soon in any case.
    async fn notice(&self, title: &str, body: &str);
}

/// No desktop.
pub(crate) struct NoDesktop;

#[async_trait]
impl Desktop for NoDesktop {
    async fn notice(&self, _: &str, _: &str) {}
}
