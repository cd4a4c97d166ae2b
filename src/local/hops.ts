import type { HopDocument } from "../api/host.ts";
import { type ComponentKey, componentKeyText } from "../catalogue/state.ts";
import type { DesiredHost } from "./desired.ts";
import type { Place } from "./host-process.ts";

const credentialBytes = 32;

interface Hop {
  readonly credential: string;
  place: Place | null;
}

/** What the hosts of MCP servers and of their bridges are told of each other: one credential for each server as long as it is wanted, and where it is. */
export class Hops {
  readonly #hops = new Map<string, Hop>();
  readonly #random: (bytes: number) => Buffer;

  constructor(random: (bytes: number) => Buffer) {
    this.#random = random;
  }

  /** Null while no host of the server runs. */
  place(server: ComponentKey, place: Place | null): void {
    this.#of(server).place = place;
  }

  forget(server: ComponentKey): void {
    this.#hops.delete(componentKeyText(server));
  }

  toldTo({ key, hop }: Pick<DesiredHost, "key" | "hop">): Pick<HopDocument, "accept" | "reach"> {
    if (hop === null) return { accept: [this.#of(key).credential] };
    const { credential, place } = this.#of(hop.server);
    return { reach: { authority: hop.authority, credential, servers: place ? [place] : [] } };
  }

  #of(server: ComponentKey): Hop {
    const known = this.#hops.get(componentKeyText(server));
    if (known) return known;
    const made = { credential: this.#random(credentialBytes).toString("base64url"), place: null };
    this.#hops.set(componentKeyText(server), made);
    return made;
  }
}
