import assert from "node:assert/strict";
import { test } from "node:test";
import { Informer } from "../../../src/kube/informer.ts";
import type { ClusterObject, ResourceType } from "../../../src/kube/object.ts";
import { ManualClock } from "./manual-clock.ts";
import { ScriptedServer, until } from "./scripted-server.ts";

const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

test("an informer keeps what its trim leaves, by default all but the field managers, from lists and from watches", async () => {
  const object = (name: string) => ({
    metadata: { name, uid: name, resourceVersion: name, managedFields: [{ manager: "m" }] },
    data: { a: "1" },
  });
  await using server = await ScriptedServer.start(({ query }) =>
    query.has("watch")
      ? { stream: (response) => void response.write(`${JSON.stringify({ type: "ADDED", object: object("watched") })}\n`) }
      : { json: { metadata: { resourceVersion: "1" }, items: [object("listed")] } },
  );
  const clock = new ManualClock();
  const client = server.client(clock);
  const end = new AbortController();
  const made = { client, type: configMaps, clock, random: () => 0 };
  const whole = new Informer<ClusterObject & { data?: unknown }>({ ...made, indexes: { name: ({ metadata }) => [metadata.name] } });
  const names = new Informer<ClusterObject & { data?: unknown }>({
    ...made,
    trim: ({ metadata: { name, uid = "", resourceVersion = "" } }) => ({ metadata: { name, uid, resourceVersion } }),
  });
  assert.equal(whole.isSynced, false);
  const ended = Promise.all([whole.run(end.signal), names.run(end.signal)]);
  await Promise.all([whole.synced, names.synced]);
  assert.equal(whole.isSynced, true);
  await until(() => whole.store.size === 2 && names.store.size === 2, "the watches' objects");
  for (const name of ["listed", "watched"]) {
    const kept = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, uid: name, resourceVersion: name }, data: { a: "1" } };
    assert.deepEqual(whole.store.find("name", name), [kept]);
    assert.deepEqual(names.store.get(name), { metadata: { name, uid: name, resourceVersion: name } });
  }
  end.abort();
  await ended;
  await client.close();
});
