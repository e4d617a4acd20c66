"""The plugin bundle: one folder that is a marketplace for Claude Code, Codex and Copilot CLI, with a plugin for each.

Hooks, servers and texts are what `relay-mesh install` writes into a project: the binary is asked, and nothing is written
here a second time. A project's files hold nothing of this machine, but for the program in Claude Code's hooks.
"""

import io
import json
import os
import shlex
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from archive import Entry, in_order
from errors import PackagingError
from release import Release, run

NAME = "relay-mesh"
# Ends each text that an install writes, so that an uninstall knows it. The harness itself removes a plugin.
MARK = "\n<!-- relay-mesh wrote this file "
YAML_MARK = "\n# relay-mesh wrote this file "
AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"
REGISTRY = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
# The program, by its name: each machine has it on its PATH, or says in RELAY_MESH_BIN where it is.
PROGRAM = "${RELAY_MESH_BIN:-relay-mesh}"

# By this a hook stands aside if one of an install runs for the same event.
OF_PLUGIN = "--plugin"


def build(release: Release) -> dict[str, bytes]:
    return {
        f"relay-mesh-plugins-{release.version}.zip": zipped(tree(release), release.epoch),
        "server.json": as_json(registry_entry(release)),
    }


def tree(release: Release) -> list[Entry]:
    """All files of the marketplace."""
    claude, codex = installed(release, "claude-code"), installed(release, "codex")
    files = {
        ".claude-plugin/marketplace.json": as_json(claude_marketplace(release)),
        ".agents/plugins/marketplace.json": as_json(codex_marketplace(release)),
        ".github/plugin/marketplace.json": as_json(copilot_marketplace(release)),
        "README.md": readme(release, ""),
        **below("claude-code", claude_plugin(release, claude)),
        **below("codex", codex_plugin(release, codex)),
        **below("agent-plugin", agent_plugin(release, claude)),
        **{f"{folder}/README.md": readme(release, text) for folder, text in ABOUT.items()},
        **release.own_licences(),
    }
    return [Entry(path, content) for path, content in files.items()]


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{path}": content for path, content in files.items()}


def installed(release: Release, harness: str) -> dict[str, str]:
    """What `relay-mesh install` writes into an empty project."""
    with tempfile.TemporaryDirectory() as home:
        project = Path(home, "project")
        project.mkdir()
        program = str(release.binary.resolve())
        # Where adapters are compiled to is no part of what is written, and need not be made anew for each harness.
        caches = {name: os.environ[name] for name in ("XDG_CACHE_HOME",) if name in os.environ}
        environment = {"HOME": home, "PATH": os.defpath, **caches}
        run([program, "install", harness, "--project", str(project), "--yes", "--json"], env=environment, cwd=project)
        files = {
            str(path.relative_to(project)): path.read_text() for path in project.rglob("*") if path.is_file()
        }
    # Only what runs may name the program's path.
    for path, text in files.items():
        if home in text or (program in text and path != ".claude/settings.local.json"):
            raise PackagingError(f"`install {harness}` wrote something of this machine into {path}")
    return files


def unmarked(text: str) -> bytes:
    """A text without the line by which an uninstall knows it."""
    for mark in (MARK, YAML_MARK):
        text = text.split(mark)[0]
    return (text.rstrip("\n") + "\n").encode()


def claude_plugin(release: Release, files: dict[str, str]) -> dict[str, bytes]:
    program = str(release.binary.resolve())
    hooks = json.loads(files[".claude/settings.local.json"])["hooks"]
    for hook in each(hooks):
        words = [hook["command"], *hook.pop("args")]
        if words.count(program) != 1:
            raise PackagingError(f"a hook of Claude Code runs {words[0]}, and not {program}")
        line = [f'"{PROGRAM}"' if word == program else shlex.quote(word) for word in words]
        hook["command"] = " ".join([*line, OF_PLUGIN])
    return {
        ".claude-plugin/plugin.json": as_json(identity(release)),
        ".mcp.json": files[".mcp.json"].encode(),
        "hooks/hooks.json": as_json({"description": "Presence, mail and reservations", "hooks": hooks}),
        "skills/relay-mesh/SKILL.md": unmarked(files[".claude/skills/relay-mesh/SKILL.md"]),
        "commands/relay-status.md": unmarked(files[".claude/commands/relay-status.md"]),
    }


def codex_plugin(release: Release, files: dict[str, str]) -> dict[str, bytes]:
    servers = tomllib.loads(files[".codex/config.toml"])["mcp_servers"]
    skill = ".codex/skills/relay-mesh"
    hooks = json.loads(files[".codex/hooks.json"])["hooks"]
    for hook in each(hooks):
        hook["command"] += f" {OF_PLUGIN}"
    return {
        ".codex-plugin/plugin.json": as_json({
            **identity(release),
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "hooks": "./hooks/hooks.json",
            "interface": {
                "displayName": NAME,
                "shortDescription": release.project.summary,
                "developerName": author(release)["name"],
                "category": "Productivity",
            },
        }),
        ".mcp.json": as_json({"mcpServers": servers}),
        "hooks/hooks.json": as_json({"hooks": hooks}),
        "skills/relay-mesh/SKILL.md": unmarked(files[f"{skill}/SKILL.md"]),
        "skills/relay-mesh/agents/openai.yaml": unmarked(files[f"{skill}/agents/openai.yaml"]),
    }


def agent_plugin(release: Release, files: dict[str, str]) -> dict[str, bytes]:
    """For every client of Agent Plugins 1.0, which has no hooks. Copilot CLI is one."""
    (server,) = json.loads(files[".mcp.json"])["mcpServers"].values()
    # A command is a bare name there, and no variable is expanded in it.
    portable = {"type": "stdio", "command": NAME, "args": server["args"]}
    return {
        "plugin.json": as_json({
            "$schema": f"{AGENT_PLUGINS}/plugin.schema.json",
            **identity(release),
        }),
        "mcp.json": as_json({"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": {NAME: portable}}),
        "skills/relay-mesh/SKILL.md": unmarked(files[".claude/skills/relay-mesh/SKILL.md"]),
    }


KEYWORDS = ["agents", "messaging", "mcp", "coordination"]


def identity(release: Release) -> dict:
    """What every manifest says of the plugin."""
    return {
        "name": NAME,
        "version": release.version,
        "description": release.project.summary,
        "author": author(release),
        "homepage": release.project.homepage,
        "license": "MIT OR Apache-2.0",
        "keywords": KEYWORDS,
    }


def each(hooks: dict) -> Iterator[dict]:
    """The hooks of all events: both harnesses keep them in groups."""
    return (hook for groups in hooks.values() for group in groups for hook in group["hooks"])


def author(release: Release) -> dict[str, str]:
    name, _, address = release.project.maintainer.partition(" <")
    return {"name": name, "email": address.rstrip(">")}


def claude_marketplace(release: Release) -> dict:
    return {
        "name": NAME,
        "owner": author(release),
        "description": release.project.summary,
        "plugins": [{"name": NAME, "source": "./claude-code", "description": release.project.summary}],
    }


def codex_marketplace(release: Release) -> dict:
    return {
        "name": NAME,
        "interface": {"displayName": NAME},
        "plugins": [{
            "name": NAME,
            "source": {"source": "local", "path": "./codex"},
            "policy": {"installation": "AVAILABLE", "authentication": "ON_USE"},
            "category": "Productivity",
        }],
    }


def copilot_marketplace(release: Release) -> dict:
    return {
        "name": NAME,
        "owner": author(release),
        "metadata": {"description": release.project.summary, "version": release.version},
        "plugins": [{
            "name": NAME,
            "source": "./agent-plugin",
            "description": release.project.summary,
            "version": release.version,
        }],
    }


def registry_entry(release: Release) -> dict:
    """For the MCP Registry: where a client finds the server, and how it starts it."""
    def package(registry: str, runtime: str) -> dict:
        return {
            "registryType": registry,
            "identifier": NAME,
            "version": release.version,
            "runtimeHint": runtime,
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "mcp"}],
        }

    return {
        "$schema": REGISTRY,
        "name": release.project.mcp_name,
        "title": NAME,
        "description": release.project.summary,
        "websiteUrl": release.project.homepage,
        "version": release.version,
        "packages": [package("npm", "npx"), package("pypi", "uvx")],
    }


# What each plugin brings, for its own README.
ABOUT = {
    "claude-code": """This is the plugin for Claude Code: the MCP server, hooks that show mail and wake an idle session, \
a skill and the command `/relay-mesh:relay-status`.
""",
    "codex": """This is the plugin for Codex: the MCP server, hooks that show mail, and a skill. Codex asks you to review \
the hooks when it starts.
""",
    "agent-plugin": """This is the plugin for every client of Agent Plugins 1.0, such as Copilot CLI: the MCP server and a \
skill. Such a client runs no hooks of ours, so its agent reads mail with `fetch_messages`.
""",
}


def readme(release: Release, about: str) -> bytes:
    return f"""# relay-mesh

{release.project.summary}: messages, presence and reservations of files, between Claude Code, Codex and any other client
of MCP, on one machine or several.

{about or FOLDER}
The program `relay-mesh` has to be on your PATH. Nothing leaves your machine unless you set that up.
""".encode()


FOLDER = """This folder is a marketplace. PATH is where it is:

| client | add the plugin |
|---|---|
| Claude Code | `claude plugin marketplace add PATH`, then `claude plugin install relay-mesh@relay-mesh` |
| Codex | `codex plugin marketplace add PATH`, then `codex plugin add relay-mesh@relay-mesh` |
| Copilot CLI | `copilot plugin marketplace add PATH`, then `copilot plugin install relay-mesh@relay-mesh` |
| any other client of Agent Plugins 1.0 | name the folder `agent-plugin` |
"""


def as_json(value: dict) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def zipped(entries: list[Entry], epoch: int) -> bytes:
    packed = io.BytesIO()
    # The format has no time before 1980, and no time zone.
    moment = max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in in_order(entries):
            info = zipfile.ZipInfo(entry.path, moment)
            info.create_system = 3
            info.external_attr = (0o100000 | entry.mode()) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.content)
    return packed.getvalue()
