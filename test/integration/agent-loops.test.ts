import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type StandIn, startStandIn } from "../../examples/agent-loops/stand-in/main.ts";
import type { RunningUp } from "../support/ambit-command.ts";
import { prepareFolder, type ServedFolder, token } from "../support/served-folder.ts";

const mission = fileURLToPath(new URL("../fixtures/components/mission.wasm", import.meta.url));

/** The loops, and what each is told of where its provider's API is. */
const loops: Readonly<Record<string, (standIn: StandIn) => Readonly<Record<string, string>>>> = {
  anthropic: ({ url }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" }),
  "openai-chat": ({ url }) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none" }),
  "openai-responses": ({ url }) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none" }),
  gemini: ({ url }) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "none" }),
  bedrock: ({ http2Url }) => ({
    AWS_ENDPOINT_URL_BEDROCK_RUNTIME: http2Url,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "none",
    AWS_SECRET_ACCESS_KEY: "none",
  }),
};

describe("the agent loops, with each provider's SDK, through a catalogue and a host", () => {
  let prepared: ServedFolder;
  let up: RunningUp;
  let standIn: StandIn;

  before(async () => {
    standIn = await startStandIn();
    prepared = await prepareFolder(mission);
    up = await prepared.start();
  });

  after(async () => {
    await up?.stop();
    await prepared?.remove();
    await standIn?.close();
  });

  /** Runs one as a person would, with a question. */
  const run = async (
    name: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly code: number; readonly out: string; readonly err: string; readonly requests: number }> => {
    const before = standIn.requests.length;
    const loop = fileURLToPath(new URL(`../../examples/agent-loops/${name}.ts`, import.meta.url));
    const child = spawn(process.execPath, [loop, "Which issues of octo/spoon are open?"], {
      env: { PATH: process.env.PATH, AMBIT_URL: up.url, AMBIT_TOKEN: token, ...loops[name]?.(standIn), ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    return { code, out, err, requests: standIn.requests.length - before };
  };

  const isTold = (out: string): void => {
    const [found, missing] = /I was told: (.*) \| (.*)/.exec(out)?.slice(1) ?? [];
    assert.match(found ?? "", /Spoon bends/, out);
    assert.match(missing ?? "", /octo\/ladle/, out);
  };

  for (const name of Object.keys(loops)) {
    test(`${name}: a turn's two calls are made, and the model says what came of both`, async () => {
      const { code, out, err, requests } = await run(name);
      assert.deepEqual({ code, err }, { code: 0, err: "" });
      isTold(out);
      assert.equal(requests, 2, "one request for the calls, one with their answers");
    });

    test(`${name}: a model that knows of nothing but the search finds the tool, and calls it`, async () => {
      const { code, out, err, requests } = await run(name, { SEARCH: "1" });
      assert.deepEqual({ code, err }, { code: 0, err: "" });
      isTold(out);
      assert.equal(requests, 3, "one more for the search");
    });
  }
});
