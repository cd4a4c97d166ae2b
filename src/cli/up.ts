import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { resolve } from "node:path";
import { Invalid, messageOf } from "../api/errors.ts";
import type { JournalEntry } from "../catalogue/journal.ts";
import { componentKeyText } from "../catalogue/state.ts";
import { LocalRuntime, type LocalSettings, type RuntimeEvent } from "../local/runtime.ts";
import { callPolicyIn } from "./call-policy.ts";
import { cacheFolderOf, componentSource } from "./component-source.ts";
import { type HostOptions, hostSettings } from "./host-options.ts";
import { summaryText } from "./summary-text.ts";
import { telemetryAt, tracingAsked } from "./telemetry.ts";
import { printable, type Terminal, tone } from "./terminal.ts";

export interface UpOptions extends HostOptions {
  readonly port: number;
  readonly token?: string;
  readonly agent: readonly string[];
  /** Commander's spelling of --no-auth. */
  readonly auth: boolean;
  readonly journal?: string;
  readonly cache?: string;
  readonly callPolicy?: string;
  readonly telemetryPort?: number;
  readonly json?: boolean;
}

/** Serves a folder until the process is asked to end. */
export const up = async (terminal: Terminal, folder: string, options: UpOptions): Promise<void> => {
  const settings = await settingsOf(terminal, folder, options);
  const journal = journalOf(terminal, options);
  const telemetry = await telemetryAt(options.telemetryPort, "127.0.0.1");
  const hear = options.json
    ? (event: RuntimeEvent) => terminal.out(`${JSON.stringify(eventLine(event))}\n`)
    : (event: RuntimeEvent) => tell(terminal, settings, event);
  const traces = await tracingAsked(terminal, (error) => hear({ kind: "fault", error }));
  const runtime = new LocalRuntime(settings, {
    fetchComponent: componentSource(terminal, settings.cacheFolder),
    journal: journal.write,
    tell: hear,
    now: terminal.now,
    monotonic: () => performance.now(),
    ...(telemetry && { telemetry }),
    ...(traces.tracing && { tracing: traces.tracing }),
  });
  const asked = endAsked();
  try {
    await runtime.start();
    await asked.promise;
    if (!options.json) terminal.err("Ending: calls under way may finish.\n");
  } finally {
    asked.forget();
    await runtime.close();
    await journal.close();
    await traces.close();
  }
};

const settingsOf = async (terminal: Terminal, folder: string, options: UpOptions): Promise<LocalSettings> => ({
  folder: resolve(terminal.folder, folder),
  port: options.port,
  developerToken: options.auth ? (options.token ?? randomBytes(18).toString("base64url")) : null,
  agents: options.agent.map(agentOf),
  ...hostSettings(terminal, options),
  ...(options.callPolicy !== undefined && { policy: await callPolicyIn(resolve(terminal.folder, options.callPolicy)) }),
  cacheFolder: cacheFolderOf(terminal, options.cache),
});

const agentOf = (text: string): LocalSettings["agents"][number] => {
  const [, namespace, name, token] = /^([a-z0-9-]+)\/([a-z0-9.-]+)=(.+)$/.exec(text) ?? [];
  if (!namespace || !name || !token)
    throw new Invalid("AgentOptionInvalid", `--agent takes namespace/name=token, not ${JSON.stringify(text.split("=")[0])}`);
  return { namespace, name, token };
};

/** Both signals that ask a program to end; a second one ends it at once, by the default that is then back in force. */
const endAsked = () => {
  const { promise, resolve: ask } = Promise.withResolvers<void>();
  const handler = () => ask();
  process.once("SIGINT", handler);
  process.once("SIGTERM", handler);
  return {
    promise,
    forget: () => {
      process.removeListener("SIGINT", handler);
      process.removeListener("SIGTERM", handler);
    },
  };
};

const journalOf = (terminal: Terminal, options: UpOptions) => {
  if (options.journal === undefined) {
    const line = (entry: JournalEntry) =>
      options.json ? terminal.out(`${JSON.stringify({ event: "call", entry })}\n`) : terminal.err(journalLine(terminal, entry));
    return { write: line, close: async () => undefined };
  }
  const stream = createWriteStream(resolve(terminal.folder, options.journal), { flags: "a", mode: 0o600 });
  stream.on("error", (error) => terminal.err(`${tone(terminal, "bad", "JournalFailed:")} ${messageOf(error)}\n`));
  return {
    write: (entry: JournalEntry) => void stream.write(`${JSON.stringify(entry)}\n`),
    close: async () => {
      stream.end();
      await once(stream, "close");
    },
  };
};

const journalLine = (terminal: Terminal, { name, subject, outcome, durations, code, reason }: JournalEntry): string => {
  const why = code === null ? "" : ` ${code}: ${reason}`;
  return `${tone(terminal, outcome === "ok" ? "good" : "warn", outcome)} ${printable(name)} for ${subject} in ${durations.totalMs} ms${printable(why)}\n`;
};

const tell = (terminal: Terminal, settings: LocalSettings, event: RuntimeEvent): void => {
  switch (event.kind) {
    case "listening":
      terminal.out(`Catalogue at ${tone(terminal, "strong", event.url)}\n`);
      if (settings.developerToken === null)
        terminal.err(tone(terminal, "warn", "No token is asked for: every process on this machine may call every tool.\n"));
      else terminal.out(`Token ${tone(terminal, "strong", settings.developerToken)}\n`);
      return;
    case "telemetry":
      terminal.err(`Metrics at ${event.url}\n`);
      return;
    case "settled":
      terminal.out(summaryText(terminal, event.summary));
      return;
    case "claim-folder-made":
      terminal.err(
        `No folder was given for the claim ${event.claim} (--volume ${event.claim}=FOLDER), so it is the empty folder ${event.folder}\n`,
      );
      return;
    case "fault":
      terminal.err(`${tone(terminal, "bad", "Fault:")} ${printable(messageOf(event.error))}\n`);
      return;
    case "host":
      tellOfHost(terminal, event.event);
  }
};

const tellOfHost = (terminal: Terminal, event: Extract<RuntimeEvent, { kind: "host" }>["event"]): void => {
  const name = componentKeyText(event.key);
  if (event.kind === "failed") {
    const then =
      event.retryInMs === null ? "it stays down until its manifest or component changes" : `trying again in ${event.retryInMs} ms`;
    terminal.err(`${tone(terminal, "bad", name)} ${event.code}: ${printable(event.message)}; ${then}\n`);
  } else if (event.kind === "said") {
    terminal.err(`${tone(terminal, "dim", `${name} ${event.stream}:`)} ${printable(event.text)}\n`);
  } else if (event.kind === "ready") {
    terminal.err(`${tone(terminal, "dim", `${name} takes calls (process ${event.pid})`)}\n`);
  }
};

/** An event as `--json` prints it: names and codes, no bytes. */
const eventLine = (event: RuntimeEvent): object => {
  switch (event.kind) {
    case "listening":
    case "telemetry":
      return { event: event.kind, url: event.url };
    case "claim-folder-made":
      return { event: "claim-folder-made", claim: event.claim, folder: event.folder };
    case "fault":
      return { event: "fault", message: messageOf(event.error) };
    case "host": {
      const { kind, ...rest } = event.event;
      return { event: `host-${kind}`, ...rest };
    }
    case "settled":
      return {
        event: "settled",
        problems: event.summary.problems,
        components: event.summary.plan.components,
        grants: event.summary.plan.grants.map(({ written, judgement }) => ({
          namespace: written.object.metadata.namespace,
          grant: written.object.metadata.name,
          name: written.object.spec.declaration.name,
          phase: judgement.phase,
          reasons: judgement.reasons,
        })),
        ungranted: event.summary.plan.ungranted,
      };
  }
};
