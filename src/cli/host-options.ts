import { resolve } from "node:path";
import type { Command } from "commander";
import { Invalid } from "../api/errors.ts";
import { namedFolders } from "../local/given-folders.ts";
import type { HostSettings } from "../local/list-tools.ts";
import { claimFolders } from "../local/volumes.ts";
import { collect } from "./decision-options.ts";
import type { Terminal } from "./terminal.ts";

export interface HostOptions {
  readonly volume?: readonly string[];
  readonly secret?: readonly string[];
  readonly configMap?: readonly string[];
  readonly resolve?: readonly string[];
  readonly allowPrivate?: readonly string[];
}

/** What a component reaches on this machine, for commands that run one. */
export const withHostOptions = (command: Command): Command =>
  command
    .option("--volume <claim=folder>", "folder that stands in for a persistentVolumeClaim; may be repeated", collect, [])
    .option("--secret <name=folder>", "folder that stands in for a Secret, one file a key; may be repeated", collect, [])
    .option("--config-map <name=folder>", "folder that stands in for a ConfigMap, one file a key; may be repeated", collect, [])
    .option("--resolve <host:port=address:port>", "dial this address for that host, whatever it is; may be repeated", collect, [])
    .option("--allow-private <cidr>", "address range that tools may reach although it is private; may be repeated", collect, []);

/** Throws `Invalid` (`VolumeOptionInvalid`, `GivenOptionInvalid`, `ResolveOptionInvalid`). */
export const hostSettings = (terminal: Terminal, options: HostOptions): Omit<HostSettings, "cacheFolder"> => ({
  claims: claimFolders(options.volume ?? [], (path) => resolve(terminal.folder, path)),
  given: {
    secrets: namedFolders("Secret", options.secret ?? [], (path) => resolve(terminal.folder, path)),
    configMaps: namedFolders("ConfigMap", options.configMap ?? [], (path) => resolve(terminal.folder, path)),
  },
  hostOverrides: Object.fromEntries((options.resolve ?? []).map(overrideOf)),
  privateRanges: options.allowPrivate ?? [],
});

const overrideOf = (text: string): [string, string] => {
  const at = text.indexOf("=");
  if (at < 1) throw new Invalid("ResolveOptionInvalid", `--resolve takes host:port=address:port, not ${JSON.stringify(text)}`);
  return [text.slice(0, at), text.slice(at + 1)];
};
