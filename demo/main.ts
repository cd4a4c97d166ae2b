import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { messageOf } from "../src/api/errors.ts";
import { componentSource } from "../src/cli/component-source.ts";
import { processTerminal } from "../src/cli/terminal.ts";
import { LocalRuntime, type RuntimeEvent, type Summary } from "../src/local/runtime.ts";
import { runScript } from "./agent-script.ts";
import { startDocsStandIn } from "./docs-site.ts";
import { startGithubStandIn } from "./github-api.ts";

/**
 * `npm run demo` serves the examples on loopback until it is interrupted; `npm run demo -- --once` plays an agent against them and exits 0 only if every step went
 * as documented. Both are offline: what the tools reach are HTTP servers that this process starts.
 */
const root = fileURLToPath(new URL("..", import.meta.url));
const terminal = processTerminal();
const { values } = parseArgs({ options: { once: { type: "boolean", default: false }, port: { type: "string", default: "7780" } } });

const agents = [
  { namespace: "agents", name: "triage", token: "triage-token" },
  { namespace: "agents", name: "editor", token: "editor-token" },
];

const place = await mkdtemp(join(tmpdir(), "ambit-demo-"));
const manifests = join(place, "manifests");
const workspace = join(place, "workspace");
await cp(join(root, "demo/manifests"), manifests, { recursive: true });
await cp(join(root, "demo/workspace"), workspace, { recursive: true });
for (const name of await readdir(manifests)) {
  const file = join(manifests, name);
  if (name.endsWith(".yaml")) await writeFile(file, (await readFile(file, "utf8")).replaceAll("file:../../", `file:${root}`));
}

const github = await startGithubStandIn();
const docs = await startDocsStandIn();
let summary: Summary | undefined;
const cacheFolder = process.env.AMBIT_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "ambit");
const tell = (event: RuntimeEvent): void => {
  if (event.kind === "settled") summary = event.summary;
  if (event.kind === "fault") terminal.err(`${messageOf(event.error)}\n`);
  if (event.kind === "host" && event.event.kind === "failed") terminal.err(`${event.event.key.component}: ${event.event.message}\n`);
};
const runtime = new LocalRuntime(
  {
    folder: manifests,
    port: values.once ? 0 : Number(values.port),
    developerToken: "demo-token",
    agents,
    claims: new Map([
      ["workspace", workspace],
      ["notices", join(root, "examples/notices/notices")],
    ]),
    hostOverrides: { "api.github.test:80": `127.0.0.1:${github.port}`, "docs.test:80": `127.0.0.1:${docs.port}` },
    privateRanges: [],
    cacheFolder,
  },
  {
    fetchComponent: componentSource(terminal, cacheFolder),
    journal: (entry) => values.once || terminal.err(`${JSON.stringify(entry)}\n`),
    tell,
    now: Date.now,
    monotonic: () => performance.now(),
  },
);

const close = async (): Promise<void> => {
  await runtime.close();
  await Promise.all([github.close(), docs.close()]);
  await rm(place, { recursive: true, force: true });
};

const describe = async (url: string): Promise<void> => {
  for (const { namespace, name, token } of agents) {
    const response = await fetch(`${url}/v1/declarations`, { headers: { authorization: `Bearer ${token}` } });
    const offered = (await response.json()) as { name: string }[];
    terminal.out(`${namespace}/${name} (token ${token}) is offered: ${offered.map((one) => one.name).join(", ")}\n`);
  }
  const call = `curl -s ${url}/v1/calls -H 'Authorization: Bearer triage-token' -H 'Content-Type: application/json' -d '{"name":"list_issues","arguments":{"repo":"octo/app","state":"open"}}'`;
  terminal.out(
    `\nDeclarations for a provider:\n  curl -s '${url}/v1/declarations?format=anthropic' -H 'Authorization: Bearer triage-token'\nA call:\n  ${call}\nThe same with the CLI:\n`,
  );
  terminal.out(`  npm run -s ambit -- call list_issues '{"repo":"octo/app","state":"open"}' --url ${url} --token triage-token\n\n`);
};

const address = await runtime.start().catch(async (error: unknown) => {
  terminal.err(`${messageOf(error)}\n`);
  await close();
  process.exit(2);
});
const url = `http://127.0.0.1:${address.port}`;
terminal.out(
  `Ambit serves ${summary?.plan.grants.filter(({ judgement }) => judgement.phase === "Active").length ?? 0} reviewed tools at ${url}\n`,
);
await describe(url);

if (values.once) {
  const failures = await runScript({
    url,
    manifests,
    triage: "triage-token",
    editor: "editor-token",
    look: () => runtime.look(),
    say: terminal.out,
  });
  await close();
  terminal.out(failures === 0 ? "Every step went as documented.\n" : `${failures} steps did not go as documented.\n`);
  process.exitCode = failures === 0 ? 0 : 1;
} else {
  terminal.out("Interrupt with Ctrl-C.\n");
  await new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
  await close();
}
