import { createInterface } from "node:readline";
import { Agent, request } from "undici";

/** What this program is told by the first line of its standard input. */
export interface Calling {
  /** Of the catalogue, and the address at which it is reached in the network that this runs in: that has no names of the cluster's. */
  readonly url: string;
  readonly address: string;
  /** Certificate of its authority, in PEM. */
  readonly ca: string;
  readonly token: string;
  readonly call: object;
  /** What an answer must hold to be a good one. */
  readonly wanted: string;
  readonly together: number;
}

export interface Called {
  readonly good: number;
  /** Every other answer, with the time when it came. */
  readonly bad: readonly string[];
}

/**
 * Sends one call again and again until its standard input ends. Prints how it went so far for every line that it is given, and at the end.
 */
const main = async (): Promise<void> => {
  const lines = createInterface(process.stdin);
  const iterator = lines[Symbol.asyncIterator]();
  const { url, address, ca, token, call, wanted, together }: Calling = JSON.parse((await iterator.next()).value ?? "");
  const family = address.includes(":") ? 6 : 4;
  const dispatcher = new Agent({ connect: { ca, lookup: (_name, _options, found) => found(null, [{ address, family }]) } });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify(call);
  let good = 0;
  const bad: string[] = [];
  let ended = false;

  const once = async (): Promise<string> => {
    const answer = await request(`${url}/v1/calls`, { method: "POST", headers, body, dispatcher });
    return `${answer.statusCode} ${await answer.body.text()}`;
  };
  const loop = async (): Promise<void> => {
    while (!ended) {
      const said = await once().catch((thrown: unknown) => String(thrown));
      if (said.includes(wanted)) good++;
      else bad.push(`${new Date().toISOString()} ${said}`);
    }
  };
  const tell = (): void => void process.stdout.write(`${JSON.stringify({ good, bad } satisfies Called)}\n`);

  const loops = Array.from({ length: together }, loop);
  for await (const _ of { [Symbol.asyncIterator]: () => iterator }) tell();
  ended = true;
  await Promise.all(loops);
  tell();
  await dispatcher.close();
};

if (import.meta.main) await main();
