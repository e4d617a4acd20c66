//! What relay-mesh takes from other machines and brings to them: one connection over TLS, downloads that end, and
//! adapters in OCI registries.
//!
//! Nothing goes over the network in the clear; `http` reaches this machine alone. Every answer has a largest size and
//! every wait an end. What is named by a digest is compared with it before anybody sees it.

mod client;
mod connection;
mod digest;
pub mod oci;

pub use client::{Client, FetchError, Request, Response, host, target};
pub use connection::{ConnectError, Connector, is_loopback};
pub use digest::Digest;
