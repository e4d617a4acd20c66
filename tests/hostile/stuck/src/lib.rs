//! A component whose `describe` never returns, so the host stops it while it loads it.

#[path = "../../nothing.rs"]
#[macro_use]
mod nothing;

use exports::relay::adapter::identity;

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "adapter", generate_all });

struct Stuck;

impl identity::Guest for Stuck {
    fn describe() -> identity::About {
        loop {
            core::hint::black_box(0);
        }
    }
}

does_nothing!(Stuck);

export!(Stuck);
