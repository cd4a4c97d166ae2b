import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { parseDockerConfig } from "../../../src/oci/docker-config.ts";
import { dockerConfigPath, readDockerConfig } from "../../../src/oci/docker-config-file.ts";
import { parseImageReference, type RegistryReference } from "../../../src/oci/reference.ts";

const referenceTo = (text: string): RegistryReference => {
  const reference = parseImageReference(text);
  assert.equal(reference.kind, "registry");
  return reference as RegistryReference;
};

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const password = (username: string, secret: string) => ({ kind: "password", username, password: secret });

const cases: Record<string, { config: object; image: string; credentials: object | null; helper?: string }> = {
  "auth is the base64 of user and password": {
    config: { auths: { "ghcr.io": { auth: base64("me:pa:ss") } } },
    image: "ghcr.io/a/b",
    credentials: password("me", "pa:ss"),
  },
  "a pull secret may write user and password out": {
    config: { auths: { "ghcr.io": { username: "me", password: "secret", auth: base64("other:other") } } },
    image: "ghcr.io/a/b",
    credentials: password("me", "secret"),
  },
  "a key may be a URL": {
    config: { auths: { "https://ghcr.io/v2/": { auth: base64("me:x") } } },
    image: "ghcr.io/a/b",
    credentials: password("me", "x"),
  },
  "Docker Hub goes by its old name": {
    config: { auths: { "https://index.docker.io/v1/": { auth: base64("me:x") } } },
    image: "someone/tool",
    credentials: password("me", "x"),
  },
  "the longest path decides": {
    config: { auths: { "ghcr.io": { auth: base64("all:x") }, "ghcr.io/team": { auth: base64("team:x") } } },
    image: "ghcr.io/team/tool",
    credentials: password("team", "x"),
  },
  "a path matches by whole components": {
    config: { auths: { "ghcr.io/team": { auth: base64("team:x") } } },
    image: "ghcr.io/teams/tool",
    credentials: null,
  },
  "another port is another registry": {
    config: { auths: { "ghcr.io:444": { auth: base64("me:x") } } },
    image: "ghcr.io/a/b",
    credentials: null,
  },
  "another host that ends alike is another registry": {
    config: { auths: { "cr.io": { auth: base64("me:x") } } },
    image: "ghcr.io/a/b",
    credentials: null,
  },
  "an identity token is a refresh token": {
    config: { auths: { "r.example": { auth: base64("me:"), identitytoken: "abc" } } },
    image: "r.example/a",
    credentials: { kind: "refresh-token", token: "abc" },
  },
  "an entry that a helper keeps the secret of is empty": {
    config: { auths: { "ghcr.io": {} }, credsStore: "desktop" },
    image: "ghcr.io/a/b",
    credentials: null,
    helper: "desktop",
  },
  "a helper for one registry comes before the store": {
    config: { credHelpers: { "gcr.io": "gcloud" }, credsStore: "desktop" },
    image: "gcr.io/a/b",
    credentials: null,
    helper: "gcloud",
  },
  "__proto__ is a registry like any other": {
    config: JSON.parse('{"auths":{"__proto__":{"auth":"bWU6eA=="}}}'),
    image: "ghcr.io/a/b",
    credentials: null,
  },
};

for (const [sentence, { config, image, credentials, helper }] of Object.entries(cases)) {
  test(sentence, () => {
    const read = parseDockerConfig(JSON.stringify(config));
    assert.deepEqual(read.credentialsFor(referenceTo(image)), credentials);
    assert.equal(read.helperFor(referenceTo(image)), helper ?? null);
  });
}

const broken: Record<string, string> = {
  "no JSON": '{"auths": {"ghcr.io": {"auth": "c2VjcmV0',
  "no object": "[1]",
  "auths that is no object": '{"auths": []}',
  "an entry that is no object": '{"auths": {"ghcr.io": "c2VjcmV0"}}',
  "an auth without a colon": '{"auths": {"ghcr.io": {"auth": "c2VjcmV0"}}}',
};

for (const [what, text] of Object.entries(broken)) {
  test(`a configuration with ${what} is refused without telling its content`, () => {
    assert.throws(
      () => parseDockerConfig(text),
      (thrown: unknown) => thrown instanceof Invalid && thrown.code === "DockerConfigInvalid" && !/c2VjcmV0|secret/.test(thrown.message),
    );
  });
}

test("the configuration is where Docker's clients look for it", async () => {
  assert.equal(dockerConfigPath({}, "/home/me"), "/home/me/.docker/config.json");
  assert.equal(dockerConfigPath({ DOCKER_CONFIG: "/etc/docker" }, "/home/me"), "/etc/docker/config.json");
  const read = await readDockerConfig("/nowhere/config.json");
  assert.equal(read.credentialsFor(referenceTo("ghcr.io/a/b")), null);
});
