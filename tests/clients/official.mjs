// The official TypeScript SDK as a client that a test steers: one order per line on standard input,
// one answer per line on standard output.
//
//   node official.mjs ERA stdio PROGRAM ARGUMENT…      node official.mjs ERA http URL TOKEN
//
// Eras with a handshake are spoken by the first line of the SDK, the era without one by the second.

import { createInterface } from "node:readline";

const [era, transport, ...where] = process.argv.slice(2);
const modern = era === "2026-07-28";
const sdk = modern
  ? { ...(await import("@modelcontextprotocol/client")), ...(await import("@modelcontextprotocol/client/stdio")) }
  : {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    };

function open() {
  if (transport === "stdio") {
    const [command, ...args] = where;
    return new sdk.StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
  }
  const [url, token] = where;
  return new sdk.StreamableHTTPClientTransport(new URL(url), {
    requestInit: token ? { headers: { authorization: `Bearer ${token}` } } : {},
  });
}

// The SDK always asks for the newest era that it knows; a client of an older one asks for its own.
let agreed;
function ask_for(era, transport) {
  const note = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    agreed = version;
    note?.(version);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = era;
    return send(message, options);
  };
  return transport;
}

async function carry_out(client, order) {
  switch (order.do) {
    case "tools":
      return { tools: (await client.listTools()).tools };
    case "call": {
      const result = await client.callTool({ name: order.tool, arguments: order.arguments });
      return { result };
    }
    case "instructions":
      return { instructions: client.getInstructions() ?? null };
    default:
      throw new Error(`nobody taught this client to ${order.do}`);
  }
}

const fault = (error) => ({ error: { code: error.code ?? null, message: String(error.message ?? error) } });
const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

const options = modern ? { versionNegotiation: { mode: { pin: era } } } : {};
const client = new sdk.Client({ name: "official-typescript", version: "1.0.0" }, options);
try {
  await client.connect(modern ? open() : ask_for(era, open()));
  say({ connected: modern ? client.getNegotiatedProtocolVersion() : agreed });
} catch (error) {
  say(fault(error));
  process.exit(0);
}
for await (const line of createInterface({ input: process.stdin })) {
  say(await carry_out(client, JSON.parse(line)).catch(fault));
}
await client.close();
