import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ambit, type RunningUp, startUp } from "../../support/ambit-command.ts";

const components = fileURLToPath(new URL("../../fixtures/components/", import.meta.url));
const token = "developer-token";

export interface Answer {
  readonly outcome: string;
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent?: { readonly result: unknown };
  readonly reason?: { readonly code: string; readonly message: string };
}

/** `ambit up` over a folder of its own, in which tools of one component are granted. */
export interface ServedFolder {
  readonly folder: string;
  readonly up: RunningUp;
  /** Sends this body as it is; a text need not be JSON. */
  readonly post: (body: string | Uint8Array, query?: string) => Promise<{ status: number; text: string }>;
  readonly call: (name: string, args: object) => Promise<Answer>;
  readonly close: () => Promise<void>;
}

export const workload = (name: string, file: string): string => `apiVersion: ambit.dev/v1alpha1
kind: Workload
metadata: {name: ${name}, namespace: agents}
spec:
  components:
  - name: ${name}
    image: file:${file}
    limits: {timeout: 5s}
`;

/** Serves a fixture, with every function granted of which `isGranted` holds. */
export const serveFolder = async (fixture: string, isGranted: (draft: string) => boolean): Promise<ServedFolder> => {
  const place = await mkdtemp(join(tmpdir(), "ambit-bad-input-"));
  const remove = () => rm(place, { recursive: true, force: true });
  try {
    const folder = join(place, "manifests");
    const cache = ["--cache", join(place, "cache")];
    await mkdir(folder);
    await cp(join(components, `${fixture}.wasm`), join(folder, "tool.wasm"));
    await writeFile(join(folder, "tool.yaml"), workload("tool", "tool.wasm"));
    const run = async (...args: string[]) => {
      const { code, err } = await ambit([...args, ...cache]);
      assert.equal(code, 0, err);
    };
    const drafts = join(place, "drafts");
    await run("draft", folder, "--out", drafts);
    for (const file of (await readdir(drafts)).filter(isGranted)) {
      const draft = await readFile(join(drafts, file), "utf8");
      await writeFile(join(folder, file), draft.replace('    description: ""\n', "    description: Gives back what it got.\n"));
    }
    const files = (await readdir(folder)).filter((file) => file.startsWith("tool-")).map((file) => join(folder, file));
    await run("approve", "--yes", "--read-only", "--subject", "ServiceAccount:agents/triage", "--reviewer", "ana", ...files);
    const up = await startUp(folder, ["--token", token, ...cache]);
    const post: ServedFolder["post"] = async (body, query = "") => {
      const response = await fetch(`${up.url}/v1/calls${query}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: Buffer.from(body),
      });
      return { status: response.status, text: await response.text() };
    };
    const call: ServedFolder["call"] = async (name, args) => {
      const { status, text } = await post(JSON.stringify({ name, arguments: args }));
      assert.equal(status, 200, text);
      return JSON.parse(text) as Answer;
    };
    const close = async () => {
      await up.stop();
      await remove();
    };
    return { folder, up, post, call, close };
  } catch (error) {
    await remove();
    throw error;
  }
};
