//! The bindings of `wit/v0.1`, made by wasmtime's `bindgen!`. Only this crate sees these types: [`crate::convert`]
//! converts them to those of the mesh and back. An optional interface has its bindings in its own file
//! (`optional/`).

wasmtime::component::bindgen!({
    path: "wit",
    world: "relay:adapter/adapter",
    imports: { default: async | trappable },
    exports: { default: async },
    with: {
        "relay:adapter/files.root": crate::host_functions::files::OpenRoot,
        "relay:adapter/channels.channel": crate::host_functions::channels::OpenChannel,
    },
});
