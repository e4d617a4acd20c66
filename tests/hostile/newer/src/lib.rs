//! A component for a later 0.1, which uses a function that no host of today offers.

#[path = "../../nothing.rs"]
#[macro_use]
mod nothing;

use exports::relay::adapter::identity;

wit_bindgen::generate!({ path: "wit", world: "adapter", generate_all });

struct Newer;

impl identity::Guest for Newer {
    fn describe() -> identity::About {
        unreachable!("no host of today gets here at {}", relay::adapter::clock::tomorrow())
    }
}

does_nothing!(Newer);

export!(Newer);
