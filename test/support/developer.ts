import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunningUp } from "./ambit-command.ts";
import { type ServedFolder, token } from "./served-folder.ts";

/** What a developer sees of a running catalogue, and does to its folder. */
export const developerOf = (running: () => { readonly up: RunningUp; readonly folder: ServedFolder }) => {
  const ask = async (path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(
      `${running().up.url}${path}`,
      body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) },
    );
    // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it isn't there
    return (await response.json()) as any;
  };
  const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    const deadline = Date.now() + 30_000;
    while (!(await holds())) {
      assert.ok(Date.now() < deadline, what);
      await new Promise((passed) => setTimeout(passed, 100));
    }
  };
  const offered = async (): Promise<string> => ((await ask("/v1/declarations")) as { name: string }[]).map(({ name }) => name).join();
  const comesToBe = (wanted: string): Promise<void> =>
    until(`these come to be offered: ${wanted}`, async () => (await offered()) === wanted);
  const write = (spec: object) =>
    writeFile(
      join(running().folder.manifests, "workload.yaml"),
      JSON.stringify({ apiVersion: "ambit.dev/v1alpha1", kind: "Workload", metadata: { name: "bench", namespace: "agents" }, spec }),
    );
  return { ask, until, offered, comesToBe, write };
};
