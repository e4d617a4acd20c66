// The relay-mesh connector: carries lines between OpenCode and `relay-mesh listen`, and does nothing
// else. OpenCode loads it by itself; `relay-mesh install opencode` wrote it and `relay-mesh uninstall
// opencode` takes it out.
//
// - It puts a ticket for the session into the arguments of the mesh's tools, so that the mesh knows
//   which session calls.
// - It wakes an idle session when a message comes, as the same agent and with the same model, and adds
//   messages to a person's prompt and, for a busy session, to the results of its tools. An invitation to
//   a session that has not joined goes the same ways.
// - It tells the mesh what each session does.
// - It runs OpenCode's own commands for agents whom the person has allowed (`relay-mesh cmd allow`).
// - It asks before a file is written whether another agent holds it, and breaks the tool off where the
//   mesh refuses.
// Whatever goes wrong here, OpenCode goes on. Mail that was not shown waits in the mesh.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { homedir } from "node:os"

const SERVER = "relay-mesh" // what the server is called in opencode.json
const ENVELOPE = /<relay-mesh-message id="([^"]+)"/g
const NUDGE = "A relay-mesh message stands above and has not been looked at yet."
const TICKET_MS = 2_000 // how long a tool call waits for its ticket
const ANSWER_MS = 3_000 // how long a tool's result waits for mail
const TURN_MS = 15_000 // how long after a wake its turn must have begun
const NO_PASSWORD = { OPENCODE_SERVER_PASSWORD: "" } // what OpenCode starts needs no access to its server
const MOST_SHOWN = 500 // how many messages of a session are remembered
const LONGEST_RESULT = 60_000 // what is told of a command's result
const COMPACT = "compact" // the one command of the terminal's own that has a request of its own

type Any = any // OpenCode hands over plain objects; its own types would be a dependency.

/** One session of this process. */
class Session {
  /** Settles when OpenCode has said whose child the session is. */
  known: Promise<void> = Promise.resolve()
  parent?: string
  workdir: string
  ticket?: Any
  ticketed: (() => void)[] = []
  protocol?: string
  activity?: string
  ended = false
  /** Messages that were put before the model, with what proves it. */
  shown = new Map<string, Any>()
  /** Messages whose turn has not begun yet. */
  coming = new Map<string, (evidence: Any) => void>()
  /** Messages that stand beside a person's prompt and have not been sent to the model yet. */
  beside = new Set<string>()
  /** A command of an agent's has been begun, and its prompt has not come by yet. */
  ordered = false
  constructor(public id: string, public place: Place) {
    this.workdir = place.directory
  }
}

/** One instance of OpenCode's for one folder. There may be several for the same folder. */
type Place = { client: Any; directory: string; url?: URL }

/** What belongs to this machine alone; where the file is not there, PATH says where relay-mesh is. */
function machine(): { program: string[]; environment: Record<string, string> } {
  let local: Any = {}
  try {
    local = JSON.parse(readFileSync(new URL("../relay-mesh.local.json", import.meta.url), "utf8"))
  } catch {}
  const named = process.env.RELAY_MESH_BIN
  return { program: named ? [named] : (local.program ?? ["relay-mesh"]), environment: local.environment ?? {} }
}

/** Waits for something, but not for ever. */
const within = <T>(ms: number, wait: Promise<T>): Promise<T | undefined> => {
  let timer: Any
  const late = new Promise<undefined>((done) => (timer = setTimeout(done, ms, undefined)))
  return Promise.race([wait, late]).finally(() => clearTimeout(timer))
}

const texts = (parts: Any[] = []): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("\n")
const flat = (text: string): string => text.replace(/\s+/g, " ") // OpenCode indents what servers say of themselves
/** The messages and invitations in parts of a prompt. An invitation may have no envelope, but is marked too. */
const idsIn = (parts: Any[] = []): string[] => {
  const marked = parts.flatMap((part) => part.metadata?.["relay-mesh"] ?? [])
  return [...new Set([...[...texts(parts).matchAll(ENVELOPE)].map((match) => match[1]), ...marked])]
}

/**
 * What people would type behind a command. OpenCode puts it into the command's text as it is, and there runs what
 * stands between backticks, opens what follows an `@`, and understands words with a dollar sign. These are a peer's
 * words, so all of that is refused. The adapter's own way, `src/commands.rs`, goes by the same rules.
 */
function typed(words: string[]): { line: string; refused?: string } {
  const line: string[] = []
  for (const word of words) {
    const [, special] = /(`|\$|(?<!\w)@)/.exec(word) ?? []
    const both = word.includes('"') && word.includes("'")
    if (special || both) return { line: "", refused: `an argument holds ${both ? "both kinds of quotes" : special}, which OpenCode would not take as text` }
    const quote = word.includes('"') ? "'" : '"'
    line.push(word === "" || /[\s"']/.test(word) ? quote + word + quote : word)
  }
  return { line: line.join(" ") }
}

/** The one connector of this process, however many folders it works in. */
class Connector {
  private sessions = new Map<string, Session>()
  private places = new Set<Place>()
  private answers = new Map<number, (answer: Any) => void>()
  private child?: Any
  private calls = 0
  private failures = 0
  private complained = false
  /** What is still to be shown: before the first prompt there is no terminal that could show it. */
  private untold?: string

  /** An instance serves a folder from now on; false where another copy of this file serves it already. */
  enter(place: Place): boolean {
    for (const other of this.places) if (other.client === place.client) return false
    this.places.add(place)
    this.listen()
    // OpenCode begins a folder anew when its settings change; its sessions go on.
    for (const session of this.sessions.values()) {
      if (this.places.has(session.place) || session.place.directory !== place.directory) continue
      session.place = place
      this.introduce(session)
    }
    return true
  }

  /** An instance has ended. Its sessions wait for the next one of the same folder. */
  leave(place: Place) {
    this.places.delete(place)
    const heir = [...this.places].find((other) => other.directory === place.directory)
    for (const session of this.sessions.values()) {
      if (session.place !== place) continue
      if (heir) session.place = heir
      else this.say({ unwatch: session.id })
    }
    if (this.places.size === 0) this.child?.stdin.end()
  }

  /** The session by that id, which is watched from now on. */
  session(id: string, place: Place): Session {
    let session = this.sessions.get(id)
    if (!session || session.ended) {
      session = new Session(id, place)
      this.sessions.set(id, session)
      const asked = place.client.session.get({ path: { id } })
      session.known = asked.then(({ data }: Any) => {
        session!.parent = data?.parentID
        session!.workdir = data?.directory ?? place.directory
        this.introduce(session!)
      }).catch(() => this.introduce(session!))
    }
    session.place = place
    return session
  }

  /** Tells the mesh of an event of a session; gives what its adapter answers. */
  async tell(session: Session, hook: string, more: Any = {}): Promise<Any> {
    if (!this.child) return undefined
    const call = ++this.calls
    const payload = { session: session.id, parent: session.parent, directory: session.workdir, process: process.pid, server: server(session.place), ...more }
    const answered = new Promise<Any>((done) => this.answers.set(call, done))
    this.say({ hook, payload, call })
    const answer = await within(ANSWER_MS, answered)
    this.answers.delete(call)
    if (answer?.error) this.log(session.place, `${hook}: ${answer.error}`)
    if (answer?.output?.protocol) session.protocol = answer.output.protocol
    return answer
  }

  /** Tells the mesh what a session does, where that is news. */
  does(session: Session, activity: string) {
    if (session.activity === activity) return
    session.activity = activity
    void session.known.then(() => session.activity === activity && this.tell(session, activity))
  }

  async ticket(session: Session): Promise<Any> {
    if (!session.ticket && this.child) await within(TICKET_MS, new Promise<void>((done) => session.ticketed.push(done)))
    return session.ticket
  }

  /** A message is before the model. Said again should its receipt have been lost. */
  showed(session: Session, id: string, evidence: Any) {
    session.shown.set(id, evidence)
    if (session.shown.size > MOST_SHOWN) session.shown.delete(session.shown.keys().next().value!)
    session.coming.get(id)?.(evidence)
    session.coming.delete(id)
    session.beside.delete(id)
    this.receipt(session, id, "shown", evidence)
  }

  receipt(session: Session, id: string, rung: string, evidence?: Any) {
    this.say({ id, session: session.id, rung, evidence })
  }

  forget(session: Session) {
    session.ended = true
    this.sessions.delete(session.id)
    this.say({ unwatch: session.id })
  }

  /** Brings one message or invitation to a session that is idle, or urgently to one that is not. */
  private async wake(session: Session, mail: Any) {
    const { client } = session.place
    const what = mail.event === "invitation" ? "An invitation" : "A message"
    const told = session.shown.get(mail.id)
    if (told) return this.receipt(session, mail.id, "shown", told)
    if (session.coming.has(mail.id)) return this.receipt(session, mail.id, "accepted")
    const began = new Promise<Any>((done) => session.coming.set(mail.id, done))
    // Said at once, so that what comes meanwhile waits for a tool or for the end of the turn.
    const before = session.activity
    this.does(session, "session.busy")
    try {
      const path = { id: session.id }
      const { data } = await client.session.messages({ path, query: { limit: 100 }, throwOnError: true })
      const is = (message: Any) => message.info.role === "user" && idsIn(message.parts).includes(mail.id)
      const there = data.find(is)
      // A turn knows the prompt that it answers, and ids grow with time: an earlier turn proves nothing.
      const turn = there && data.find(({ info }: Any) => info.role === "assistant" && info.parentID >= there.info.id)
      if (turn) return this.showed(session, mail.id, { message: there.info.id, turn: turn.info.id })
      // Without these OpenCode would take its defaults, and a session that plans would begin to build.
      const last = data.findLast((message: Any) => message.info.role === "user")?.info ?? {}
      const { agent, model, variant } = last
      const text = there ? NUDGE : mail.text
      const parts = [{ type: "text", text, metadata: { "relay-mesh": mail.id } }]
      const body = { agent, model: model && { providerID: model.providerID, modelID: model.modelID }, variant: variant ?? model?.variant, parts }
      await client.session.promptAsync({ path, body, throwOnError: true })
      this.receipt(session, mail.id, "accepted")
      this.toast(session.place, `${what} from ${mail.from}`, "info")
      // A turn that is late may be waiting for a step of another one; it is waited for until it comes.
      if (await within(TURN_MS, began)) return
      const { data: doing } = await client.session.status({ throwOnError: true })
      if (session.coming.has(mail.id) && (doing?.[session.id]?.type ?? "idle") === "idle") throw new Error("no turn began")
    } catch (error) {
      session.coming.delete(mail.id)
      this.receipt(session, mail.id, "refused")
      if (before !== "session.busy") this.does(session, "session.idle")
      this.log(session.place, `${what} from ${mail.from} was not taken: ${(error as Any)?.message ?? JSON.stringify(error)}`)
    }
  }

  /** Runs one command, which its sender has been allowed, and says how it ended. */
  private async run(session: Session, order: Any) {
    const { client } = session.place
    const path = { id: session.id }
    const name = order.command.slice(1)
    const ended = (how: string, result: string, evidence?: Any) =>
      this.say({ command: order.id, ended: how, result: result.slice(0, LONGEST_RESULT), evidence })
    const words = typed(order.arguments ?? [])
    if (words.refused) return ended("failed", words.refused)
    const { data: doing } = await client.session.status().catch(() => ({}))
    if ((doing?.[session.id]?.type ?? "idle") !== "idle") return ended("refused", "the session is busy")
    this.does(session, "session.busy")
    this.toast(session.place, `${order.command}, which ${order.from} asked for`, "info")
    try {
      const { agent, model, variant } = await this.last(session)
      session.ordered = true
      if (name === COMPACT) {
        const body = { providerID: model?.providerID, modelID: model?.modelID }
        await client.session.summarize({ path, body, throwOnError: true })
        return ended("succeeded", "")
      }
      const chosen = model && `${model.providerID}/${model.modelID}`
      const body = { command: name, arguments: words.line, agent, model: chosen, variant }
      const { data } = await client.session.command({ path, body, throwOnError: true })
      const wrong = data?.info?.error
      ended(wrong ? "failed" : "succeeded", wrong ? (wrong.data?.message ?? wrong.name) : texts(data?.parts).trim(), { turn: data?.info?.id })
    } catch (error) {
      ended("failed", (error as Any)?.message ?? JSON.stringify(error))
      this.does(session, "session.idle") // No turn began whose end would say so.
    } finally {
      session.ordered = false
    }
  }

  /** As whom a session spoke last. Else OpenCode takes its defaults, and one that plans would begin to build. */
  private async last(session: Session): Promise<Any> {
    const { data } = await session.place.client.session.messages({ path: { id: session.id }, query: { limit: 100 }, throwOnError: true })
    const { agent, model, variant } = data.findLast((message: Any) => message.info.role === "user")?.info ?? {}
    return { agent, model, variant: variant ?? model?.variant }
  }

  /** Tells which commands can be run in a session. */
  private async offer(session: Session) {
    const { data } = await session.place.client.command.list({ query: { directory: session.workdir } }).catch(() => ({ data: [] }))
    if (!session.ended) this.say({ watch: session.id, commands: [...(data ?? []).map(({ name }: Any) => name), COMPACT] })
  }

  /** What stands in the lines of `relay-mesh listen`. */
  private hear(line: Any) {
    const session = line.session && this.sessions.get(line.session)
    switch (line.event) {
      case "watching":
        if (session) {
          session.ticket = line.ticket
          session.ticketed.splice(0).forEach((done: () => void) => done())
        } else this.say({ unwatch: line.session })
        this.failures = 0
        return
      case "bound":
        return session && void this.tell(session, "session.bound")
      case "message":
      case "invitation":
        return session ? void this.wake(session, line) : this.say({ id: line.id, session: line.session, rung: "refused" })
      case "command":
        if (session) return void this.run(session, line)
        return this.say({ command: line.id, ended: "refused" })
      case "answer":
        if (this.answers.has(line.call)) return this.answers.get(line.call)!(line)
        // Nobody waits for it any more, so its mail goes back.
        return (line.mail ?? []).forEach((id: string) => this.say({ id, rung: "refused" }))
    }
  }

  /** Introduces a session to the mesh: at first sight, and again to each new listener. */
  private introduce(session: Session) {
    if (session.ended || !this.places.has(session.place)) return
    this.say({ watch: session.id })
    void this.tell(session, "session.created", { activity: session.activity })
    for (const [id, evidence] of session.shown) this.receipt(session, id, "shown", evidence)
    void this.offer(session)
  }

  private say(line: Any) {
    if (this.child?.stdin.writable) this.child.stdin.write(JSON.stringify(line) + "\n")
  }

  /** Starts `relay-mesh listen`, and starts it again, later each time, should it end. */
  private listen() {
    if (this.child || this.places.size === 0) return
    const { program, environment } = machine()
    const env = { ...process.env, ...environment, ...NO_PASSWORD }
    const child = spawn(program[0], [...program.slice(1), "listen", "--harness", "opencode"], { env, stdio: ["pipe", "pipe", "pipe"] })
    this.child = child
    let rest = ""
    let complaint = ""
    let over = false
    const ended = (why: string) => {
      if (over) return
      over = true
      this.child = undefined
      for (const done of this.answers.values()) done(undefined)
      this.answers.clear()
      if (this.places.size === 0) return
      if (this.failures++ > 0) this.complain(why)
      setTimeout(() => this.listen(), Math.min(250 * 2 ** Math.min(this.failures, 8), 60_000)).unref?.()
    }
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop()!
      for (const line of lines) {
        try {
          this.hear(JSON.parse(line))
        } catch (error) {
          this.complain(String(error))
        }
      }
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint = (complaint + text).slice(-500)))
    child.stdin.on("error", () => {}) // It has ended, which is told elsewhere.
    child.on("error", (error: Any) => {
      this.failures = Math.max(this.failures, 1) // It is not there: no second try will tell more.
      ended(`\`${program[0]}\` could not be started: ${error.message}`)
    })
    child.on("close", (code: Any, signal: Any) => ended(`\`relay-mesh listen\` ended (${signal ?? code}) ${complaint.trim()}`))
    for (const session of this.sessions.values()) void session.known.then(() => this.child === child && this.introduce(session))
  }

  /** Said once: a person who was told need not be told again every minute. */
  private complain(why: string) {
    if (this.complained) return
    this.complained = true
    this.untold = `${why}. OpenCode goes on without the mesh; \`relay-mesh doctor opencode\` says more.`
    for (const place of this.places) this.log(place, this.untold)
    for (const session of this.sessions.values()) this.remind(session.place)
  }

  /** Shows what could not be shown before. */
  remind(place: Place) {
    if (this.untold) this.toast(place, this.untold, "warning", 10_000)
    this.untold = undefined
  }

  private toast({ client }: Place, message: string, variant: string, duration?: number) {
    client.tui.showToast({ body: { title: "relay-mesh", message, variant, duration } }).catch(() => {}) // No terminal is attached.
  }

  private log({ client }: Place, message: string) {
    client.app.log({ body: { service: "relay-mesh", level: "warn", message } }).catch(() => {})
  }
}

/** How the mesh's host can reach this process when this connector cannot: where it really listens. */
function server({ url }: Place): Any {
  // Without a server OpenCode names `localhost`, where nobody listens.
  if (!url || url.hostname === "localhost" || !url.port) return undefined
  return { port: Number(url.port), username: process.env.OPENCODE_SERVER_USERNAME, password: process.env.OPENCODE_SERVER_PASSWORD }
}

/** Copies of this file (the project's, the person's own) share one connector. */
const connector = (): Connector => ((globalThis as Any)[Symbol.for("relay-mesh.connector")] ??= new Connector())

/** OpenCode's own tools that write files. */
const WRITERS = new Set(["edit", "write", "multiedit", "patch", "apply_patch"])

const ACTIVITIES: Record<string, string> = {
  "permission.asked": "permission.asked",
  "question.asked": "permission.asked",
  "permission.replied": "session.busy",
  "question.replied": "session.busy",
  "question.rejected": "session.busy",
  "session.idle": "session.idle",
}

export const RelayMesh = async (context: Any) => {
  const mesh = connector()
  const place: Place = {
    client: context.client,
    directory: context.directory,
    // Asked for each time: the server may be started after the plugins.
    get url() {
      return context.serverUrl
    },
  }
  if (!mesh.enter(place)) return {}
  const ours = (tool: string) => tool.startsWith(`${SERVER}_`)
  return {
    /** What a team commits names no machine: this one's program and data folder are filled in here. */
    config: async (config: Any) => {
      const entry = config.mcp?.[SERVER]
      const { program, environment } = machine()
      if (entry?.type === "local" && entry.command?.[0] === "relay-mesh") entry.command = [...program, ...entry.command.slice(1)]
      if (entry?.type === "local") entry.environment = { ...NO_PASSWORD, ...environment, ...entry.environment }
      if (entry?.type === "remote" && entry.headers?.Authorization?.trim() === "Bearer") {
        const folder = environment.RELAY_DIR ?? process.env.RELAY_DIR ?? `${homedir()}/.relay-mesh`
        try {
          entry.headers.Authorization = `Bearer ${readFileSync(`${folder}/http.token`, "utf8").trim()}`
        } catch {}
      }
    },
    event: async ({ event }: Any) => {
      const { type, properties } = event
      const id = properties?.sessionID ?? properties?.info?.id
      if (type === "session.deleted") {
        const session = mesh.session(id, place)
        await mesh.tell(session, type)
        mesh.forget(session)
      } else if (type === "session.status" && properties.status?.type !== "idle") {
        mesh.does(mesh.session(id, place), "session.busy")
      } else if (type === "session.created") {
        mesh.session(id, place)
      } else if (ACTIVITIES[type] && id) {
        mesh.does(mesh.session(id, place), ACTIVITIES[type])
      }
    },
    "chat.message": async ({ sessionID }: Any, { message, parts }: Any) => {
      const session = mesh.session(sessionID, place)
      const injected = idsIn(parts).length > 0 || texts(parts).includes(NUDGE) || session.ordered
      session.ordered = false
      session.activity = "session.busy"
      mesh.remind(place)
      await within(TICKET_MS, session.known)
      const answer = await mesh.tell(session, "chat.message", { injected })
      const mail = answer?.output?.mail
      if (!mail) return
      const ids: string[] = answer.mail ?? [] // What the mesh itself says is no message.
      // Ids of parts grow with time, and this one has to stand last.
      const last = parts.at(-1)?.id
      if (!last || !message?.id) return ids.forEach((id: string) => mesh.receipt(session, id, "refused"))
      parts.push({ id: `${last.slice(0, -2)}zz`, sessionID, messageID: message.id, type: "text", text: mail, synthetic: true, metadata: { "relay-mesh": ids } })
      ids.forEach((id: string) => session.beside.add(id))
    },
    "tool.execute.before": async ({ tool, sessionID }: Any, { args }: Any) => {
      if (args && WRITERS.has(tool)) {
        const session = mesh.session(sessionID, place)
        await within(TICKET_MS, session.known)
        const answer = await mesh.tell(session, "tool.execute.before", { file: args.filePath, patch: args.patchText })
        // What a hook throws is all that the model is told of its call.
        if (answer?.output?.refusal) throw new Error(answer.output.refusal)
        return
      }
      if (!ours(tool) || !args) return
      const ticket = await mesh.ticket(mesh.session(sessionID, place))
      if (ticket) args._relay = { ticket }
    },
    "tool.execute.after": async ({ tool, sessionID }: Any, output: Any) => {
      const session = mesh.session(sessionID, place)
      const registered = tool === `${SERVER}_register_agent`
      const answer = await mesh.tell(session, "tool.execute.after", { registered })
      const mail = answer?.output?.mail
      if (!mail) return
      const ids: string[] = answer.mail ?? [] // What the mesh itself says is no message.
      if (Array.isArray(output?.content)) output.content.push({ type: "text", text: mail })
      else if (typeof output?.output === "string") output.output += `\n\n${mail}`
      else return ids.forEach((id: string) => mesh.receipt(session, id, "refused"))
      ids.forEach((id: string) => mesh.showed(session, id, { tool }))
    },
    /** What is about to be sent to the model: the proof that a message is shown. */
    "experimental.chat.messages.transform": async (_: Any, { messages }: Any) => {
      for (const { info, parts } of messages) {
        // The session's history keeps the ticket, which is none of the model's business.
        for (const part of parts) if (part.type === "tool" && ours(part.tool)) delete part.state?.input?._relay
        if (info.role !== "user") continue
        const session = mesh.session(info.sessionID, place)
        for (const id of idsIn(parts)) if (session.coming.has(id) || session.beside.has(id)) mesh.showed(session, id, { message: info.id })
      }
    },
    /** Every request to the model says who it is on the mesh, so that no compaction loses it. */
    "experimental.chat.system.transform": async ({ sessionID }: Any, { system }: Any) => {
      const protocol = sessionID && mesh.session(sessionID, place).protocol
      // Titles and summaries are written without the mesh's tools, and need not know of it.
      if (!protocol || !system.some((text: string) => text.includes(`<server name="${SERVER}">`))) return
      const [who, ...rest] = protocol.split("\n")
      const known = system.some((text: string) => flat(text).includes(flat(rest.join(" "))))
      system.push(known ? who : protocol)
    },
    /** A shell that the agent starts speaks for its session. */
    "shell.env": async ({ sessionID }: Any, { env }: Any) => {
      if (sessionID) env.RELAY_OPENCODE_SESSION = sessionID
    },
    dispose: async () => mesh.leave(place),
  }
}
