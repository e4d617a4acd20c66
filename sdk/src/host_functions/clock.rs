//! The host's clock.

/// Milliseconds since the Unix epoch by the host's clock. In a native test the clock stands still until
/// the test moves it.
pub fn now() -> u64 {
    #[cfg(target_arch = "wasm32")]
    return crate::bindings::relay::adapter::clock::now();
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| fakes.now);
}
