import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import { AmbitError, Waiting } from "../../src/api/errors.ts";
import { openContentCache } from "../../src/oci/content-cache.ts";
import { parseDockerConfig, type RegistryCredentials } from "../../src/oci/docker-config.ts";
import { fetchComponent, type PulledComponent, type PullOptions } from "../../src/oci/pull.ts";
import { createTransport } from "../../src/oci/transport.ts";
import { type Answer, type Front, startFront } from "../registry/front.ts";

/** Registries that ask for credentials, redirect, lie, stall or lead elsewhere: each one an HTTP server that answers as the case says. */

const component = Buffer.from("\0asm a component");
const componentDigest = sha256Of(component);
const manifest = JSON.stringify({
  schemaVersion: 2,
  config: {},
  layers: [{ mediaType: "application/wasm", digest: componentDigest, size: component.length }],
});
const manifestDigest = sha256Of(manifest);

const serve: Answer = ({ url }, response) => {
  if (url.pathname === `/v2/team/tool/manifests/${manifestDigest}`) response.end(manifest);
  else if (url.pathname === `/v2/team/tool/blobs/${componentDigest}`) response.end(component);
  else response.writeHead(404).end();
};

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-oci-"));
});
after(() => rm(folder, { recursive: true }));

interface Pulling extends Partial<PullOptions> {
  readonly refusedAddress?: (address: string) => string | null;
  readonly ca?: readonly string[];
}

const pull = async ({ authority }: Front, { refusedAddress = () => null, ca, ...more }: Pulling = {}): Promise<PulledComponent> =>
  fetchComponent(`${authority}/team/tool@${manifestDigest}`, ".", {
    transport: createTransport({ refusedAddress, ...(ca === undefined ? {} : { ca }) }),
    cache: openContentCache(await mkdtemp(join(folder, "cache-"))),
    ...more,
  });

const failsWith =
  (code: string, message: RegExp = /./) =>
  (thrown: unknown): boolean => {
    assert.ok(thrown instanceof AmbitError, String(thrown));
    assert.equal(thrown.code, code, thrown.message);
    assert.match(thrown.message, message);
    return true;
  };

const credentialsFor = (authority: string, entry: object): RegistryCredentials =>
  parseDockerConfig(JSON.stringify({ auths: { [authority]: entry } }));
const basicOf = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

/** A registry that wants a bearer token, and the token server that it names. */
const startTokenRegistry = async (grant: Answer): Promise<{ registry: Front; tokens: Front } & AsyncDisposable> => {
  const tokens = await startFront(grant);
  const registry = await startFront((request, response) => {
    if (request.authorization === "Bearer good") return serve(request, response);
    const challenge = `Bearer realm="http://${tokens.authority}/token",service="the registry",scope="repository:team/tool:pull"`;
    response
      .writeHead(401, { "www-authenticate": challenge })
      .end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication\\u001b[31m required"}]}');
  });
  return {
    registry,
    tokens,
    [Symbol.asyncDispose]: async () => {
      await registry[Symbol.asyncDispose]();
      await tokens[Symbol.asyncDispose]();
    },
  };
};

test("an anonymous token is fetched once and used for manifest and layer", async () => {
  await using both = await startTokenRegistry((_, response) => void response.end('{"token":"good"}'));
  assert.equal((await pull(both.registry)).digest, componentDigest);
  assert.deepEqual(
    both.tokens.requests.map(({ url, authorization }) => [url.searchParams.get("scope"), url.searchParams.get("service"), authorization]),
    [["repository:team/tool:pull", "the registry", null]],
  );
});

test("the password goes to the token server and not to the registry", async () => {
  await using both = await startTokenRegistry(({ authorization }, response) => {
    if (authorization === basicOf("me:secret")) response.end('{"access_token":"good"}');
    else response.writeHead(401).end();
  });
  const credentials = credentialsFor(both.registry.authority, { username: "me", password: "secret" });
  assert.equal((await pull(both.registry, { credentials })).digest, componentDigest);
  assert.ok(both.registry.requests.every(({ authorization }) => authorization === null || authorization === "Bearer good"));
});

test("a refresh token is exchanged by a form", async () => {
  await using both = await startTokenRegistry(({ method, body }, response) => {
    const form = new URLSearchParams(body);
    const right = method === "POST" && form.get("grant_type") === "refresh_token" && form.get("refresh_token") === "refresh";
    response.writeHead(right ? 200 : 400).end('{"access_token":"good"}');
  });
  const credentials = credentialsFor(both.registry.authority, { identitytoken: "refresh" });
  assert.equal((await pull(both.registry, { credentials })).digest, componentDigest);
});

test("a registry that asks for Basic gets the password", async () => {
  await using registry = await startFront((request, response) => {
    if (request.authorization === basicOf("me:secret")) return serve(request, response);
    response.writeHead(401, { "www-authenticate": 'Basic realm="registry"' }).end();
  });
  const credentials = credentialsFor(registry.authority, { auth: Buffer.from("me:secret").toString("base64") });
  assert.equal((await pull(registry, { credentials })).digest, componentDigest);
});

test("credentials of another registry are not sent", async () => {
  await using both = await startTokenRegistry((_, response) => void response.writeHead(401).end());
  const credentials = credentialsFor("elsewhere.example", { username: "me", password: "secret" });
  await assert.rejects(pull(both.registry, { credentials }), failsWith("Unauthorized", /there were no credentials for it/));
  assert.ok([...both.registry.requests, ...both.tokens.requests].every(({ authorization }) => authorization === null));
});

test("a refused password is told without the password", async () => {
  await using both = await startTokenRegistry((_, response) => void response.writeHead(401).end());
  const credentials = credentialsFor(both.registry.authority, { username: "me", password: "secret" });
  await assert.rejects(
    pull(both.registry, { credentials }),
    (thrown: unknown) => failsWith("Unauthorized", /were not accepted/)(thrown) && !String(thrown).includes("secret"),
  );
});

test("a credential helper is named and not run", async () => {
  await using registry = await startFront((_, response) => void response.writeHead(403).end());
  const credentials = parseDockerConfig('{"credsStore":"desktop"}');
  await assert.rejects(pull(registry, { credentials }), failsWith("Unauthorized", /helper "desktop", which is a program and is not run/));
});

const uselessTokens: Record<string, string> = {
  "no token": "{}",
  "a token that would end the header": '{"token":"good\\r\\nx: y"}',
  "no JSON": "<html>",
  "a token that is too long to read": `{"token":"${"x".repeat(300_000)}"}`,
};
for (const [what, body] of Object.entries(uselessTokens)) {
  test(`a token server that answers with ${what} is told of`, async () => {
    await using both = await startTokenRegistry((_, response) => void response.end(body));
    await assert.rejects(pull(both.registry), (thrown: unknown) => thrown instanceof AmbitError && /the token server/.test(thrown.message));
  });
}

test("a registry that refuses even its own token is asked twice and no more", async () => {
  await using both = await startTokenRegistry((_, response) => void response.end('{"token":"bad"}'));
  await assert.rejects(pull(both.registry), failsWith("Unauthorized", /"UNAUTHORIZED: authentication \[31m required"/));
  assert.equal(both.registry.requests.length, 2);
});

test("storage that a layer redirects to does not see the credentials", async () => {
  await using storage = await startFront((_, response) => void response.end(component));
  await using registry = await startFront((request, response) => {
    if (request.authorization !== basicOf("me:secret")) response.writeHead(401, { "www-authenticate": "Basic" }).end();
    else if (request.url.pathname.includes("/blobs/"))
      response.writeHead(307, { location: `http://${storage.authority}/x?signature=1` }).end();
    else return serve(request, response);
  });
  const credentials = credentialsFor(registry.authority, { username: "me", password: "secret" });
  assert.equal((await pull(registry, { credentials })).digest, componentDigest);
  assert.deepEqual(
    storage.requests.map(({ authorization, url }) => [authorization, url.search]),
    [[null, "?signature=1"]],
  );
});

test("a redirect within the registry keeps the credentials", async () => {
  await using registry = await startFront((request, response) => {
    if (request.authorization !== basicOf("me:secret")) response.writeHead(401, { "www-authenticate": "Basic" }).end();
    else if (request.url.pathname.includes("/blobs/")) response.writeHead(302, { location: "/moved" }).end();
    else if (request.url.pathname === "/moved") response.end(component);
    else return serve(request, response);
  });
  const credentials = credentialsFor(registry.authority, { username: "me", password: "secret" });
  assert.equal((await pull(registry, { credentials })).digest, componentDigest);
});

const lies: Record<string, { answer: Answer; code: string; message?: RegExp }> = {
  "another manifest": { answer: (_, response) => void response.end(manifest.replace("2", "2 ")), code: "DigestMismatch" },
  "another layer of the same length": {
    answer: (request, response) =>
      request.url.pathname.includes("/blobs/") ? void response.end(Buffer.alloc(component.length)) : serve(request, response),
    code: "DigestMismatch",
  },
  "a layer cut short": {
    answer: (request, response) =>
      request.url.pathname.includes("/blobs/") ? void response.end(component.subarray(1)) : serve(request, response),
    code: "RegistryUnavailable",
    message: /15 of 16 bytes/,
  },
  "a layer that goes on": {
    answer: (request, response) =>
      request.url.pathname.includes("/blobs/") ? void response.end(Buffer.alloc(100_000)) : serve(request, response),
    code: "ImageTooLarge",
  },
  "a manifest without end": { answer: (_, response) => void response.end(Buffer.alloc(5 * 1024 * 1024, " ")), code: "ImageTooLarge" },
  "a connection that breaks within the layer": {
    answer: (request, response) => {
      if (!request.url.pathname.includes("/blobs/")) return serve(request, response);
      response.writeHead(200, { "content-length": component.length }).write(component.subarray(0, 4), () => response.destroy());
    },
    code: "RegistryUnavailable",
  },
  "a redirect to itself, again and again": {
    answer: ({ url }, response) => void response.writeHead(302, { location: url.pathname }).end(),
    code: "RegistryRedirectRefused",
    message: /more than 5 times/,
  },
  "a redirect to a file": {
    answer: (_, response) => void response.writeHead(302, { location: "file:///etc/passwd" }).end(),
    code: "RegistryRedirectRefused",
    message: /not https/,
  },
  "a redirect to nowhere": {
    answer: (_, response) => void response.writeHead(302).end(),
    code: "RegistryRedirectRefused",
    message: /no URL/,
  },
  "a token server that is a file": {
    answer: (_, response) => void response.writeHead(401, { "www-authenticate": 'Bearer realm="file:///etc/passwd"' }).end(),
    code: "RegistryRedirectRefused",
    message: /no https URL/,
  },
  "a challenge that nobody knows": {
    answer: (_, response) => void response.writeHead(401, { "www-authenticate": "Negotiate" }).end(),
    code: "Unauthorized",
  },
  "an internal error": { answer: (_, response) => void response.writeHead(500).end(), code: "RegistryUnavailable", message: /HTTP 500/ },
};

for (const [what, { answer, code, message }] of Object.entries(lies)) {
  test(`a registry that answers with ${what} is ${code}, and nothing of it is kept`, async () => {
    await using registry = await startFront(answer);
    const cache = openContentCache(await mkdtemp(join(folder, "cache-")));
    await assert.rejects(pull(registry, { cache }), failsWith(code, message));
    assert.equal(await cache.read(componentDigest, component.length), null);
  });
}

test("a registry that is busy says when to come back", async () => {
  await using registry = await startFront((_, response) => void response.writeHead(429, { "retry-after": "7" }).end());
  await assert.rejects(
    pull(registry),
    (thrown: unknown) => failsWith("RegistryBusy")(thrown) && thrown instanceof Waiting && thrown.retryAfterMs === 7000,
  );
});

test("a registry that sends nothing more is given up at the deadline", async () => {
  await using registry = await startFront((request, response) => {
    if (request.url.pathname.includes("/blobs/")) response.writeHead(200).write("x");
    else return serve(request, response);
  });
  await assert.rejects(pull(registry, { timeoutMs: 300 }), failsWith("RegistryTimeout"));
});

test("a caller that gives up gets its own reason", async () => {
  const given = new AbortController();
  await using registry = await startFront(() => given.abort(new Error("the folder changed")));
  await assert.rejects(pull(registry, { signal: given.signal }), /the folder changed/);
});

const loopbackRefused = (address: string): string | null => (address === "127.0.0.1" ? "a loopback address" : null);

test("a registry at a refused address is not dialled, by name or by number", async () => {
  await using registry = await startFront(serve);
  const refused = failsWith("RegistryAddressRefused", /127\.0\.0\.1 is a loopback address/);
  await assert.rejects(pull(registry, { refusedAddress: loopbackRefused }), refused);
  const refuseAll = (address: string): string => `refused (${address})`;
  const named = { ...registry, authority: registry.authority.replace("127.0.0.1", "localhost") };
  await assert.rejects(pull(named, { refusedAddress: refuseAll }), failsWith("RegistryAddressRefused", /localhost cannot be dialled/));
  assert.deepEqual(registry.requests, []);
});

for (const [what, written] of Object.entries({ decimal: "2130706433", hexadecimal: "0x7f.1", "IPv4 in IPv6": "[::ffff:127.0.0.1]" })) {
  test(`a redirect to a refused address written as ${what} is not followed`, async () => {
    await using inner = await startFront(serve);
    const port = inner.authority.split(":")[1];
    await using registry = await startFront(
      (_, response) => void response.writeHead(302, { location: `http://${written}:${port}/` }).end(),
    );
    const refusedAddress = (address: string): string | null =>
      registry.authority.startsWith(address) && registry.requests.length === 0 ? null : "refused";
    await assert.rejects(pull(registry, { refusedAddress }), failsWith("RegistryAddressRefused"));
    assert.deepEqual(inner.requests, []);
  });
}

test("a token server at a refused address gets nothing", async () => {
  await using tokens = await startFront((_, response) => void response.end('{"token":"good"}'));
  const realm = `http://localhost:${tokens.authority.split(":")[1]}/token`;
  await using registry = await startFront(
    (_, response) => void response.writeHead(401, { "www-authenticate": `Bearer realm="${realm}"` }).end(),
  );
  const refusedAddress = (address: string): string | null => (address === "127.0.0.1" && registry.requests.length === 0 ? null : "refused");
  await assert.rejects(pull(registry, { refusedAddress }), failsWith("RegistryAddressRefused"));
  assert.deepEqual(tokens.requests, []);
});

/** A certificate for localhost that was made for this test and that nothing trusts. */
const certificate = (name: string): Promise<Buffer> => readFile(resolve(import.meta.dirname, "../fixtures/oci", name));

test("a certificate has to be trusted, and a configured authority makes it so", async () => {
  const cert = await certificate("localhost.cert.pem");
  await using registry = await startFront(serve, { key: await certificate("localhost.key.pem"), cert });
  const overTls = { isPlainHttp: () => false };
  await assert.rejects(pull(registry, overTls), failsWith("RegistryUntrusted", /certificate of localhost/));
  assert.equal((await pull(registry, { ...overTls, ca: [cert.toString()] })).digest, componentDigest);
});

test("a registry with TLS may not lead to plain HTTP", async () => {
  const cert = await certificate("localhost.cert.pem");
  await using storage = await startFront(serve);
  const answer: Answer = (_, response) => void response.writeHead(302, { location: `http://${storage.authority}/` }).end();
  await using registry = await startFront(answer, { key: await certificate("localhost.key.pem"), cert });
  const overTls = { isPlainHttp: () => false, ca: [cert.toString()] };
  await assert.rejects(pull(registry, overTls), failsWith("RegistryRedirectRefused", /not https/));
  assert.deepEqual(storage.requests, []);
});
