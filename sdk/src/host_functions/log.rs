//! Lines for the host's log.

pub use crate::bindings::relay::adapter::log::Level;

/// Writes one line. The macros [`debug!`](crate::debug), [`info!`](crate::info),
/// [`warn!`](crate::warn) and [`error!`](crate::error) format it.
pub fn write(level: Level, text: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::relay::adapter::log::write(level, text);
    #[cfg(not(target_arch = "wasm32"))]
    crate::testing::fakes::with(|fakes| fakes.log.push((level, text.to_owned())));
}

/// Logs a detail that helps to find a defect. Formats like [`std::format!`].
#[macro_export]
macro_rules! debug {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($text)*)) };
}

/// Logs what the user may want to know. Formats like [`std::format!`].
#[macro_export]
macro_rules! info {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($text)*)) };
}

/// Logs what may cause trouble later. Formats like [`std::format!`].
#[macro_export]
macro_rules! warn {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($text)*)) };
}

/// Logs what went wrong. Formats like [`std::format!`].
#[macro_export]
macro_rules! error {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($text)*)) };
}
