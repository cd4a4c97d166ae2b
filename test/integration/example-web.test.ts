import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type ExampleTool, startExample } from "./example-tool.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers }).end(JSON.stringify(value));
  };

const typed =
  (mediaType: string, body: string | Buffer): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-type": mediaType }).end(body);
  };

const redirect =
  (location: string): Answer =>
  (_request, response) => {
    response.writeHead(302, { location }).end();
  };

const page = `<!doctype html><html><head><title>Spoons &amp; forks</title><style>p { color: red }</style></head>
<body><h1>Spoons</h1><p>They   bend,
mostly.</p><script>alert("<p>")</script><ul><li>big<li>small</ul><p>5 &lt; 6 &#x263A; a<b</p></body></html>`;

const issue = (number: number, more: object = {}) => ({
  number,
  title: `Issue ${number}`,
  state: "open",
  user: { login: "ana" },
  labels: [{ name: "bug" }],
  comments: 1,
  created_at: "2026-05-01T00:00:00Z",
  updated_at: "2026-05-04T12:00:00Z",
  body: null,
  ...more,
});

/** By path and query: pages, and what GitHub's REST API says of one repository. */
const answers: Record<string, Answer> = {
  "/page": typed("text/html; charset=utf-8", page),
  "/latin": typed("text/plain; charset=iso-8859-1", Buffer.from([0x63, 0x61, 0x66, 0xe9])),
  "/image": typed("image/png", Buffer.from([0x89, 0x50])),
  "/hop": redirect("page?x=1"),
  "/page?x=1": typed("text/plain", "landed"),
  "/loop": redirect("/loop"),
  "/away": redirect("http://elsewhere.test/"),
  "/broken": json({ message: "out of order" }, 503),
  "/repos/octo/spoon/issues?state=open&per_page=30&page=1&labels=good%20first%20issue,bug": json([
    issue(7),
    issue(8, { pull_request: {} }),
  ]),
  "/repos/octo/spoon/issues/7": json(issue(7, { body: "It bends." })),
  "/repos/octo/spoon/issues/7/comments?per_page=30": json([{ user: null, created_at: "2026-05-02T00:00:00Z", body: "Indeed." }]),
  "/repos/octo/spoon/pulls/9": json({
    ...issue(9, { body: "Straightens it." }),
    draft: true,
    merged: false,
    base: { ref: "main", label: "octo:main" },
    head: { ref: "fix", label: "ana:fix" },
    additions: 3,
    deletions: 1,
    changed_files: 1,
  }),
  "/repos/octo/spoon/pulls/9/files?per_page=100": json([{ filename: "spoon.rs", status: "modified", additions: 3, deletions: 1 }]),
  "/repos/octo/spoon/contents/src/a%20b.rs?ref=v1%2B2": (request, response) => {
    const raw = request.headers.accept?.includes("raw");
    response.writeHead(200).end(raw ? "fn main() {}\n" : "{}");
  },
  "/repos/octo/spoon/contents/src": json([{ type: "file", name: "a b.rs" }]),
  "/repos/octo/busy/issues/1": json({ message: "API rate limit exceeded" }, 403, {
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": "1777900000",
  }),
  "/repos/octo/odd/issues/1": json({ number: "one" }),
};

let server: Server;
let fetcher: ExampleTool;
let github: ExampleTool;

before(async () => {
  server = createServer((request, response) => (answers[request.url ?? ""] ?? json({ message: "Not Found" }, 404))(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const local = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  fetcher = await startExample("fetch", "ambit:fetch/web@0.1.0", {
    allowedHosts: ["http://pages.test"],
    hostOverrides: { "pages.test:80": local, "elsewhere.test:80": local },
  });
  github = await startExample("github", "ambit:github/repositories@0.1.0", {
    allowedHosts: ["http://api.github.test"],
    hostOverrides: { "api.github.test:80": local },
    environment: { GITHUB_API_URL: "http://api.github.test/" },
  });
});

after(async () => {
  await fetcher.close();
  await github.close();
  server.closeAllConnections();
  server.close();
});

const pages: Record<string, { args: object; expected: object }> = {
  "HTML is reduced to its text": {
    args: { url: "http://pages.test/page" },
    expected: {
      url: "http://pages.test/page",
      title: "Spoons & forks",
      media_type: "text/html",
      text: "Spoons\nThey bend, mostly.\n- big\n- small\n5 < 6 ☺ a",
      truncated: false,
    },
  },
  "a page is cut between characters and says so": {
    args: { url: "http://pages.test/page", form: "source", max_length: 15 },
    expected: { url: "http://pages.test/page", title: "Spoons & forks", media_type: "text/html", text: "<!doctype html>", truncated: true },
  },
  "a charset is honoured": {
    args: { url: "http://pages.test/latin" },
    expected: { url: "http://pages.test/latin", media_type: "text/plain", text: "café", truncated: false },
  },
  "a relative redirect is followed": {
    args: { url: "http://pages.test/hop" },
    expected: { url: "http://pages.test/page?x=1", media_type: "text/plain", text: "landed", truncated: false },
  },
};
for (const [what, { args, expected }] of Object.entries(pages)) {
  test(`fetch: ${what}`, async () => {
    const { outcome, text, structured } = await fetcher.call("fetch", args);
    assert.equal(outcome, "ok", text);
    assert.deepEqual(structured, expected);
  });
}

const fetchErrors: Record<string, { url: string; says: RegExp }> = {
  "a host that is not granted is named": { url: "http://elsewhere.test/", says: /elsewhere\.test/ },
  "a redirect to a host that is not granted names that host": { url: "http://pages.test/away", says: /elsewhere\.test/ },
  "another port of a granted host": { url: "http://pages.test:8080/", says: /pages\.test:8080/ },
  "another scheme": { url: "https://pages.test/", says: /pages\.test/ },
  "what is no URL": { url: "pages.test/page", says: /not an http or https URL/ },
  "a URL with credentials": { url: "http://me:secret@pages.test/", says: /not an http or https URL/ },
  "what is no text": { url: "http://pages.test/image", says: /is image\/png, not text/ },
  "a redirect without end": { url: "http://pages.test/loop", says: /redirects more than 5 times/ },
  "an error's status and text": { url: "http://pages.test/broken", says: /status 503.*out of order/ },
};
for (const [what, { url, says }] of Object.entries(fetchErrors)) {
  test(`fetch, an error in words: ${what}`, async () => {
    const { outcome, text } = await fetcher.call("fetch", { url });
    assert.equal(outcome, "tool-error");
    assert.match(text, says);
  });
}

const reads: Record<string, { name: string; args: object; expected: object }> = {
  "issues are listed without pull requests": {
    name: "list-issues",
    args: { repo: "octo/spoon", state: "open", labels: ["good first issue", "bug"] },
    expected: {
      result: [{ number: 7, title: "Issue 7", author: "ana", labels: ["bug"], comments: 1, updated: "2026-05-04T12:00:00Z" }],
    },
  },
  "an issue comes with its comments": {
    name: "get-issue",
    args: { repo: "octo/spoon", number: 7 },
    expected: {
      number: 7,
      title: "Issue 7",
      state: "open",
      author: "ana",
      labels: ["bug"],
      created: "2026-05-01T00:00:00Z",
      text: "It bends.",
      comments: [{ created: "2026-05-02T00:00:00Z", text: "Indeed." }],
      comment_count: 1,
    },
  },
  "a pull request comes with its files": {
    name: "get-pull",
    args: { repo: "octo/spoon", number: 9 },
    expected: {
      number: 9,
      title: "Issue 9",
      state: "draft",
      author: "ana",
      base: "octo:main",
      head: "ana:fix",
      text: "Straightens it.",
      additions: 3,
      deletions: 1,
      files: [{ path: "spoon.rs", status: "modified", additions: 3, deletions: 1 }],
      file_count: 1,
    },
  },
  "a file is read at a tag": {
    name: "read-file",
    args: { repo: "octo/spoon", path: "src/a b.rs", ref: "v1+2" },
    expected: { text: "fn main() {}\n", truncated: false },
  },
};
for (const [what, { name, args, expected }] of Object.entries(reads)) {
  test(`github: ${what}`, async () => {
    const { outcome, text, structured } = await github.call(name, args);
    assert.equal(outcome, "ok", text);
    assert.deepEqual(structured, expected);
  });
}

test("github: a folder is not read as a file", async () => {
  const { outcome, text } = await github.call("read-file", { repo: "octo/spoon", path: "src" });
  assert.equal(outcome, "tool-error");
  assert.equal(text, '{"tag":"invalid","val":"src is a folder, not a file"}');
});

const githubErrors: Record<string, { args: object; says: string }> = {
  "what is not there": {
    args: { repo: "octo/spoon", number: 404 },
    says: '{"tag":"not-found","val":"GitHub has no octo/spoon issues/404, or it is private"}',
  },
  "a limit": {
    args: { repo: "octo/busy", number: 1 },
    says: '{"tag":"rate-limited","val":"too many requests; try again at Unix time 1777900000"}',
  },
  "a repository that is none": {
    args: { repo: "../user", number: 1 },
    says: '{"tag":"invalid","val":"a repository is named as owner/name, not \\"../user\\""}',
  },
};
for (const [what, { args, says }] of Object.entries(githubErrors)) {
  test(`github, an error in words: ${what}`, async () => {
    const { outcome, text } = await github.call("get-issue", args);
    assert.deepEqual({ outcome, text }, { outcome: "tool-error", text: says });
  });
}

test("github, an error in words: an answer that is not GitHub's", async () => {
  const { outcome, text } = await github.call("get-issue", { repo: "octo/odd", number: 1 });
  assert.equal(outcome, "tool-error");
  assert.match(text, /"unavailable".*could not be read/);
});
