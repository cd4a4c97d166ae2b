import { type FSWatcher, watch } from "node:fs";
import { messageOf } from "../../api/errors.ts";
import type { HostConfig } from "../../api/host.ts";
import { GuestEnvironments } from "./environment.ts";

export interface GivenWatchDeps {
  /** What is in the folders is another now. */
  readonly changed: () => void;
  readonly say: (text: string) => void;
}

/**
 * Hears when what is in a host's folders changes, for instances that no call looks after, and tells of files that become no variable. Calls don't depend on it: each looks by itself.
 */
export class GivenWatch {
  readonly #environments: GuestEnvironments;
  readonly #deps: GivenWatchDeps;
  readonly #watchers: FSWatcher[] = [];
  #isCurrent: () => boolean = () => false;

  constructor(config: Pick<HostConfig, "secretFolders">, deps: GivenWatchDeps) {
    this.#environments = new GuestEnvironments({ environment: {}, ...config });
    this.#deps = deps;
    for (const { name, folder } of config.secretFolders ?? []) {
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#look());
        watcher.on("error", (error) => deps.say(`changes of ${name} are not heard any more: ${messageOf(error)}`));
        this.#watchers.push(watcher);
      } catch (error) {
        deps.say(`changes of ${name} are not heard: ${messageOf(error)}`);
      }
    }
    if (this.#watchers.length > 0) this.#read();
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
  }

  #look(): void {
    if (this.#isCurrent()) return;
    this.#read();
    this.#deps.changed();
  }

  #read(): void {
    try {
      this.#isCurrent = this.#environments.now().isCurrent;
      for (const what of this.#environments.leftOut()) this.#deps.say(`left out of the environment: ${what}`);
    } catch (error) {
      this.#deps.say(messageOf(error));
    }
  }
}
