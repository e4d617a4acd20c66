// The {{title}} adapter: pure translation between {{title}}'s hooks and settings and the words of relay-mesh.
//
// What the harness does is described in README.md; change both to what yours does. The words are those of
// wit/, as componentize-qjs spells them: records and resources in camelCase, cases of enums and variants as
// they stand there, a missing option as null. An error of the interface is thrown, as `{ tag, val }`.

import files from "relay:adapter/files@0.1.0";
import programs from "relay:adapter/programs@0.1.0";
import state from "relay:adapter/state@0.1.0";

const NAME = "{{name}}";
const TITLE = "{{title}}";
// How much mail fits into one answer, in bytes.
const ROOM = 6_000;
// How often in a row the end of a turn may be put off.
const MOST_BLOCKS = 6;
const EVENTS = ["session-start", "prompt", "before-tool", "after-tool", "turn-end", "session-end"];
// How a project's settings, which a team commits, name the program: nothing of one machine stands there.
const COMMITTED_PROGRAM = "${RELAY_MESH_BIN:-relay-mesh}";
// By this key our file is known again.
const MARK = "written-by";
// JSON that is nested more deeply than this is nobody's: a parser that calls itself runs out of stack.
const DEEPEST = 200;

export const identity = telling({
    // Each session starts an MCP server of its own. Where one server serves several, say false.
    describe: () => ({ harness: NAME, title: TITLE, version: "0.1.0", aliases: [], connectionPerSession: true }),
});

export const sessions = telling({
    // The server's environment names the session that started it. That may be stale by now, so it is inherited;
    // only what this very call proves is certain.
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
    // The host's text goes where the hooks of a session's start and after registration put it.
    protocol: (base) => base,
});

// Nothing wakes an idle session: mail waits for the next tool, the end of a turn or a fetch. Where your harness
// can be called (a socket, a command line, a file that it watches), say how here.
export const push = telling({
    routes: () => [],
    deliver(_to, route) {
        throw { tag: "not-found", val: `${TITLE} has no route named \`${route}\`` };
    },
    confirm: (_to, _route, sent) => sent,
});

// What the harness's own hooks mean, and how they are answered: the host gives the payload to `read`, looks up
// mail, protocol and reservations, and gives what it found to `answer`.
export const hooks = telling({
    read(call) {
        const payload = payloadOf(call);
        const session = rootSession(text(call, payload, "session"), text(call, payload, "cwd"));
        const does = (activity) => ({ tag: "activity", val: [session.id, activity] });
        const reading = {
            speaker: session, events: [], moment: null, room: 0, attended: false, watchesBell: false, edits: [],
        };
        switch (call.name) {
            case "session-start": {
                const resumed = text(call, payload, "source") === "resumed";
                clearAway();
                reading.events = [{ tag: "seen", val: session }, does("idle")];
                reading.moment = resumed ? "resumed" : "session-start";
                reading.room = ROOM;
                reading.attended = true;
                break;
            }
            case "prompt":
                reading.events = [does("busy")];
                // A prompt that the end of a turn made of mail is no person's.
                if (!text(call, payload, "text").includes("<relay-mesh-message")) {
                    reading.events.push({ tag: "human-spoke", val: session.id });
                    reading.room = ROOM;
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
                reading.room = ROOM;
                if (text(call, payload, "tool").endsWith("/register_agent")) {
                    reading.moment = "registered";
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
                reading.room = count(blocks(session.id)) < MOST_BLOCKS ? ROOM : 0;
                break;
            case "session-end":
                forget(blocks(session.id));
                reading.speaker = null;
                reading.events = [{ tag: "ended", val: session.id }];
                break;
            default:
                throw unsupported(`${TITLE}'s hook \`${call.name}\` says nothing to the mesh`);
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

// Sets the harness up for the mesh and takes it out again. Adapters plan, the host acts. {{title}} reads every
// file in `settings.d`, so all of ours goes into a file of its own, and nobody's is touched.
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
            return { edits: [], nextSteps: [`${path} was not written by relay-mesh and is left; move it away by hand.`] };
        }
        const [after, step] = setup.action === "install"
            ? [settings(setup), `Start a new ${TITLE} session; one that runs knows nothing of the mesh.`]
            : [null, "Sessions that run already keep their connection to the mesh until they end."];
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
            return finding("broken", told(error).val, "mend the file, or delete it");
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

// An interface whose functions throw nothing but errors of the interface.
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

// What was thrown, as the interface names it: what a lent function answered is the payload of its error, and
// whatever the engine itself throws is a defect of ours.
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

// JSON, unless it is nested too deeply.
function parsed(source) {
    if (isTooDeep(source)) {
        throw new SyntaxError("it is nested too deeply");
    }
    return JSON.parse(source);
}

// Whether brackets lie in more than so many others. What lies between marks is skipped by the engine itself.
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
        throw failed(`the payload of ${call.name} is no object`);
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

// Every call may run on a fresh instance, so what must last goes to the host's state.

function blocks(session) {
    return `blocks/${session}`;
}

function count(key) {
    const found = state.get(key);
    return found ? Number(fromUtf8(found)) : 0;
}

function write(key, value) {
    const next = value === null ? null : toUtf8(value);
    // Other processes run the same adapter at the same time: read again where one was faster.
    while (!state.swap(key, state.get(key), next));
}

function forget(key) {
    write(key, null);
}

// Sessions that ended without a word leave their count behind.
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
        throw failed(`${path} is not text`);
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

// Where a parser stopped: it ends what it says of the place by line and column, or says nothing.
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

// A word as a POSIX shell takes it.
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
