import type { Sha256Digest } from "../api/digest.ts";
import type { ComponentInterface } from "../api/wit.ts";
import { decodeComponent } from "./decode.ts";

/** Interfaces that are remembered. */
const kept = 1024;

/** Interfaces by the digest of their component's bytes: decoding is pure, and no change elsewhere should repeat it. */
export class KnownInterfaces {
  readonly #known = new Map<Sha256Digest, ComponentInterface>();

  get(digest: Sha256Digest): ComponentInterface | undefined {
    return this.#known.get(digest);
  }

  /** Decodes the bytes unless that was done before. Throws what `decodeComponent` throws. */
  of(digest: Sha256Digest, bytes: Uint8Array): ComponentInterface {
    const known = this.#known.get(digest);
    if (known) return known;
    const decoded = decodeComponent(bytes);
    this.#known.set(digest, decoded);
    const [oldest] = this.#known.keys();
    if (oldest && this.#known.size > kept) this.#known.delete(oldest);
    return decoded;
  }
}
