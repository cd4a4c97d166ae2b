import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import { LocalRuntime } from "../../src/local/runtime.ts";

test("a runtime that is closed while it looks at its folder starts nothing afterwards and leaves nothing running", async () => {
  const place = await mkdtemp(join(tmpdir(), "ambit-close-"));
  const folder = join(place, "manifests");
  const file = join(folder, "tool.wasm");
  await mkdir(folder);
  await cp(new URL("../fixtures/components/mission.wasm", import.meta.url), file);
  const spec = (name: string) =>
    `apiVersion: ambit.dev/v1alpha1\nkind: Workload\nmetadata: {name: ${name}}\nspec:\n  components:\n  - {name: tool, image: 'file:tool.wasm'}\n`;
  await writeFile(join(folder, "one.yaml"), spec("one"));
  const fetched = Promise.withResolvers<void>();
  let isHeld = false;
  const held = Promise.withResolvers<void>();
  const events: string[] = [];
  const runtime = new LocalRuntime(
    {
      folder,
      port: 0,
      developerToken: "t",
      agents: [],
      claims: new Map(),
      given: { secrets: new Map(), configMaps: new Map() },
      hostOverrides: {},
      privateRanges: [],
      cacheFolder: join(place, "cache"),
    },
    {
      fetchComponent: async () => {
        if (isHeld) {
          fetched.resolve();
          await held.promise;
        }
        const bytes = await readFile(file);
        return { digest: sha256Of(bytes), file, read: async () => bytes };
      },
      journal: () => undefined,
      tell: (event) => event.kind === "host" && events.push(event.event.kind),
      now: Date.now,
      monotonic: () => performance.now(),
    },
  );
  await runtime.start();
  assert.equal(runtime.hostProcessIds().length, 1);
  isHeld = true;
  await writeFile(join(folder, "two.yaml"), spec("two"));
  const looking = runtime.look();
  await fetched.promise;
  const closing = runtime.close();
  held.resolve();
  await Promise.all([looking, closing]);
  assert.deepEqual(runtime.hostProcessIds(), []);
  assert.equal(events.filter((kind) => kind === "starting").length, 1, events.join());
  await rm(place, { recursive: true, force: true });
});
