import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fixture, type HostUnderTest, startHost } from "../host-under-test.ts";
import { type Answer, type ServedFolder, serveFolder } from "./served-folder.ts";

interface Case {
  /** Function of the echo component, and the text of its arguments. */
  readonly fn: string;
  readonly text: string;
  /** What the catalogue's and the host's readers say; `null` where they must take it as it is and give it back. */
  readonly code: string | null;
  readonly says?: RegExp;
  /** Texts that are no JSON at all make the neutral call's whole body none. */
  readonly isJson: boolean;
}

const nested = (depth: number): string => `{"value":${"[".repeat(depth)}${"]".repeat(depth)}}`;

const cases: Record<string, Case> = {
  "__proto__ as an argument": {
    fn: "echo-u64",
    text: '{"value":1,"__proto__":{"value":2}}',
    code: "ArgumentInvalid",
    says: /__proto__/,
    isJson: true,
  },
  "__proto__ instead of the argument": {
    fn: "echo-u64",
    text: '{"__proto__":{"value":2}}',
    code: "ArgumentInvalid",
    says: /value/,
    isJson: true,
  },
  "constructor.prototype in a record of options": {
    fn: "echo-all-optional",
    text: '{"constructor":{"prototype":{"count":1}}}',
    code: "ArgumentInvalid",
    says: /constructor/,
    isJson: true,
  },
  "duplicate keys": { fn: "echo-u64", text: '{"value":1,"value":2}', code: "JsonDuplicateKey", says: /value/, isJson: false },
  "duplicate keys, spelled in two ways": { fn: "echo-u64", text: '{"value":1,"v\\u0061lue":2}', code: "JsonDuplicateKey", isJson: false },
  "2^64": { fn: "echo-u64", text: '{"value":18446744073709551616}', code: "ArgumentInvalid", says: /18446744073709551615/, isJson: true },
  "2^64 - 1": { fn: "echo-u64", text: '{"value":18446744073709551615}', code: null, isJson: true },
  NaN: { fn: "echo-f64", text: '{"value":NaN}', code: "JsonSyntax", isJson: false },
  "NaN as text": { fn: "echo-f64", text: '{"value":"NaN"}', code: "ArgumentInvalid", says: /expected a number/, isJson: true },
  "a number beyond every double": { fn: "echo-f64", text: '{"value":1e999}', code: "JsonNumberRange", isJson: false },
  "a lone surrogate": { fn: "echo-string", text: '{"value":"\\ud800"}', code: "JsonLoneSurrogate", isJson: false },
  "the wrong half of a pair": { fn: "echo-string", text: '{"value":"\\ude00\\ud83d"}', code: "JsonLoneSurrogate", isJson: false },
  "depth 10,000": { fn: "echo-lists", text: nested(10_000), code: "JsonTooDeep", isJson: false },
};

describe("arguments that are none", () => {
  let served: ServedFolder;
  let host: HostUnderTest;
  before(async () => {
    const granted = ["u64", "f64", "string", "all-optional", "lists"].map((name) => `tool-echo-${name}-`);
    served = await serveFolder("echo", (draft) => granted.some((start) => draft.startsWith(start)));
    host = await startHost({ component: fixture("echo.wasm") });
  });
  after(async () => {
    await host?.stop();
    await served?.close();
  });

  const toolName = (fn: string): string => `sync_${fn.replaceAll("-", "_")}`;
  const good = { name: "sync_echo_string", arguments: { value: "still served" } };
  const stillServed = async () => {
    assert.equal((await served.call(good.name, good.arguments)).content[0]?.text, "still served");
    const { body } = await host.call({ interface: "ambit:echo/sync@0.1.0", function: "echo-string" }, good.arguments);
    assert.equal(body.text, "still served");
  };

  for (const [what, { fn, text, code, says = /./, isJson }] of Object.entries(cases)) {
    const verdict = code ?? "given back as it is";

    test(`${what}, from a caller of the catalogue: ${verdict}`, async () => {
      const { status, text: answered } = await served.post(`{"name":"${toolName(fn)}","arguments":${text}}`);
      if (!isJson) {
        assert.equal(status, 400, answered);
        assert.equal((JSON.parse(answered) as { error: { code: string } }).error.code, code);
      } else {
        assert.equal(status, 200, answered);
        const answer = JSON.parse(answered) as Answer;
        assert.equal(answer.outcome, code === null ? "ok" : "failed", answered);
        if (code === null) assert.equal(answered.includes(text.slice(9, -1)), true, answered);
        else assert.match(answer.content[0]?.text ?? "", says);
      }
      await stillServed();
    });

    test(`${what}, as text among a turn's calls: ${verdict}, and the other call is answered`, async () => {
      const block = (id: string, name: string, args: string) => ({ id, type: "function", function: { name, arguments: args } });
      const turn = [block("bad", toolName(fn), text), block("good", good.name, JSON.stringify(good.arguments))];
      const { status, text: answered } = await served.post(JSON.stringify(turn), "?format=openai-chat");
      assert.equal(status, 200, answered);
      const [bad, fine] = JSON.parse(answered) as { tool_call_id: string; content: string }[];
      assert.deepEqual([bad?.tool_call_id, fine?.tool_call_id, fine?.content], ["bad", "good", "still served"]);
      if (code === null) assert.doesNotMatch(bad?.content ?? "", /^Error: /);
      else {
        assert.match(bad?.content ?? "", /^Error: /);
        assert.match(bad?.content ?? "", says);
      }
    });

    test(`${what}, with a ticket at the host itself: ${verdict}`, async () => {
      const { status, body } = await host.call({ interface: "ambit:echo/sync@0.1.0", function: fn }, text);
      if (code === null) assert.deepEqual([status, body.outcome], [200, "ok"], JSON.stringify(body));
      else assert.deepEqual([status, body.refused, body.code], [422, true, code], JSON.stringify(body));
      await stillServed();
    });
  }

  test("bytes that are not UTF-8, at either door", async () => {
    const bytes = Buffer.from([...Buffer.from('{"name":"sync_echo_string","arguments":{"value":"'), 0xff, ...Buffer.from('"}}')]);
    const { status, text } = await served.post(bytes);
    assert.equal(status, 400, text);
    await stillServed();
  });

  test("no object's prototype was touched on the way", async () => {
    assert.equal(({} as { value?: unknown }).value, undefined);
    assert.equal((await served.call("sync_echo_all_optional", {})).content[0]?.text, "{}");
  });
});
