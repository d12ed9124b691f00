// The official client of the Model Context Protocol, driven by lines of JSON: a request on standard input has an `id`
// and an `op`, its answer on standard output the same `id` and `ok` or `error`. What the server asks the person comes as
// `{"asked", "message"}` and is answered by the op `answer`. Called with the directory in which the client is installed.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const sdk = "@modelcontextprotocol/sdk";
const { Client } = require(`${sdk}/client/index.js`);
const { StdioClientTransport } = require(`${sdk}/client/stdio.js`);
const { StreamableHTTPClientTransport } = require(`${sdk}/client/streamableHttp.js`);
const { ElicitRequestSchema } = require(`${sdk}/types.js`);

const DAY = 24 * 60 * 60 * 1000;

let client;
const running = new Map();
const questions = new Map();

const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const ops = {
  async connect({ stdio, http, elicitation }) {
    client = new Client({ name: "tine-test", version: "1" }, { capabilities: elicitation ? { elicitation: {} } : {} });
    if (elicitation) {
      client.setRequestHandler(ElicitRequestSchema, (request) => {
        const asked = questions.size + 1;
        tell({ asked, message: request.params.message });
        return new Promise((answer) => questions.set(asked, answer));
      });
    }
    const transport = stdio
      ? new StdioClientTransport({ ...stdio, stderr: "inherit" })
      : new StreamableHTTPClientTransport(new URL(http.url), { requestInit: { headers: http.headers } });
    await client.connect(transport);
    return {
      server: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
      pid: transport.pid,
    };
  },
  listTools: (_, options) => client.listTools({}, options),
  callTool: ({ name, arguments: given, meta }, options) =>
    client.callTool({ name, arguments: given, ...(meta && { _meta: meta }) }, undefined, options),
  listResources: (_, options) => client.listResources({}, options),
  listResourceTemplates: (_, options) => client.listResourceTemplates({}, options),
  readResource: ({ uri }, options) => client.readResource({ uri }, options),
  listPrompts: (_, options) => client.listPrompts({}, options),
  getPrompt: ({ name, arguments: given }, options) => client.getPrompt({ name, arguments: given }, options),
  async cancel({ call }) {
    running.get(call)?.abort("the test wants no more of it");
    return {};
  },
  async answer({ asked, action }) {
    questions.get(asked)(action === "accept" ? { action, content: {} } : { action });
    return {};
  },
  async close() {
    await client.close();
    return {};
  },
};

async function run(line) {
  const { id, op, ...rest } = JSON.parse(line);
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const ok = await ops[op](rest, { signal: controller.signal, timeout: DAY });
    tell({ id, ok: ok ?? null });
  } catch (error) {
    tell({ id, error: { code: error.code ?? null, message: String(error.message ?? error), data: error.data ?? null } });
  }
  running.delete(id);
}

const lines = createInterface({ input: process.stdin });
lines.on("line", run);
lines.on("close", async () => {
  await client?.close().catch(() => {});
  process.exit(0);
});
