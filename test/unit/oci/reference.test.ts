import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AmbitError, Invalid } from "../../../src/api/errors.ts";
import { formatReference, parseImageReference } from "../../../src/oci/reference.ts";

const hex = "0123456789abcdef".repeat(4);
const digest = `sha256:${hex}` as const;

const accepted: Record<string, { text: string; is: object; full?: string }> = {
  "a registry, a path and a digest": {
    text: `ghcr.io/example/tools/github@${digest}`,
    is: { kind: "registry", registry: "ghcr.io", repository: "example/tools/github", tag: null, digest },
  },
  "a tag beside a digest is kept for people": {
    text: `ghcr.io/example/github:1.2.3@${digest}`,
    is: { kind: "registry", registry: "ghcr.io", repository: "example/github", tag: "1.2.3", digest },
  },
  "a port is not a tag": {
    text: "localhost:5000/tool",
    is: { kind: "registry", registry: "localhost:5000", repository: "tool", tag: null, digest: null },
  },
  "an IPv6 registry": {
    text: "[::1]:5000/a/b:v1",
    is: { kind: "registry", registry: "[::1]:5000", repository: "a/b", tag: "v1", digest: null },
  },
  "a name without a registry is Docker Hub's": {
    text: "someone/tool:1",
    is: { kind: "registry", registry: "docker.io", repository: "someone/tool", tag: "1", digest: null },
    full: "docker.io/someone/tool:1",
  },
  "a single name is one of Docker Hub's own": {
    text: "tool",
    is: { kind: "registry", registry: "docker.io", repository: "library/tool", tag: null, digest: null },
    full: "docker.io/library/tool",
  },
  "a registry's case does not matter": {
    text: "GHCR.io/a/b",
    is: { kind: "registry", registry: "ghcr.io", repository: "a/b", tag: null, digest: null },
    full: "ghcr.io/a/b",
  },
  "a file, relative to its manifest": { text: "file:target/tool.wasm", is: { kind: "file", path: "target/tool.wasm", digest: null } },
  "a file above its manifest, pinned": { text: `file:../tool.wasm@${digest}`, is: { kind: "file", path: "../tool.wasm", digest } },
  "a file URL without a host": {
    text: "file:///srv/tool.wasm",
    is: { kind: "file", path: "/srv/tool.wasm", digest: null },
    full: "file:/srv/tool.wasm",
  },
};

for (const [sentence, { text, is, full }] of Object.entries(accepted)) {
  test(`accepted: ${sentence}`, () => {
    const reference = parseImageReference(text);
    assert.deepEqual(reference, is);
    assert.equal(formatReference(reference), full ?? text);
  });
}

const refused: Record<string, { text: string; because: RegExp }> = {
  "an empty text": { text: "", because: /no part of a repository name/ },
  "a path that does not say that it is a file": { text: "./tool.wasm", because: /a file is written file:\.\/tool\.wasm/ },
  "a scheme": { text: "https://ghcr.io/a/b", because: /"https:" is no registry host/ },
  "upper case in the path": { text: "ghcr.io/Example/tool", because: /"Example" is no part of a repository name/ },
  "an empty path component": { text: "ghcr.io/a//b", because: /"" is no part/ },
  "dots that climb": { text: "ghcr.io/a/../b", because: /"\.\." is no part/ },
  "a query": { text: "ghcr.io/a/b?x=1", because: /no part of a repository name/ },
  "an empty tag": { text: "ghcr.io/a/b:", because: /"" is no tag/ },
  "a digest of another algorithm": { text: `ghcr.io/a/b@sha512:${hex}${hex}`, because: /after @ there must be sha256:/ },
  "a digest in upper case": { text: `ghcr.io/a/b@sha256:${hex.toUpperCase()}`, because: /after @ there must be sha256:/ },
  "a short digest": { text: "ghcr.io/a/b@sha256:abc", because: /after @ there must be sha256:/ },
  "user info": { text: `user:password@ghcr.io/a/b@${digest}`, because: /is wrong/ },
  "a port beyond the last": { text: "ghcr.io:70000/a/b", because: /70000 is no port/ },
  "a host with a space": { text: "gh cr.io/a/b", because: /"gh cr\.io" is no registry host/ },
  "a file on another host": { text: "file://server/share/tool.wasm", because: /not a host/ },
  "a file without a path": { text: "file:", because: /a path must follow/ },
  "a text that is too long": { text: `ghcr.io/${"a".repeat(600)}`, because: /more than the 512 allowed/ },
};

for (const [sentence, { text, because }] of Object.entries(refused)) {
  test(`refused: ${sentence}`, () => {
    assert.throws(
      () => parseImageReference(text),
      (thrown: unknown) => thrown instanceof Invalid && thrown.code === "ImageReferenceInvalid" && because.test(thrown.message),
    );
  });
}

test("any text either reads, and then its full form reads as the same, or is refused by name", () => {
  const piece = fc.constantFrom(
    "a",
    "b1",
    ".",
    ":",
    "/",
    "@",
    "-",
    "_",
    "sha256:",
    digest,
    "localhost",
    "ghcr.io",
    "[::1]",
    "file:",
    "%2e",
    "\0",
    "é",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      try {
        const reference = parseImageReference(pieces.join(""));
        assert.deepEqual(parseImageReference(formatReference(reference)), reference);
      } catch (thrown) {
        if (!(thrown instanceof AmbitError)) throw thrown;
        assert.equal(thrown.code, "ImageReferenceInvalid");
      }
    }),
    { numRuns: 2000 },
  );
});
