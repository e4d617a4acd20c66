//! The Rust face of `wit/v0.1`, made by wit-bindgen. Adapter authors meet these types under the
//! names that the crate's other modules give them; the module is public only because
//! [`crate::export!`] expands to paths in it.
//!
//! `wit` beside this crate's manifest is a link to `wit/v0.1` of the repository. Cargo follows it when it
//! packages the crate, so that the published one holds the contract and builds alone.
#![allow(missing_docs, reason = "wit-bindgen documents what the WIT documents and nothing else")]
#![allow(unsafe_code, reason = "generated code crosses the component boundary by raw pointers")]
#![allow(clippy::all, reason = "generated code")]

wit_bindgen::generate!({
    path: "wit",
    world: "relay:adapter/adapter",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "relay_mesh_sdk::bindings",
    additional_derives: [PartialEq],
    generate_all,
});

/// What an adapter exports besides whose harness runs commands.
pub mod further {
    wit_bindgen::generate!({
        path: "wit",
        world: "relay:adapter/runs-commands",
        pub_export_macro: true,
        export_macro_name: "export_commands",
        default_bindings_module: "relay_mesh_sdk::bindings::further",
        additional_derives: [PartialEq],
        with: { "relay:adapter/types@0.1.0": crate::bindings::relay::adapter::types },
    });
}
