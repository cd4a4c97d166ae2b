import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GivenFile, type GivenFolder, givenBounds, givenVariables } from "../../../src/host/given/variables.ts";

const bytes = (content: string | Uint8Array | null): Uint8Array | null =>
  typeof content === "string" ? new TextEncoder().encode(content) : content;

const folder = (files: Readonly<Record<string, string | Uint8Array | null>>, as: GivenFolder["as"] = "environment"): GivenFolder => ({
  name: "the Secret s",
  as,
  files: Object.entries(files).map(([name, content]): GivenFile => ({ name, bytes: bytes(content) })),
});

interface Case {
  readonly folders: readonly GivenFolder[];
  readonly variables: Readonly<Record<string, string>>;
  /** One for each that is left out. */
  readonly leftOut?: readonly RegExp[];
}

const cases: Readonly<Record<string, Case>> = {
  "a file is the variable of its name, byte for byte": {
    folders: [folder({ TOKEN: "a b\n", EMPTY: "", MARKED: "\ufeffx" })],
    variables: { TOKEN: "a b\n", EMPTY: "", MARKED: "\ufeffx" },
  },
  "a later folder wins": { folders: [folder({ A: "1", B: "1" }), folder({ B: "2" })], variables: { A: "1", B: "2" } },
  "a name that no variable has is left out": {
    folders: [folder({ "a-b": "secret", "1A": "secret", "tls.crt": "secret", [`A${"a".repeat(128)}`]: "secret", _a1: "x" })],
    variables: { _a1: "x" },
    leftOut: [/"a-b" of the Secret s/, /"1A"/, /"tls.crt"/, /"Aa+"/].map(
      (what) => new RegExp(`${what.source}.*no name of an environment variable`),
    ),
  },
  "what is not UTF-8 or has a NUL byte is left out": {
    folders: [folder({ A: Uint8Array.of(0xff, 0xfe), B: "a\0b", C: "fine" })],
    variables: { C: "fine" },
    leftOut: [/"A".*not UTF-8/, /"B".*NUL/],
  },
  "what is too large, or no plain file, is left out": {
    folders: [folder({ A: "x".repeat(64 * 1024), B: "x".repeat(64 * 1024 + 1), C: null })],
    variables: { A: "x".repeat(64 * 1024) },
    leftOut: [/"B".*at most 65536/, /"C".*no plain file/],
  },
  "more than all may have is left out": {
    folders: [
      folder(Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`V${String(at).padStart(2, "0")}`, "x".repeat(64 * 1024)]))),
    ],
    variables: Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`V${String(at).padStart(2, "0")}`, "x".repeat(64 * 1024)])),
    leftOut: [/"V16".*1048576 bytes/],
  },
  "more files than are read are left out": {
    folders: [
      folder(Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`A${at}`, ""]))),
      folder(Object.fromEntries(Array.from({ length: 57 }, (_, at) => [`B${at}`, ""]))),
    ],
    variables: Object.fromEntries([
      ...Array.from({ length: 200 }, (_, at) => [`A${at}`, ""]),
      ...Array.from({ length: 56 }, (_, at) => [`B${at}`, ""]),
    ]),
    leftOut: [/"B56".*256 files/],
  },
  "a header is a line for the bridge, without the line break at its end": {
    folders: [folder({ Authorization: "Bearer x\r\n", "X-Team": "a, b" }, "headers")],
    variables: { MCP_HEADER_1: "Authorization: Bearer x", MCP_HEADER_2: "X-Team: a, b" },
  },
  "a header of a later folder wins, however it is spelled": {
    folders: [folder({ Authorization: "one" }, "headers"), folder({ authorization: "two" }, "headers")],
    variables: { MCP_HEADER_1: "authorization: two" },
  },
  "a header that breaks lines, or has other control characters, is left out": {
    folders: [folder({ A: "x\r\nHost: y", B: "x\n\n", C: "x\u0007", D: "x\ty" }, "headers")],
    variables: { MCP_HEADER_1: "D: x\ty" },
    leftOut: [/"A".*line break/, /"B".*line break/, /"C".*control character/],
  },
  "a header of more than eight KiB is left out": {
    folders: [folder({ A: "x".repeat(8 * 1024), B: "x".repeat(8 * 1024 + 1) }, "headers")],
    variables: { MCP_HEADER_1: `A: ${"x".repeat(8 * 1024)}` },
    leftOut: [/"B".*at most 8192/],
  },
  "a header with no name of a header is left out": {
    folders: [folder({ "a b": "x", "a:b": "x", ä: "x", "X-!#$%&'*+.^_`|~0": "x" }, "headers")],
    variables: { MCP_HEADER_1: "X-!#$%&'*+.^_`|~0: x" },
    leftOut: [/"a b".*no name of a header/, /"a:b".*no name of a header/, /"ä".*no name of a header/],
  },
};

const own = [
  ...["Host", "Content-Length", "Transfer-Encoding", "Connection", "TE", "Upgrade", "Content-Type", "Accept"],
  ...["Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Ambit-Hop", "Last-Event-ID"],
];

describe("what a guest is given in folders", () => {
  for (const [sentence, { folders, variables, leftOut = [] }] of Object.entries(cases)) {
    test(sentence, () => {
      const given = givenVariables(folders);
      assert.deepEqual(given.variables, variables);
      assert.equal(given.leftOut.length, leftOut.length, given.leftOut.join("\n"));
      for (const [at, what] of leftOut.entries()) assert.match(given.leftOut[at] ?? "", what);
    });
  }
  for (const name of own) {
    test(`the header ${name} is the bridge's own`, () => {
      const given = givenVariables([folder({ [name]: "x" }, "headers")]);
      assert.deepEqual(given.variables, {});
      assert.match(given.leftOut.join(), /that the bridge sets itself/);
    });
  }

  test("what is left out is told without its value", () => {
    const secret = "VERY-SECRET";
    const hostile = folder({ "a-b": secret, B: `${secret}\0`, C: secret.repeat(10_000) });
    const headers = folder({ Host: secret, A: `${secret}\n${secret}`, "a b": secret }, "headers");
    const { leftOut } = givenVariables([hostile, headers]);
    assert.equal(leftOut.length, 6);
    assert.doesNotMatch(leftOut.join(), /SECRET/);
  });

  test("a prototype is no variable", () => {
    const { variables } = givenVariables([folder({ ["__proto__"]: "x", constructor: "y" })]);
    assert.deepEqual(Object.entries(variables), [
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    assert.equal(givenBounds.files, 256);
  });
});
