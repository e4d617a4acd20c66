"""The {{title}} adapter. It only translates between {{title}}'s hooks and settings and the types of relay-mesh.

README.md describes the harness; change both to match yours. The types are those of wit/, as componentize-py spells
them; `componentize-py --wit-path wit --world adapter bindings .` writes them out for your editor.
"""

import json
import re

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import hooks, identity, install, push, sessions
from wit_world.imports import files, programs, state, types
from wit_world.imports.types import Activity, Error_Failed, Error_NotFound, Error_Unsupported, Occasion, Session

NAME = "{{name}}"
TITLE = "{{title}}"
# How much mail fits into one answer, in bytes.
ROOM = 6_000
# How often in a row our hook may keep a turn from ending.
MOST_BLOCKS = 6
EVENTS = ["session-start", "prompt", "before-tool", "after-tool", "turn-end", "session-end"]
# The program in a project's settings, which a team commits: it holds nothing of one machine.
COMMITTED_PROGRAM = "${RELAY_MESH_BIN:-relay-mesh}"
# By this key we match our file.
MARK = "written-by"


class Identity(exports.Identity):
    def describe(self) -> identity.About:
        # Each session starts its own MCP server. If one server serves several sessions, say False.
        return identity.About(NAME, TITLE, "0.1.0", aliases=[], connection_per_session=True)


class Sessions(exports.Sessions):
    def detect(self, seen: sessions.Caller) -> sessions.Detection | None:
        """The server's environment names the session that started it, which may have moved on, so it is inherited.
        Only what this very call proves is certain."""
        id = dict(seen.environment).get("{{NAME}}_SESSION")
        if not id:
            return None
        return sessions.Detection(root_session(id, seen.workdir or ""), sessions.Certainty.INHERITED)

    def discover(self) -> list[Session]:
        raise Err(Error_Unsupported(f"{TITLE} keeps no list of its sessions"))

    def activity_of(self, id: str) -> Activity:
        raise Err(Error_Unsupported(f"{TITLE} cannot be asked what a session does"))


class Context(exports.Context):
    def protocol(self, base: str, occasion: Occasion, agent: str | None) -> str | None:
        """Passes the host's text on; the hooks of a session's start and after registration show it."""
        return base


class Push(exports.Push):
    """Nothing wakes an idle session: mail waits for the next tool, the end of a turn, or until the agent reads it.
    If other programs can reach your harness (a socket, a command line, a file that it watches), say how here."""

    def routes(self, to: Session) -> list[push.Route]:
        return []

    def deliver(self, to: Session, route: str, mail: types.Mail) -> push.Receipt:
        raise Err(Error_NotFound(f"{TITLE} has no route named `{route}`"))

    def confirm(self, to: Session, route: str, sent: push.Receipt) -> push.Receipt:
        return sent


class Hooks(exports.Hooks):
    """What the harness's own hooks mean, and how to answer them. The host gives the payload to `read`, looks up
    mail, protocol and reservations, and gives what it found to `answer`."""

    def read(self, call: hooks.Call) -> hooks.Reading:
        payload = payload_of(call)
        session = root_session(text(call, payload, "session"), text(call, payload, "cwd"))

        def does(activity: Activity) -> hooks.Event:
            return hooks.Event_Activity((session.id, activity))

        reading = hooks.Reading(
            speaker=session, events=[], occasion=None, max_bytes=0, attended=False, watches_wake_file=False, edits=[]
        )
        match call.name:
            case "session-start":
                resumed = text(call, payload, "source") == "resumed"
                clear_away()
                reading.events = [hooks.Event_Alive(session), does(Activity.IDLE)]
                reading.occasion = Occasion.RESUME if resumed else Occasion.START
                reading.max_bytes, reading.attended = ROOM, True
            case "prompt":
                reading.events = [does(Activity.BUSY)]
                # If our hook made this prompt of mail at the end of a turn, it is not the user's.
                if "<relay-mesh-message" not in text(call, payload, "text"):
                    reading.events.append(hooks.Event_UserSpoke(session.id))
                    reading.max_bytes, reading.attended = ROOM, True
            case "before-tool":
                # The host refuses an edit of a file that another agent has reserved.
                reading.events = [does(Activity.BUSY)]
                arguments = payload.get("input")
                file = arguments.get("file") if isinstance(arguments, dict) else None
                if payload.get("tool") == "write" and isinstance(file, str):
                    reading.edits = [file if file.startswith("/") else f"{session.workdir.rstrip('/')}/{file}"]
            case "after-tool":
                reading.events, reading.max_bytes = [does(Activity.BUSY)], ROOM
                if text(call, payload, "tool").endswith("/register_agent"):
                    reading.occasion = Occasion.REGISTRATION
            case "turn-end":
                # Mail that waits now keeps the session going, a few times in a row.
                again = payload.get("again")
                if not isinstance(again, bool):
                    raise Err(Error_Failed("the payload of turn-end has no flag `again`"))
                if not again:
                    forget(blocks(session.id))
                reading.events = [does(Activity.IDLE)]
                reading.max_bytes = ROOM if count(blocks(session.id)) < MOST_BLOCKS else 0
            case "session-end":
                forget(blocks(session.id))
                reading.speaker, reading.events = None, [hooks.Event_Ended(session.id)]
            case other:
                raise Err(Error_Unsupported(f"{TITLE}'s hook `{other}` has no meaning for the mesh"))
        return reading

    def answer(self, call: hooks.Call, found: hooks.Findings) -> hooks.Reply:
        mail = found.mail.text if found.mail else None
        says: dict[str, str] = {}
        match call.name:
            case "session-start" | "prompt" | "after-tool":
                parts = [part for part in (found.protocol, mail) if part]
                if parts:
                    says["context"] = "\n\n".join(parts)
            case "before-tool":
                mail = None
                if found.refusal:
                    says["refuse"] = found.refusal
            case "turn-end":
                if mail:
                    session = text(call, payload_of(call), "session")
                    state_write(blocks(session), str(count(blocks(session)) + 1))
                    says["continue"] = mail
            case _:
                mail = None
        out = json.dumps(says, ensure_ascii=False) if says else None
        return hooks.Reply(stdout=out, stderr=None, exit_code=0, shows_mail=bool(mail))


class Install(exports.Install):
    """Sets the harness up for the mesh and removes the setup. Adapters plan the edits, the host makes them.
    {{title}} reads every file in `settings.d`, so ours is a file of its own and no other file changes."""

    def present(self) -> str | None:
        try:
            outcome = programs.run("version", [], b"")
        except Err as error:
            if isinstance(error.value, Error_NotFound):
                return None
            raise
        words = outcome.stdout.decode(errors="replace").split()
        return words[-1] if outcome.exit_code == 0 and words else None

    def propose(self, setup: install.Setup) -> install.Plan:
        root, path = place(setup.scope)
        before = read_text(root, path)
        if before is not None and not is_ours(root, path, before):
            return install.Plan([], [f"{path} was not written by relay-mesh and stays; move it away by hand."])
        match setup.action:
            case install.Action.INSTALL:
                after, step = settings(setup), f"Start a new {TITLE} session; one that runs knows nothing of the mesh."
            case install.Action.REMOVE:
                after, step = None, "Running sessions keep their connection to the mesh until they end."
        if before == after:
            return install.Plan([], [])
        return install.Plan([install.Edit(root, path, before, after, executable=False)], [step])

    def check(self, setup: install.Setup) -> list[install.Finding]:
        root, path = place(setup.scope)
        again = f"run `relay-mesh install {NAME}` again"
        try:
            found = read_text(root, path)
            ours = found is not None and is_ours(root, path, found)
        except Err as error:
            return [install.Finding(install.Severity.BROKEN, str(error.value.value), "correct the file, or delete it")]
        if found == settings(setup):
            return [install.Finding(install.Severity.OK, f"{path} has the server and all {len(EVENTS)} hooks", None)]
        if found is None:
            return [install.Finding(install.Severity.BROKEN, f"there is no {path}", again)]
        if ours:
            return [install.Finding(install.Severity.WARNING, f"{path} is of another install", again)]
        return [install.Finding(install.Severity.BROKEN, f"{path} is not relay-mesh's", f"move it away, then {again}")]


def root_session(id: str, workdir: str) -> Session:
    return Session(id, parent=None, workdir=workdir, process=None, route_hint=None)


def parsed(source: str) -> object:
    """Parses JSON, unless it is nested too deeply: the parser is recursive, and a component that runs out of stack
    traps."""
    depth = 0
    for token in re.findall(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', source):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
        if depth > 200:
            raise ValueError("it is nested too deeply")
    return json.loads(source)


def payload_of(call: hooks.Call) -> dict:
    try:
        payload = parsed(call.payload)
    except ValueError as error:
        raise Err(Error_Failed(f"the payload of {call.name} is not JSON: {error}")) from error
    if not isinstance(payload, dict):
        raise Err(Error_Failed(f"the payload of {call.name} is not a JSON object"))
    return payload


def text(call: hooks.Call, payload: dict, name: str) -> str:
    found = payload.get(name)
    if not isinstance(found, str):
        raise Err(Error_Failed(f"the payload of {call.name} has no text `{name}`"))
    return found


# Every call may run on a fresh instance, so the host's state holds what must last.


def blocks(session: str) -> str:
    return f"blocks/{session}"


def count(key: str) -> int:
    found = state.get(key)
    return int(found.decode()) if found else 0


def state_write(key: str, value: str | None) -> None:
    # Other processes run the same adapter at the same time: read again if one was faster.
    while not state.swap(key, state.get(key), value.encode() if value is not None else None):
        pass


def forget(key: str) -> None:
    state_write(key, None)


def clear_away() -> None:
    """Sessions that ended without an event leave their count behind."""
    for key in state.keys("blocks/")[:-200]:
        forget(key)


def place(scope: install.Scope) -> tuple[str, str]:
    match scope:
        case install.Scope.PROJECT:
            return "project", ".{{name}}/settings.d/relay-mesh.json"
        case install.Scope.USER:
            return "config", "settings.d/relay-mesh.json"


def read_text(root: str, path: str) -> str | None:
    try:
        with files.Root.open(root) as opened:
            return opened.read(path).decode()
    except Err as error:
        if isinstance(error.value, Error_NotFound):
            return None
        raise
    except UnicodeDecodeError as error:
        raise Err(Error_Failed(f"{path} is not UTF-8 text; convert it, or move it away")) from error


def is_ours(root: str, path: str, found: str) -> bool:
    try:
        value = parsed(found)
    except json.JSONDecodeError as error:
        raise Err(Error_Failed(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}")) from error
    except ValueError as error:
        raise Err(Error_Failed(f"{path}, line 1, column 1: {error}")) from error
    return isinstance(value, dict) and value.get(MARK) == "relay-mesh"


def settings(setup: install.Setup) -> str:
    committed = setup.scope == install.Scope.PROJECT
    match setup.server:
        case install.Server_Http(url):
            server: dict = {"url": url, "headers": {"Authorization": "Bearer ${RELAY_MESH_TOKEN}"}}
        case install.Server_Stdio(command):
            server = {"command": COMMITTED_PROGRAM if committed else command[0], "args": command[1:]}
            if not committed and setup.environment:
                server["env"] = dict(setup.environment)
    value = {
        MARK: "relay-mesh",
        "mcpServers": {setup.server_name: server},
        "hooks": {event: [{"command": hook_line(setup, event)}] for event in EVENTS},
    }
    return json.dumps(value, indent=2) + "\n"


def hook_line(setup: install.Setup, event: str) -> str:
    if setup.scope == install.Scope.PROJECT:
        return f'"{COMMITTED_PROGRAM}" hook {NAME} {event}'
    variables = [f"{name}={quoted(value)}" for name, value in setup.environment]
    return " ".join([*variables, *(quoted(word) for word in setup.program), "hook", NAME, event])


def quoted(word: str) -> str:
    """Quotes a word for a POSIX shell."""
    return "'" + word.replace("'", "'\\''") + "'"
