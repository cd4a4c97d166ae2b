import { readFile } from "node:fs/promises";
import type { HostConfig } from "../api/host.ts";
import { runHost } from "./main.ts";
import { podUidVariable } from "./pod-uid.ts";

/**
 * A host as a process of its own, with nothing else loaded: `node <hostArguments> process.ts CONFIG`, where CONFIG is a file with a `HostConfig` as JSON,
 * or `-` for standard input. Ends on SIGTERM, on SIGINT, and when standard input closes after a configuration came that way: a host started as a child
 * does not outlive its parent.
 *
 * One file serves all pods of a component, so the pod's UID comes from the environment where that names it.
 */
const readConfig = async (source: string | undefined, end: AbortController): Promise<HostConfig> => {
  const config = await readConfigFrom(source, end);
  const podUid = process.env[podUidVariable];
  return podUid === undefined ? config : { ...config, podUid };
};

const readConfigFrom = async (source: string | undefined, end: AbortController): Promise<HostConfig> => {
  if (source === undefined) throw new Error("usage: node process.ts CONFIG.json | -");
  if (source !== "-") return JSON.parse(await readFile(source, "utf8")) as HostConfig;
  process.stdin.setEncoding("utf8");
  return new Promise((resolve, reject) => {
    let text = "";
    process.stdin.on("data", (chunk: string) => {
      text += chunk;
      const newline = text.indexOf("\n");
      if (newline < 0) return;
      try {
        resolve(JSON.parse(text.slice(0, newline)) as HostConfig);
      } catch (error) {
        reject(error);
      }
    });
    process.stdin.on("end", () => end.abort());
    process.stdin.on("error", () => end.abort());
  });
};

const end = new AbortController();
process.once("SIGTERM", () => end.abort());
process.once("SIGINT", () => end.abort());
await runHost(await readConfig(process.argv[2], end), end.signal);
process.exit(0);
