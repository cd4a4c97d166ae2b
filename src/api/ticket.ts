import type { DefinitionDigest } from "./definition.ts";
import type { Sha256Digest } from "./digest.ts";

/**
 * What the catalogue signs for one admitted call. A host runs nothing without one and nothing twice.
 *
 * On the wire: `base64url(JSON) "." base64url(Ed25519 signature over the first part's ASCII bytes)`, in the header `ambit-ticket`.
 */
export interface TicketClaims {
  readonly v: 1;
  /** Id of the signing key, as delivered to the host under the root key. */
  readonly kid: string;
  /** Digest of the exact request body that was judged. */
  readonly body: Sha256Digest;
  readonly interface: string | null;
  readonly function: string;
  readonly definition: DefinitionDigest;
  readonly component: Sha256Digest;
  readonly grant: Sha256Digest;
  /** UID of the pod and boot id of the host process that alone may run it. */
  readonly pod: string;
  readonly boot: string;
  /** Milliseconds since the epoch. */
  readonly iat: number;
  readonly exp: number;
  /** 128 random bits, base64url. */
  readonly nonce: string;
}
