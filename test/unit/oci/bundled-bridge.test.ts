import assert from "node:assert/strict";
import { test } from "node:test";
import { bridgeDigest } from "../../../src/api/bridge-component.ts";
import { sha256Of } from "../../../src/api/digest.ts";
import { readBridge } from "../../../src/oci/bundled-bridge.ts";

test("the bridge that comes with Ambit is the one that its code names", async () => {
  assert.equal(sha256Of(await readBridge()), bridgeDigest);
});
