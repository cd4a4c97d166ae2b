import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { describe, it } from "node:test";
import { Stalled } from "../../../../src/api/errors.ts";
import { newRootKeys, readRootEntries, rootEntries, rootPublicKey, signedByRoot } from "../../../../src/operator/delivery/keyring.ts";

const keys = newRootKeys(Date.UTC(2026, 0, 1));

describe("the root keys", () => {
  it("come back from their Secret as they were", () => {
    const again = readRootEntries(rootEntries(keys));
    assert.equal(rootPublicKey(again), rootPublicKey(keys));
    assert.ok(again.root.equals(keys.root) && again.hosts.key.equals(keys.hosts.key) && again.catalogue.key.equals(keys.catalogue.key));
    assert.deepEqual([again.hosts.certificate, again.catalogue.certificate], [keys.hosts.certificate, keys.catalogue.certificate]);
  });

  it("sign exactly the text that is sent", () => {
    const { payload, signature } = signedByRoot(keys, { kind: "keys", boot: "b", time: 1, keys: [] });
    assert.equal(payload, '{"kind":"keys","boot":"b","time":1,"keys":[]}');
    const publicKey = createPublicKey({ key: Buffer.from(rootPublicKey(keys), "base64"), format: "der", type: "spki" });
    assert.ok(verify(null, Buffer.from(payload), publicKey, Buffer.from(signature, "base64")));
  });

  const broken: Record<string, Record<string, string>> = {
    "miss an entry": { "hosts-ca.crt": undefined as unknown as string },
    "have text that is no key": { "root.key": "nonsense" },
    "have a key of another kind": { "root.key": rootEntries(keys)["hosts-ca.key"] },
    "have a certificate of another key": { "hosts-ca.crt": keys.catalogue.certificate },
    "have text that is no certificate": { "catalogue-ca.crt": "nonsense" },
  };
  for (const [name, entries] of Object.entries(broken)) {
    it(`that ${name} are a person's to mend`, () => {
      assert.throws(
        () => readRootEntries({ ...rootEntries(keys), ...entries }),
        (error) => error instanceof Stalled && error.code === "RootKeysUnusable" && !error.message.includes("PRIVATE"),
      );
    });
  }
});
