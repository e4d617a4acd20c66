// Builds adapter.wasm: the component with adapter.toml inside, so that one file is enough.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { componentize } from "componentize-qjs";

const at = (name) => fileURLToPath(new URL(name, import.meta.url));
// The custom section of a component that holds its manifest.
const SECTION = Buffer.from("relay:adapter/manifest");

// A number in WebAssembly's encoding.
function leb128(number) {
    const out = [];
    do {
        const low = number % 128;
        number = Math.floor(number / 128);
        out.push(number > 0 ? low + 128 : low);
    } while (number > 0);
    return Buffer.from(out);
}

const { component } = await componentize({
    witPath: at("wit"),
    world: "adapter",
    jsSource: await readFile(at("adapter.js"), "utf8"),
    jsPath: at("adapter.js"),
    // The component imports nothing of WASI: an adapter has only the host functions of the interface.
    stubWasi: true,
    // The interface has no async functions, and hosts need not support any.
    sync: true,
});
const body = Buffer.concat([leb128(SECTION.length), SECTION, await readFile(at("adapter.toml"))]);
await writeFile(at("adapter.wasm"), Buffer.concat([component, Buffer.of(0), leb128(body.length), body]));
