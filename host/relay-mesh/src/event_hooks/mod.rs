//! Carries out the user's event hooks: in a process that lives anyway, one at a time by a lock of the store.
//!
//! What a hook is and which events it is for are the mesh's (`mesh::event_hooks`). Here is what it does: a command under a
//! guard, a message, a signed request, a notice. No text of an event is ever part of a command: it comes in variables and
//! on standard input.

mod action;
mod carrier;
mod command;
mod import;
mod payload;
mod placeholder;
mod post;
mod queue;
mod sign;

pub(crate) use action::{Doing, attempt};
pub(crate) use carrier::Carrier;
pub(crate) use import::{ImportError, imported};
pub(crate) use payload::sample;
pub(crate) use post::WebhookUrl;
pub(crate) use sign::new_secret;
