"""The official Python SDK as a client that a test steers: one order per line on standard input, one
answer per line on standard output.

    python official.py ERA stdio PROGRAM ARGUMENT…      python official.py ERA http URL TOKEN

The era `auto` asks for the newest one and takes what the server offers, as the SDK does by itself;
`legacy` shakes hands.
"""

import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError


def server(transport, where):
    """What the SDK connects to."""
    if transport == "stdio":
        return StdioServerParameters(command=where[0], args=where[1:], env=dict(os.environ))
    url, token = where
    return streamable_http_client(url, http_client=create_mcp_http_client({"authorization": f"Bearer {token}"}))


async def carry_out(client, order):
    """Does one order."""
    match order["do"]:
        case "tools":
            listed = await client.list_tools()
            return {"tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]}
        case "call":
            result = await client.call_tool(order["tool"], order["arguments"])
            return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}
        case "instructions":
            return {"instructions": client.instructions}
        case other:
            raise ValueError(f"nobody taught this client to {other}")


def fault(error):
    """An answer that says what went wrong."""
    code = error.error.code if isinstance(error, MCPError) else None
    return {"error": {"code": code, "message": str(error)}}


def say(answer):
    """Writes an answer."""
    print(json.dumps(answer), flush=True)


async def main():
    """Connects and does what it is told until its input ends."""
    era, transport, *where = sys.argv[1:]
    loop = asyncio.get_running_loop()
    async with Client(server(transport, where), mode=era) as client:
        say({"connected": client.protocol_version})
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            try:
                say(await carry_out(client, json.loads(line)))
            except MCPError as error:
                say(fault(error))


asyncio.run(main())
