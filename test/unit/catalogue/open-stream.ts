import { request } from "node:http";

export interface Opening {
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A response that goes on: what has come of it so far. `until` waits for a condition on that, at most half a minute. */
export const openStream = async ({ port, path, method = "GET", headers = {}, body }: Opening) => {
  let heard = "";
  let ended = false;
  const waiting = new Set<() => void>();
  const stream = request({ host: "127.0.0.1", port, path, method, headers: { authorization: "Bearer secret", ...headers } });
  const status = await new Promise<number>((resolve, reject) => {
    stream.on("error", reject);
    stream.on("response", (response) => {
      const tell = () => {
        for (const look of waiting) look();
      };
      response.on("data", (chunk) => {
        heard += chunk;
        tell();
      });
      response.on("error", () => undefined);
      response.on("close", () => {
        ended = true;
        tell();
      });
      resolve(response.statusCode ?? 0);
    });
    stream.end(body);
  });
  stream.on("error", () => undefined);
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const deadline = setTimeout(() => reject(new Error(`not within half a minute; heard ${heard}`)), 30_000);
      const look = () => {
        if (!holds()) return;
        clearTimeout(deadline);
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return { status, until, isEnded: () => ended, heard: () => heard, [Symbol.dispose]: () => stream.destroy() };
};
