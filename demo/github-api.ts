import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A real HTTP server on loopback that answers like the part of GitHub's REST API that the `github` example reads
 * (https://docs.github.com/rest), with one invented repository, `octo/app`. The demo and the tests run offline against it.
 */
export interface GithubStandIn {
  readonly port: number;
  /** Paths asked for so far, with their queries. */
  readonly requests: readonly string[];
  readonly close: () => Promise<void>;
}

const issues = [
  {
    number: 41,
    title: "Login fails behind a proxy",
    state: "open",
    labels: ["bug"],
    body: "Since 2.3 the login page answers 502 behind our proxy.",
  },
  {
    number: 38,
    title: "Document the retry policy",
    state: "open",
    labels: ["docs"],
    body: "How often does the client retry, and after how long?",
  },
  { number: 35, title: "Crash on empty configuration", state: "closed", labels: ["bug"], body: "An empty file should mean the defaults." },
];

const pulls = [
  { number: 42, title: "Accept an empty configuration", state: "open", body: "Fixes #35.", head: "empty-config", base: "main" },
];

const files: Readonly<Record<string, string>> = {
  "README.md": "# app\n\nAn application that logs people in.\n",
  "src/config.ts": "export const defaults = { retries: 3, timeoutMs: 2000 };\n",
};

const issueBody = (issue: (typeof issues)[number]) => ({
  number: issue.number,
  title: issue.title,
  state: issue.state,
  body: issue.body,
  user: { login: "octocat" },
  labels: issue.labels.map((name) => ({ name })),
  comments: 2,
  html_url: `https://github.com/octo/app/issues/${issue.number}`,
  created_at: "2026-10-01T09:00:00Z",
  updated_at: "2026-11-02T10:30:00Z",
});

const pullBody = (pull: (typeof pulls)[number]) => ({
  number: pull.number,
  title: pull.title,
  state: pull.state,
  body: pull.body,
  draft: false,
  merged: false,
  user: { login: "hubot" },
  head: { ref: pull.head, sha: "5f0c1b7" },
  base: { ref: pull.base, sha: "9a3e2d1" },
  additions: 12,
  deletions: 3,
  changed_files: 2,
  html_url: `https://github.com/octo/app/pull/${pull.number}`,
  created_at: "2026-11-01T08:00:00Z",
  updated_at: "2026-11-02T10:30:00Z",
});

/** `raw`: the file itself is asked for, by the media type `application/vnd.github.raw+json`. */
const answer = (path: string, query: URLSearchParams, raw: boolean): unknown => {
  const rest = /^\/repos\/octo\/app\/(.*)$/.exec(path)?.[1];
  if (rest === undefined) return undefined;
  if (rest === "issues") {
    const state = query.get("state") ?? "open";
    return issues.filter((issue) => state === "all" || issue.state === state).map(issueBody);
  }
  const [kind, ...more] = rest.split("/");
  if (more[1] === "comments") return [{ user: { login: "hubot" }, body: "The same here, with 2.3.1.", created_at: "2026-10-02T11:00:00Z" }];
  if (more[1] === "files") return [{ filename: "src/config.ts", status: "modified", additions: 12, deletions: 3, patch: "@@ -1 +1 @@" }];
  if (kind === "issues") {
    const issue = issues.find(({ number }) => String(number) === more[0]);
    return issue && issueBody(issue);
  }
  if (kind === "pulls") {
    const pull = pulls.find(({ number }) => String(number) === more[0]);
    return pull && pullBody(pull);
  }
  if (kind === "contents") {
    const name = more.map(decodeURIComponent).join("/");
    const text = files[name];
    if (text === undefined) return undefined;
    if (raw) return text;
    const content = Buffer.from(text).toString("base64");
    return { type: "file", path: name, name: more.at(-1), size: text.length, sha: "3b18e51", encoding: "base64", content };
  }
  return undefined;
};

export const startGithubStandIn = async (): Promise<GithubStandIn> => {
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://stand-in.invalid");
    requests.push(`${url.pathname}${url.search}`);
    const found = answer(url.pathname, url.searchParams, request.headers.accept?.includes("raw") === true);
    const type = typeof found === "string" ? "application/vnd.github.raw+json" : "application/json";
    response.writeHead(found === undefined ? 404 : 200, { "content-type": `${type}; charset=utf-8` });
    response.end(
      typeof found === "string"
        ? found
        : JSON.stringify(found ?? { message: "Not Found", documentation_url: "https://docs.github.com/rest" }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
};
