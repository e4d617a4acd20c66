//! The Rust types of `wit/v0.1`, made by wit-bindgen. The crate's other modules re-export them for adapter
//! authors; this one is public only because [`crate::export!`] expands to paths in it.
//!
//! `wit` beside this crate's manifest is a link to `wit/v0.1` of the repository. Cargo follows it when it
//! packages the crate, so the published crate holds the contract and builds alone.
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
