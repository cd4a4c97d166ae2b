import { toolLister } from "../local/list-tools.ts";
import { type Look, lookAt } from "../local/look.ts";
import { cacheFolderOf, componentSource } from "./component-source.ts";
import { type HostOptions, hostSettings } from "./host-options.ts";
import { printable, type Terminal } from "./terminal.ts";

export interface LookOptions extends HostOptions {
  readonly cache?: string;
}

/**
 * A folder of manifests as it is now, judged as `ambit up` would. Components that list their own tools are run, in their sandboxes, to hear of them; those that can't
 * tell are named on standard error. Throws what `lookAt` and `hostSettings` throw.
 */
export const look = (terminal: Terminal, folder: string, options: LookOptions): Promise<Look> => {
  const cacheFolder = cacheFolderOf(terminal, options.cache);
  const settings = { ...hostSettings(terminal, options), cacheFolder };
  const listTools = toolLister(settings, (event) => {
    const name = `${event.key.workload}/${event.key.component}`;
    if (event.kind === "failed") terminal.err(`${name} ${event.code}: ${printable(event.message)}\n`);
    if (event.kind === "said" && event.stream === "host") terminal.err(`${name}: ${printable(event.text)}\n`);
  });
  return lookAt(folder, componentSource(terminal, cacheFolder), listTools, settings.given);
};
