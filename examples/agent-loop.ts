import Anthropic from "@anthropic-ai/sdk";

/**
 * An agent over Ambit's catalogue with Anthropic's SDK: `ANTHROPIC_API_KEY=… AMBIT_TOKEN=… node examples/agent-loop.ts "Which issues of octo/app are open?"`.
 * The catalogue renders declarations for the provider and answers its tool-call blocks, so nothing is mapped here.
 */
const url = process.env.AMBIT_URL ?? "http://127.0.0.1:7780";
const token = process.env.AMBIT_TOKEN ?? "triage-token";
/** A model that asks for tools more often than this in a row is going in circles. */
const mostTurns = 20;

const ambit = async <Answer>(path: string, body?: unknown): Promise<Answer> => {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: status ${response.status}, ${await response.text()}`);
  return (await response.json()) as Answer;
};

const model = new Anthropic({ baseURL: process.env.ANTHROPIC_BASE_URL ?? null });
const messages: Anthropic.MessageParam[] = [{ role: "user", content: process.argv[2] ?? "Which issues of octo/app are open?" }];
for (let turns = 0; turns < mostTurns; turns++) {
  const tools = await ambit<Anthropic.Tool[]>("/v1/declarations?format=anthropic");
  const turn = await model.messages.create({ model: process.env.MODEL ?? "claude-sonnet-4-5", max_tokens: 1024, tools, messages });
  messages.push({ role: "assistant", content: turn.content });
  for (const block of turn.content) if (block.type === "text") process.stdout.write(`${block.text}\n`);
  if (turn.stop_reason !== "tool_use") break;
  messages.push(await ambit<Anthropic.MessageParam>("/v1/calls?format=anthropic", turn.content));
}
