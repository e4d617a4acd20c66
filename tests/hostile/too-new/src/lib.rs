//! A component for an interface that no host of today supports.

#[path = "../../nothing.rs"]
#[macro_use]
mod nothing;

use exports::relay::adapter::identity;

wit_bindgen::generate!({ path: "wit", world: "adapter", generate_all });

struct TooNew;

impl identity::Guest for TooNew {
    fn describe() -> identity::About {
        unreachable!("no host of today gets here")
    }
}

does_nothing!(TooNew);

export!(TooNew);
