import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const base = (name, usual) => path.join(process.env[name] || path.join(os.homedir(), usual), "opencode")
const data = base("XDG_DATA_HOME", ".local/share")
const database = process.env.OPENCODE_DB ? path.resolve(data, process.env.OPENCODE_DB) : path.join(data, "opencode.db")
const folder = path.join(base("XDG_STATE_HOME", ".local/state"), "tine")
const file = path.join(folder, `${process.pid}.json`)
const nameFile = (id) => path.join(folder, `${id}.env`)

// A number is given again to another process; together with the start it is unique.
const start = (() => {
  try {
    const stat = fs.readFileSync("/proc/self/stat", "utf8")
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]
  } catch {
    return undefined
  }
})()

const sessions = new Map()
const children = new Set()
let directory = process.cwd()

// What this process does, for `tine status`: replaced as a whole, so that nobody reads half of it.
const save = () => {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const text = JSON.stringify({ pid: process.pid, start, sessions: Object.fromEntries(sessions) })
    fs.writeFileSync(file + ".new", text, { mode: 0o600 })
    fs.renameSync(file + ".new", file)
  } catch {}
}

const set = (id, state, waiting) => {
  const before = sessions.get(id)
  if (before && before.state === state && before.waiting_for === waiting) return
  sessions.set(id, { state, waiting_for: waiting, since: Date.now(), cwd: directory })
  save()
}

// Nothing waits for a hook, and nothing that goes wrong in one reaches the agent.
const report = (event, id, more) => {
  try {
    if (!fs.existsSync(PROGRAM)) return
    const payload = { session_id: id, transcript_path: path.join(database, id), cwd: directory, ...more }
    const environment = { ...process.env, TINE_OPENCODE_NAME_FILE: nameFile(id) }
    const stdio = ["pipe", "ignore", "ignore"]
    const hook = spawn(PROGRAM, ["hook", event, "--agent", "opencode"], { env: environment, stdio })
    hook.on("error", () => {})
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(payload))
    hook.unref()
  } catch {}
}

// The first that is seen of a session in this process.
const begin = (id, source) => {
  if (sessions.has(id) || children.has(id)) return
  set(id, "idle")
  report("session-start", id, { source })
}

const ended = () => {
  try {
    fs.unlinkSync(file)
  } catch {}
}
process.on("exit", ended)

const onEvent = ({ type, properties }) => {
  const info = properties?.info
  const id = properties?.sessionID ?? info?.sessionID ?? info?.id
  switch (type) {
    case "session.created":
      // A subagent's session is part of the one that started it.
      if (info.parentID) return void children.add(info.id)
      return begin(info.id, / \(fork #\d+\)$/.test(info.title ?? "") ? "fork" : "startup")
    case "session.deleted":
      sessions.delete(info?.id)
      return save()
    case "session.status":
      if (children.has(id)) return
      begin(id, "resume")
      return set(id, properties.status?.type === "idle" ? "idle" : "busy")
    case "session.idle":
      if (children.has(id)) return
      set(id, "idle")
      return report("stop", id)
    case "permission.asked":
    case "permission.updated":
    case "question.asked":
      if (children.has(id)) return
      set(id, "waiting", type === "question.asked" ? "an answer" : "a permission")
      return report("permission-request", id)
    case "permission.replied":
    case "question.replied":
    case "question.rejected":
      if (children.has(id)) return
      return set(id, "busy")
  }
}

export const Tine = async (input) => {
  directory = input?.directory ?? directory
  return {
    event: async ({ event }) => {
      try {
        onEvent(event)
      } catch {}
    },
    "chat.message": async (message) => {
      if (!message?.sessionID || children.has(message.sessionID)) return
      begin(message.sessionID, "resume")
      set(message.sessionID, "busy")
      report("user-prompt-submit", message.sessionID, { prompt_id: message.messageID })
    },
    "shell.env": async (input, output) => {
      if (!input?.sessionID) return
      output.env.OPENCODE_SESSION_ID = input.sessionID
      try {
        const names = fs.readFileSync(nameFile(input.sessionID), "utf8").match(/^export TINE_SESSION=(\S+)$/gm)
        if (names) output.env.TINE_SESSION = names.at(-1).split("=")[1]
      } catch {}
    },
    dispose: async () => {
      for (const [id] of sessions) report("session-end", id)
      sessions.clear()
      ended()
    },
  }
}
