//! The Rust face of `wit/v0.1`, made by wasmtime's `bindgen!`. Only this crate sees these types:
//! [`crate::convert`] turns them into words of the mesh and back, by hand, once per direction.

wasmtime::component::bindgen!({
    path: "../../wit/v0.1",
    world: "relay:adapter/adapter",
    imports: { default: async | trappable },
    exports: { default: async },
    with: {
        "relay:adapter/files.root": crate::lent::files::OpenRoot,
        "relay:adapter/channels.channel": crate::lent::channels::OpenChannel,
    },
});

/// What a component exports besides where its harness runs commands.
pub(crate) mod further {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "relay:adapter/runs-commands",
        exports: { default: async },
        with: { "relay:adapter/types": crate::bindings::relay::adapter::types },
    });
}
