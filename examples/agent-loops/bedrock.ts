import { BedrockRuntimeClient, ConverseCommand, type Message } from "@aws-sdk/client-bedrock-runtime";
// Outside of this repository: from "ambit/client".
import { AmbitClient } from "../../src/client/client.ts";

/**
 * An agent on Amazon Bedrock's Converse API: `node examples/agent-loops/bedrock.ts "Which issues of octo/spoon are open?"`. With `SEARCH=1` its model
 * finds tools as it goes, instead of having all of them declared.
 */
const ambit = new AmbitClient({ url: process.env.AMBIT_URL ?? "http://127.0.0.1:7780", token: process.env.AMBIT_TOKEN ?? "triage-token" });
const model = new BedrockRuntimeClient();
const agent = ambit.conversation("bedrock", { search: process.env.SEARCH === "1" ? "only" : false });
/** A model that asks for tools more often than this in a row is going in circles. */
const mostTurns = 20;

const messages: Message[] = [{ role: "user", content: [{ text: process.argv[2] ?? "Which issues of octo/spoon are open?" }] }];
for (let turns = 0; turns < mostTurns; turns++) {
  const tools = await agent.tools();
  const request = { modelId: process.env.MODEL ?? "anthropic.claude-sonnet-5-5", toolConfig: { tools }, messages };
  const { output, stopReason } = await model.send(new ConverseCommand(request));
  if (!output?.message) break;
  messages.push(output.message);
  for (const { text } of output.message.content ?? []) if (text) process.stdout.write(`${text}\n`);
  if (stopReason !== "tool_use") break;
  messages.push(await agent.answer(output.message.content));
}
