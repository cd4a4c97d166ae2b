import { type Content, GoogleGenAI } from "@google/genai";
// Outside of this repository: from "ambit/client".
import { AmbitClient } from "../../src/client/client.ts";

/**
 * An agent on Google's Gemini API: `node examples/agent-loops/gemini.ts "Which issues of octo/spoon are open?"`. With `SEARCH=1` its model finds
 * tools as it goes, instead of having all of them declared.
 */
const ambit = new AmbitClient({ url: process.env.AMBIT_URL ?? "http://127.0.0.1:7780", token: process.env.AMBIT_TOKEN ?? "triage-token" });
const model = new GoogleGenAI({});
const agent = ambit.conversation("gemini", { search: process.env.SEARCH === "1" ? "only" : false });
/** A model that asks for tools more often than this in a row is going in circles. */
const mostTurns = 20;

const contents: Content[] = [{ role: "user", parts: [{ text: process.argv[2] ?? "Which issues of octo/spoon are open?" }] }];
for (let turns = 0; turns < mostTurns; turns++) {
  const tools = await agent.tools();
  const turn = await model.models.generateContent({ model: process.env.MODEL ?? "gemini-3-pro", contents, config: { tools } });
  const content = turn.candidates?.[0]?.content;
  if (!content) break;
  contents.push(content);
  for (const { text } of content.parts ?? []) if (text) process.stdout.write(`${text}\n`);
  if (!turn.functionCalls?.length) break;
  contents.push(await agent.answer(content.parts));
}
