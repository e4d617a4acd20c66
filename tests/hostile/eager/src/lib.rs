//! A component that runs for ever before anybody has called it: as it is instantiated.

#[path = "../../nothing.rs"]
#[macro_use]
mod nothing;

use exports::relay::adapter::identity;

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "adapter", generate_all });

struct Eager;

/// Run by the linker's own constructor, like any static that a language sets up.
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
