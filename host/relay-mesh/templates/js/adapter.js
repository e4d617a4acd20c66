// The {{title}} adapter. It only translates between {{title}}'s hooks and settings and the types of relay-mesh.
//
// README.md describes the harness; change both to match yours. The types are those of wit/, as componentize-qjs
// spells them: records and resources in camelCase, cases of enums and variants unchanged, a missing option as null.
// To return an error of the interface, throw `{ tag, val }`.

import files from "relay:adapter/files@0.1.0";
import programs from "relay:adapter/programs@0.1.0";
import state from "relay:adapter/state@0.1.0";

const NAME = "{{name}}";
const TITLE = "{{title}}";
// How much mail fits into one answer, in bytes.
const ROOM = 6_000;
// How often in a row our hook may keep a turn from ending.
const MOST_BLOCKS = 6;
const EVENTS = ["session-start", "prompt", "before-tool", "after-tool", "turn-end", "session-end"];
// The program in a project's settings, which a team commits: it holds nothing of one machine.
const COMMITTED_PROGRAM = "${RELAY_MESH_BIN:-relay-mesh}";
// By this key we match our file.
const MARK = "written-by";
// Refuse JSON that is nested more deeply than this: a recursive parser would run out of stack.
const DEEPEST = 200;

export const identity = telling({
    // Each session starts its own MCP server. If one server serves several sessions, say false.
    describe: () => ({ harness: NAME, title: TITLE, version: "0.1.0", aliases: [], connectionPerSession: true }),
});

export const sessions = telling({
    // The server's environment names the session that started it, which may have moved on, so it is inherited. Only
    // what this very call proves is certain.
    detect(seen) {
        const id = new Map(seen.environment).get("{{NAME}}_SESSION");
        return id ? { session: rootSession(id, seen.workdir ?? ""), certainty: "inherited" } : null;
    },
    discover() {
        throw unsupported(`${TITLE} keeps no list of its sessions`);
    },
    activityOf() {
        throw unsupported(`${TITLE} cannot be asked what a session does`);
    },
});

export const context = telling({
    // Passes the host's text on; the hooks of a session's start and after registration show it.
    protocol: (base) => base,
});

// Nothing wakes an idle session: mail waits for the next tool, the end of a turn, or until the agent reads it. If
// other programs can reach your harness (a socket, a command line, a file that it watches), say how here.
export const push = telling({
    routes: () => [],
    deliver(_to, route) {
        throw { tag: "not-found", val: `${TITLE} has no route named \`${route}\`` };
    },
    confirm: (_to, _route, sent) => sent,
});

// What the harness's own hooks mean, and how to answer them. The host gives the payload to `read`, looks up mail,
// protocol and reservations, and gives what it found to `answer`.
export const hooks = telling({
    read(call) {
        const payload = payloadOf(call);
        const session = rootSession(text(call, payload, "session"), text(call, payload, "cwd"));
        const does = (activity) => ({ tag: "activity", val: [session.id, activity] });
        const reading = {
            speaker: session, events: [], occasion: null, maxBytes: 0, attended: false, watchesWakeFile: false, edits: [],
        };
        switch (call.name) {
            case "session-start": {
                const resumed = text(call, payload, "source") === "resumed";
                clearAway();
                reading.events = [{ tag: "alive", val: session }, does("idle")];
                reading.occasion = resumed ? "resume" : "start";
                reading.maxBytes = ROOM;
                reading.attended = true;
                break;
            }
            case "prompt":
                reading.events = [does("busy")];
                // If our hook made this prompt of mail at the end of a turn, it is not the user's.
                if (!text(call, payload, "text").includes("<relay-mesh-message")) {
                    reading.events.push({ tag: "user-spoke", val: session.id });
                    reading.maxBytes = ROOM;
                    reading.attended = true;
                }
                break;
            case "before-tool": {
                // The host refuses an edit of a file that another agent has reserved.
                reading.events = [does("busy")];
                const file = payload.input?.file;
                if (payload.tool === "write" && typeof file === "string") {
                    reading.edits = [file.startsWith("/") ? file : `${session.workdir.replace(/\/$/, "")}/${file}`];
                }
                break;
            }
            case "after-tool":
                reading.events = [does("busy")];
                reading.maxBytes = ROOM;
                if (text(call, payload, "tool").endsWith("/register_agent")) {
                    reading.occasion = "registration";
                }
                break;
            case "turn-end":
                // Mail that waits now keeps the session going, a few times in a row.
                if (typeof payload.again !== "boolean") {
                    throw failed("the payload of turn-end has no flag `again`");
                }
                if (!payload.again) {
                    forget(blocks(session.id));
                }
                reading.events = [does("idle")];
                reading.maxBytes = count(blocks(session.id)) < MOST_BLOCKS ? ROOM : 0;
                break;
            case "session-end":
                forget(blocks(session.id));
                reading.speaker = null;
                reading.events = [{ tag: "ended", val: session.id }];
                break;
            default:
                throw unsupported(`${TITLE}'s hook \`${call.name}\` has no meaning for the mesh`);
        }
        return reading;
    },

    answer(call, found) {
        const mail = found.mail?.text ?? null;
        const says = {};
        let showsMail = false;
        switch (call.name) {
            case "session-start":
            case "prompt":
            case "after-tool": {
                const parts = [found.protocol, mail].filter(Boolean);
                if (parts.length > 0) {
                    says.context = parts.join("\n\n");
                }
                showsMail = Boolean(mail);
                break;
            }
            case "before-tool":
                if (found.refusal) {
                    says.refuse = found.refusal;
                }
                break;
            case "turn-end":
                if (mail) {
                    const key = blocks(text(call, payloadOf(call), "session"));
                    write(key, String(count(key) + 1));
                    says.continue = mail;
                    showsMail = true;
                }
                break;
        }
        const stdout = Object.keys(says).length > 0 ? JSON.stringify(says) : null;
        return { stdout, stderr: null, exitCode: 0, showsMail };
    },
});

// Sets the harness up for the mesh and removes the setup. Adapters plan the edits, the host makes them. {{title}}
// reads every file in `settings.d`, so ours is a file of its own and no other file changes.
export const install = telling({
    present() {
        let outcome;
        try {
            outcome = programs.run("version", [], new Uint8Array());
        } catch (error) {
            return noneIfNotFound(error);
        }
        const words = (fromUtf8(outcome.stdout) ?? "").split(/\s+/).filter(Boolean);
        return outcome.exitCode === 0 && words.length > 0 ? words.at(-1) : null;
    },

    propose(setup) {
        const { root, path } = place(setup.scope);
        const before = readText(root, path);
        if (before !== null && !isOurs(path, before)) {
            return { edits: [], nextSteps: [`${path} was not written by relay-mesh and stays; move it away by hand.`] };
        }
        const [after, step] = setup.action === "install"
            ? [settings(setup), `Start a new ${TITLE} session; one that runs knows nothing of the mesh.`]
            : [null, "Running sessions keep their connection to the mesh until they end."];
        if (before === after) {
            return { edits: [], nextSteps: [] };
        }
        return { edits: [{ root, path, before, after, executable: false }], nextSteps: [step] };
    },

    check(setup) {
        const { root, path } = place(setup.scope);
        const again = `run \`relay-mesh install ${NAME}\` again`;
        const finding = (severity, what, fix) => [{ severity, what, fix }];
        let found, ours;
        try {
            found = readText(root, path);
            ours = found !== null && isOurs(path, found);
        } catch (error) {
            return finding("broken", told(error).val, "correct the file, or delete it");
        }
        if (found === settings(setup)) {
            return finding("ok", `${path} has the server and all ${EVENTS.length} hooks`, null);
        }
        if (found === null) {
            return finding("broken", `there is no ${path}`, again);
        }
        if (ours) {
            return finding("warning", `${path} is of another install`, again);
        }
        return finding("broken", `${path} is not relay-mesh's`, `move it away, then ${again}`);
    },
});

// Wraps an interface so that its functions throw only errors of the interface.
function telling(functions) {
    const tells = (run) => (...given) => {
        try {
            return run(...given);
        } catch (error) {
            throw told(error);
        }
    };
    return Object.fromEntries(Object.entries(functions).map(([name, run]) => [name, tells(run)]));
}

// Turns anything thrown into an error of the interface. A host function's error has it as payload; whatever the
// engine throws is a defect of ours.
function told(error) {
    const found = error?.payload ?? error;
    return found?.tag ? found : failed(String(found?.message ?? found));
}

function noneIfNotFound(error) {
    if (told(error).tag === "not-found") {
        return null;
    }
    throw error;
}

function failed(sentence) {
    return { tag: "failed", val: sentence };
}

function unsupported(sentence) {
    return { tag: "unsupported", val: sentence };
}

function rootSession(id, workdir) {
    return { id, parent: null, workdir, process: null, routeHint: null };
}

// Parses JSON, unless it is nested too deeply.
function parsed(source) {
    if (isTooDeep(source)) {
        throw new SyntaxError("it is nested too deeply");
    }
    return JSON.parse(source);
}

// Whether brackets are nested more deeply than this. Skips strings.
function isTooDeep(source) {
    const [marks, ends] = [/["[\]{}]/g, /["\\]/g];
    let depth = 0;
    for (let mark = marks.exec(source); mark; mark = marks.exec(source)) {
        if (mark[0] !== '"') {
            depth += "[{".includes(mark[0]) ? 1 : -1;
            if (depth > DEEPEST) {
                return true;
            }
            continue;
        }
        let end;
        ends.lastIndex = marks.lastIndex;
        while ((end = ends.exec(source))?.[0] === "\\") {
            ends.lastIndex += 1;
        }
        if (!end) {
            break;
        }
        marks.lastIndex = ends.lastIndex;
    }
    return false;
}

function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function payloadOf(call) {
    let payload;
    try {
        payload = parsed(call.payload);
    } catch (error) {
        throw failed(`the payload of ${call.name} is not JSON: ${error.message}`);
    }
    if (!isObject(payload)) {
        throw failed(`the payload of ${call.name} is not a JSON object`);
    }
    return payload;
}

function text(call, payload, name) {
    const found = payload[name];
    if (typeof found !== "string") {
        throw failed(`the payload of ${call.name} has no text \`${name}\``);
    }
    return found;
}

// Every call may run on a fresh instance, so the host's state holds what must last.

function blocks(session) {
    return `blocks/${session}`;
}

function count(key) {
    const found = state.get(key);
    return found ? Number(fromUtf8(found)) : 0;
}

function write(key, value) {
    const next = value === null ? null : toUtf8(value);
    // Other processes run the same adapter at the same time: read again if one was faster.
    while (!state.swap(key, state.get(key), next));
}

function forget(key) {
    write(key, null);
}

// Sessions that ended without an event leave their count behind.
function clearAway() {
    state.keys("blocks/").slice(0, -200).forEach(forget);
}

function place(scope) {
    return scope === "project"
        ? { root: "project", path: ".{{name}}/settings.d/relay-mesh.json" }
        : { root: "config", path: "settings.d/relay-mesh.json" };
}

function readText(root, path) {
    let found;
    try {
        found = files.Root.open(root).read(path);
    } catch (error) {
        return noneIfNotFound(error);
    }
    const read = fromUtf8(found);
    if (read === null) {
        throw failed(`${path} is not UTF-8 text; convert it, or move it away`);
    }
    return read;
}

function isOurs(path, found) {
    let value;
    try {
        value = parsed(found);
    } catch (error) {
        const { line, column } = placeOf(error, found);
        throw failed(`${path}, line ${line}, column ${column}: ${error.message}`);
    }
    return isObject(value) && value[MARK] === "relay-mesh";
}

// Where a parser stopped: its message ends with the line and column, or has neither.
function placeOf(error, source) {
    const told = /<input>:(\d+):(\d+)/.exec(error.stack ?? "");
    if (told) {
        return { line: Number(told[1]), column: Number(told[2]) };
    }
    return { line: source.split("\n").length, column: 1 };
}

function settings(setup) {
    const committed = setup.scope === "project";
    let server;
    if (setup.server.tag === "http") {
        server = { url: setup.server.val, headers: { Authorization: "Bearer ${RELAY_MESH_TOKEN}" } };
    } else {
        const [program, ...args] = setup.server.val;
        server = { command: committed ? COMMITTED_PROGRAM : program, args };
        if (!committed && setup.environment.length > 0) {
            server.env = Object.fromEntries(setup.environment);
        }
    }
    const value = {
        [MARK]: "relay-mesh",
        mcpServers: { [setup.serverName]: server },
        hooks: Object.fromEntries(EVENTS.map((event) => [event, [{ command: hookLine(setup, event) }]])),
    };
    return `${JSON.stringify(value, null, 2)}\n`;
}

function hookLine(setup, event) {
    if (setup.scope === "project") {
        return `"${COMMITTED_PROGRAM}" hook ${NAME} ${event}`;
    }
    const variables = setup.environment.map(([name, value]) => `${name}=${quoted(value)}`);
    return [...variables, ...setup.program.map(quoted), "hook", NAME, event].join(" ");
}

// Quotes a word for a POSIX shell.
function quoted(word) {
    return `'${word.replaceAll("'", "'\\''")}'`;
}

// The engine has no TextDecoder and no TextEncoder; percent-encoding is UTF-8 too.

function fromUtf8(bytes) {
    try {
        return decodeURIComponent(Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""));
    } catch {
        return null;
    }
}

function toUtf8(source) {
    const encoded = encodeURIComponent(source).match(/%..|./g) ?? [];
    return Uint8Array.from(encoded, (unit) => unit.length === 3 ? parseInt(unit.slice(1), 16) : unit.charCodeAt(0));
}
