//! A component that loops forever when it is instantiated, before any call.

#[path = "../../nothing.rs"]
#[macro_use]
mod nothing;

use exports::relay::adapter::identity;

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "adapter", generate_all });

struct Eager;

/// The linker's constructor runs this, as for any static that a language sets up.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    loop {
        core::hint::black_box(0);
    }
}

impl identity::Guest for Eager {
    fn describe() -> identity::About {
        unreachable!("nobody gets here")
    }
}

does_nothing!(Eager);

export!(Eager);
