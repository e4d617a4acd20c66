// The relay-mesh connector. It only carries lines between OpenCode and `relay-mesh listen`. OpenCode loads it by
// itself; `relay-mesh install opencode` wrote it and `relay-mesh uninstall opencode` removes it.
//
// - It adds the session's ticket to the arguments of the mesh's tools, so that the mesh knows which session calls.
// - When a message comes, it wakes an idle session, with the session's agent and model. It adds messages to a
//   user's prompt and, for a busy session, to the results of its tools. It treats an invitation to a session that
//   has not joined the same way.
// - It tells the mesh what each session does.
// - It runs OpenCode's own commands for agents that the user has allowed (`relay-mesh cmd allow`).
// - Before a tool writes a file, it asks whether another agent has reserved the file, and stops the tool if the
//   mesh refuses.
// Whatever goes wrong here, OpenCode goes on, and mail that was not shown waits in the mesh.
import { spawn } from "node:child_process"
import { createHmac, randomBytes } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
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

class Session {
  /** Settles when OpenCode has said which session is the parent. */
  known: Promise<void> = Promise.resolve()
  parent?: string
  workdir: string
  ticket?: Any
  ticketed: (() => void)[] = []
  protocol?: string
  activity?: string
  ended = false
  /** Messages that were shown to the model, each with its evidence. */
  shown = new Map<string, Any>()
  /** Messages whose turn has not started yet. */
  coming = new Map<string, (evidence: Any) => void>()
  /** Messages beside a user's prompt or a tool's result that have not been sent to the model yet. */
  beside = new Set<string>()
  /** Messages in the request that OpenCode is about to send, each with its evidence. The beginning of its answer proves
   * them. */
  requested = new Map<string, Any>()
  /** An agent's command has started, and its prompt has not appeared yet. */
  ordered = false
  /** Its user refused what it asked. If the turn ends now, they have stopped it. */
  refused = false
  constructor(public id: string, public place: Place) {
    this.workdir = place.directory
  }
}

/** One instance of OpenCode for one folder. The same folder may have several. */
type Place = { client: Any; directory: string; url?: URL }

/** What belongs to this machine only. If the file does not exist, relay-mesh must be on PATH. */
function machine(): { program: string[]; environment: Record<string, string> } {
  let local: Any = {}
  try {
    local = JSON.parse(readFileSync(new URL("../relay-mesh.local.json", import.meta.url), "utf8"))
  } catch {}
  const named = process.env.RELAY_MESH_BIN
  return { program: named ? [named] : (local.program ?? ["relay-mesh"]), environment: local.environment ?? {} }
}

/** Waits for a promise, up to a limit. */
const within = <T>(ms: number, wait: Promise<T>): Promise<T | undefined> => {
  let timer: Any
  const late = new Promise<undefined>((done) => (timer = setTimeout(done, ms, undefined)))
  return Promise.race([wait, late]).finally(() => clearTimeout(timer))
}

const texts = (parts: Any[] = []): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("\n")
const flat = (text: string): string => text.replace(/\s+/g, " ") // OpenCode indents what servers say of themselves
/** The messages and invitations in the parts of a prompt. An invitation may have no envelope, but has a mark too. */
const idsIn = (parts: Any[] = []): string[] => {
  const marked = parts.flatMap((part) => part.metadata?.["relay-mesh"] ?? [])
  return [...new Set([...[...texts(parts).matchAll(ENVELOPE)].map((match) => match[1]), ...marked])]
}

/**
 * The arguments of a command as a user would type them. OpenCode inserts them into the command's text, runs what is
 * between backticks, opens what follows an `@`, and expands words with a dollar sign. Another agent wrote them, so we
 * refuse all of that. The adapter's own way, `src/commands.rs`, has the same rules.
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

/** The only connector of this process, however many folders it works in. */
class Connector {
  private sessions = new Map<string, Session>()
  private places = new Set<Place>()
  private answers = new Map<number, (answer: Any) => void>()
  private child?: Any
  private calls = 0
  private failures = 0
  private complained = false
  /** Notices to show later: before the first prompt there is no terminal that could show them. */
  private untold?: string

  /** An instance starts to serve a folder; false if another copy of this file serves it already. */
  enter(place: Place): boolean {
    for (const other of this.places) if (other.client === place.client) return false
    this.places.add(place)
    this.listen()
    // OpenCode reloads a folder when its settings change; its sessions continue.
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

  /** The session of that id, which we track from now on. */
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

  /** Reports an event of a session to the mesh; returns the adapter's answer. */
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

  /** Reports what a session does, if that has changed. */
  does(session: Session, activity: string) {
    if (session.activity === activity) return
    session.activity = activity
    void session.known.then(() => session.activity === activity && this.tell(session, activity))
  }

  /** Reports that the user stopped a session, in place of its being idle: mail waits for their next prompt. */
  stopped(session: Session) {
    session.activity = "session.idle"
    void session.known.then(() => this.tell(session, "session.stopped"))
  }

  async ticket(session: Session): Promise<Any> {
    if (!session.ticket && this.child) await within(TICKET_MS, new Promise<void>((done) => session.ticketed.push(done)))
    return session.ticket
  }

  /** Reports that the model has a message. Reports it again if the receipt may have been lost. */
  showed(session: Session, id: string, evidence: Any) {
    session.shown.set(id, evidence)
    if (session.shown.size > MOST_SHOWN) session.shown.delete(session.shown.keys().next().value!)
    session.coming.get(id)?.(evidence)
    session.coming.delete(id)
    session.beside.delete(id)
    this.receipt(session, id, "shown", evidence)
  }

  /** The model has begun to answer a request: it had the messages in it. */
  answered(session: Session) {
    for (const [id, evidence] of session.requested) this.showed(session, id, evidence)
    session.requested.clear()
  }

  receipt(session: Session, id: string, status: string, evidence?: Any) {
    this.say({ id, session: session.id, status, evidence })
  }

  forget(session: Session) {
    session.ended = true
    this.sessions.delete(session.id)
    this.say({ unwatch: session.id })
  }

  /** Delivers one message or invitation to an idle session, or an urgent one to a busy session. */
  private async wake(session: Session, mail: Any) {
    const { client } = session.place
    const what = mail.event === "invitation" ? "An invitation" : "A message"
    const told = session.shown.get(mail.id)
    if (told) return this.receipt(session, mail.id, "shown", told)
    if (session.coming.has(mail.id)) return this.receipt(session, mail.id, "accepted")
    const began = new Promise<Any>((done) => session.coming.set(mail.id, done))
    // Marked at once, so that mail that comes meanwhile waits for a tool or for the end of the turn.
    const before = session.activity
    this.does(session, "session.busy")
    try {
      const path = { id: session.id }
      const { data } = await client.session.messages({ path, query: { limit: 100 }, throwOnError: true })
      const is = (message: Any) => message.info.role === "user" && idsIn(message.parts).includes(mail.id)
      const there = data.find(is)
      // A turn names the prompt that it answers, and ids grow with time, so an earlier turn proves nothing.
      // Its first part is there once the model has begun to answer.
      const turn = there && data.find(({ info, parts }: Any) => info.role === "assistant" && info.parentID >= there.info.id && parts?.length > 0)
      if (turn) return this.showed(session, mail.id, { message: there.info.id, turn: turn.info.id })
      // Without these OpenCode would use its defaults, and a session that plans would start to build.
      const last = data.findLast((message: Any) => message.info.role === "user")?.info ?? {}
      const { agent, model, variant } = last
      const text = there ? NUDGE : mail.text
      const parts = [{ type: "text", text, metadata: { "relay-mesh": mail.id } }]
      const body = { agent, model: model && { providerID: model.providerID, modelID: model.modelID }, variant: variant ?? model?.variant, parts }
      await client.session.promptAsync({ path, body, throwOnError: true })
      this.receipt(session, mail.id, "accepted")
      this.toast(session.place, `${what} from ${mail.from}`, "info")
      // A late turn may be waiting for another turn's step, so we wait until it comes.
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

  /** Runs a command that the user allowed, and reports how it ended. */
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
        return ended("done", "")
      }
      const chosen = model && `${model.providerID}/${model.modelID}`
      const body = { command: name, arguments: words.line, agent, model: chosen, variant }
      const { data } = await client.session.command({ path, body, throwOnError: true })
      const wrong = data?.info?.error
      ended(wrong ? "failed" : "done", wrong ? (wrong.data?.message ?? wrong.name) : texts(data?.parts).trim(), { turn: data?.info?.id })
    } catch (error) {
      ended("failed", (error as Any)?.message ?? JSON.stringify(error))
      this.does(session, "session.idle") // No turn began whose end would say so.
    } finally {
      session.ordered = false
    }
  }

  /** The agent and model of the latest prompt. With OpenCode's defaults a session that plans would start to build. */
  private async last(session: Session): Promise<Any> {
    const { data } = await session.place.client.session.messages({ path: { id: session.id }, query: { limit: 100 }, throwOnError: true })
    const { agent, model, variant } = data.findLast((message: Any) => message.info.role === "user")?.info ?? {}
    return { agent, model, variant: variant ?? model?.variant }
  }

  /** Reports which commands a session can run. */
  private async offer(session: Session) {
    const { data } = await session.place.client.command.list({ query: { directory: session.workdir } }).catch(() => ({ data: [] }))
    if (!session.ended) this.say({ watch: session.id, commands: [...(data ?? []).map(({ name }: Any) => name), COMPACT] })
  }

  /** Handles the lines of `relay-mesh listen`. */
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
        return session ? void this.wake(session, line) : this.say({ id: line.id, session: line.session, status: "refused" })
      case "command":
        if (session) return void this.run(session, line)
        return this.say({ command: line.id, ended: "refused" })
      case "answer":
        if (this.answers.has(line.call)) return this.answers.get(line.call)!(line)
        // No caller waits for it any more, so its mail goes back.
        return (line.mail ?? []).forEach((id: string) => this.say({ id, status: "refused" }))
    }
  }

  /** Reports a session to the mesh: at its first event, and again to each new listener. */
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

  /** Starts `relay-mesh listen`, and restarts it with growing delays if it ends. */
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

  /** Reported once: the user need not see it every minute. */
  private complain(why: string) {
    if (this.complained) return
    this.complained = true
    this.untold = `${why}. OpenCode goes on without the mesh; \`relay-mesh doctor opencode\` says more.`
    for (const place of this.places) this.log(place, this.untold)
    for (const session of this.sessions.values()) this.remind(session.place)
  }

  /** Shows the notices that could not be shown before. */
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

/** Where this process really listens, so that the mesh can reach it without this connector. */
function server({ url }: Place): Any {
  // Without a server OpenCode names `localhost`, where nothing listens.
  if (!url || url.hostname === "localhost" || !url.port) return undefined
  return { port: Number(url.port) }
}

/** The words with which OpenCode was started. Its terminal runs plugins in a worker, which is not given them. */
function startedWith(): string[] {
  try {
    return readFileSync("/proc/self/cmdline", "utf8").split("\0")
  } catch {
    return process.argv // Another system than Linux.
  }
}

/** The session that this OpenCode was started to open again. Until its first prompt OpenCode tells of no event of it. */
async function reopened({ client, directory }: Place): Promise<string | undefined> {
  const words = startedWith()
  const at = words.findIndex((word) => word === "-s" || word === "--session")
  const named = at >= 0 ? words[at + 1] : words.find((word) => /^(--session|-s)=/.test(word))?.split("=")[1]
  try {
    if (named) {
      const { data } = await client.session.get({ path: { id: named } })
      return data?.directory === directory ? data.id : undefined
    }
    if (!words.some((word) => word === "-c" || word === "--continue")) return undefined
    const { data } = await client.session.list()
    const here = (data ?? []).filter((session: Any) => session.directory === directory && !session.parentID)
    return here.sort((one: Any, other: Any) => other.time.updated - one.time.updated)[0]?.id
  } catch {
    return undefined // It is told of at its first prompt.
  }
}

/** Copies of this file (the project's and the user's own) share one connector. */
const connector = (): Connector => ((globalThis as Any)[Symbol.for("relay-mesh.connector")] ??= new Connector())

/** The data folder of relay-mesh, by the same rule as its own. */
const dataFolder = (environment: Record<string, string>): string => {
  const named = environment.RELAY_DIR ?? process.env.RELAY_DIR
  const usual = `${homedir()}/.relay-mesh`
  if (named || existsSync(usual)) return named ?? usual
  const xdg = [process.env.XDG_DATA_HOME, process.env.XDG_STATE_HOME].filter((folder) => folder?.startsWith("/"))
  const folders = xdg.map((folder) => `${folder}/relay-mesh`)
  return folders.find((folder) => existsSync(folder)) ?? folders[0] ?? usual
}

/** The server's token, once what listens at its URL has proved that it knows it: another user may have the port. */
const provenToken = async (folder: string, url: string): Promise<string | undefined> => {
  try {
    const token = readFileSync(`${folder}/http.token`, "utf8").trim()
    const { hostname, port } = new URL(url)
    const nonce = randomBytes(16).toString("hex")
    const answer = await fetch(new URL(`/identity/${nonce}`, url), { signal: AbortSignal.timeout(TICKET_MS) })
    const { proof } = (await answer.json()) as Any
    // The address in the proof is the one at which the server was reached, which a name does not tell.
    const hosts = hostname === "localhost" ? ["127.0.0.1", "[::1]"] : [hostname]
    const expected = hosts.map((host) =>
      createHmac("sha256", token).update(`relay-mesh server\n${host}:${port}\n${nonce}`).digest("hex"),
    )
    return expected.includes(proof) ? token : undefined
  } catch {
    return undefined
  }
}

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
    // Read each time, because the server may start after the plugins.
    get url() {
      return context.serverUrl
    },
  }
  if (!mesh.enter(place)) return {}
  void reopened(place).then((id) => id && mesh.session(id, place))
  const ours = (tool: string) => tool.startsWith(`${SERVER}_`)
  return {
    /** A file that a team commits holds nothing of this machine, so its program and data folder are filled in here. */
    config: async (config: Any) => {
      const entry = config.mcp?.[SERVER]
      const { program, environment } = machine()
      if (entry?.type === "local" && entry.command?.[0] === "relay-mesh") entry.command = [...program, ...entry.command.slice(1)]
      if (entry?.type === "local") entry.environment = { ...NO_PASSWORD, ...environment, ...entry.environment }
      if (entry?.type === "remote" && entry.headers?.Authorization?.trim() === "Bearer") {
        const token = await provenToken(dataFolder(environment), entry.url)
        if (token) entry.headers.Authorization = `Bearer ${token}`
      }
    },
    event: async ({ event }: Any) => {
      const { type, properties } = event
      const id = properties?.sessionID ?? properties?.info?.id
      if (type === "message.part.updated" && properties.part?.type === "step-start") {
        mesh.answered(mesh.session(properties.part.sessionID, place))
      } else if (type === "session.deleted") {
        const session = mesh.session(id, place)
        await mesh.tell(session, type)
        mesh.forget(session)
      } else if (type === "session.status" && properties.status?.type !== "idle") {
        mesh.does(mesh.session(id, place), "session.busy")
      } else if (type === "session.created") {
        mesh.session(id, place)
      } else if (type === "session.error" && properties.error?.name === "MessageAbortedError" && id) {
        mesh.stopped(mesh.session(id, place))
      } else if (ACTIVITIES[type] && id) {
        const session = mesh.session(id, place)
        if (type === "session.idle" && session.refused && session.activity !== type) mesh.stopped(session)
        session.refused = type === "question.rejected" || (type === "permission.replied" && (properties.reply ?? properties.response) === "reject")
        mesh.does(session, ACTIVITIES[type])
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
      // Ids of parts grow with time, and this one has to be last.
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
        // The model sees only the text that a hook throws.
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
      ids.forEach((id: string) => session.beside.add(id))
    },
    /** The request to the model holds these messages. It may still fail, or OpenCode may end before it is sent. */
    "experimental.chat.messages.transform": async (_: Any, { messages }: Any) => {
      for (const { info, parts } of messages) {
        // The session's history keeps the ticket, which the model must not see.
        for (const part of parts) if (part.type === "tool" && ours(part.tool)) delete part.state?.input?._relay
        const session = mesh.session(info.sessionID, place)
        const results = parts.filter((part: Any) => part.type === "tool" && session.beside.size > 0)
        for (const { tool, state } of results) {
          const result = JSON.stringify(state ?? {})
          for (const id of [...session.beside]) if (result.includes(id)) session.requested.set(id, { tool })
        }
        if (info.role !== "user") continue
        for (const id of idsIn(parts)) if (session.coming.has(id) || session.beside.has(id)) session.requested.set(id, { message: info.id })
      }
    },
    /** Adds the agent's name on the mesh to every request to the model, so that compaction does not lose it. */
    "experimental.chat.system.transform": async ({ sessionID }: Any, { system }: Any) => {
      const protocol = sessionID && mesh.session(sessionID, place).protocol
      // OpenCode writes titles and summaries without the mesh's tools, so those need no protocol.
      if (!protocol || !system.some((text: string) => text.includes(`<server name="${SERVER}">`))) return
      const [who, ...rest] = protocol.split("\n")
      const known = system.some((text: string) => flat(text).includes(flat(rest.join(" "))))
      system.push(known ? who : protocol)
    },
    /** Gives a shell that the agent starts its session's id. */
    "shell.env": async ({ sessionID }: Any, { env }: Any) => {
      if (sessionID) env.RELAY_OPENCODE_SESSION = sessionID
    },
    dispose: async () => mesh.leave(place),
  }
}
