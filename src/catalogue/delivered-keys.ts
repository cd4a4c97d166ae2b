import type { KeyObject } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import { ownObjects } from "../api/cluster-names.ts";
import { AmbitError, Invalid, Transient } from "../api/errors.ts";
import type { Store } from "../kube/store.ts";
import { readTicketKeys, type TicketSigningKey, ticketKeysEntry, ticketSigner } from "../tickets/ticket-keys.ts";
import type { ConfigMapObject, SecretObject } from "./cluster-objects.ts";

/** Entry of the ConfigMap `ambit-ca`: the authority that signs hosts' certificates, in PEM. */
export const hostAuthorityEntry = "hosts-ca.crt";

/** Entry of the ConfigMap `ambit-ca`: the authority that signs the catalogue's certificate, in PEM. Agents mount it. */
export const catalogueAuthorityEntry = "catalogue-ca.crt";

export interface KeyStores {
  /** The Secrets of Ambit's namespace that the catalogue may read. */
  readonly tickets: Store<SecretObject>;
  readonly tls: Store<SecretObject>;
  readonly authorities: Store<ConfigMapObject>;
}

/** What hears of new keys. */
export interface KeyListener {
  readonly onAuthority: (ca: string | null) => void;
  /** A certificate and its key; never that there is none any more, since the one in use is good until it ends. */
  readonly onTls: (tls: SecureContextOptions) => void;
  /** Keys that can't be read; those of before stay in use. */
  readonly onFault: (fault: AmbitError) => void;
}

/** The keys that the operator makes for the catalogue, as they are now. */
export class DeliveredKeys {
  readonly #now: () => number;
  readonly #ends: readonly (() => void)[];
  #ticketKeys: readonly TicketSigningKey[] = [];

  constructor(stores: KeyStores, listener: KeyListener, now: () => number) {
    this.#now = now;
    const guarded = (take: () => void): void => {
      try {
        take();
      } catch (thrown) {
        if (!(thrown instanceof AmbitError)) throw thrown;
        listener.onFault(thrown);
      }
    };
    this.#ends = [
      stores.tickets.subscribe(({ type, object }) => {
        if (object.metadata.name === ownObjects.tickets && type !== "deleted") guarded(() => this.#takeTicketKeys(object));
      }),
      stores.tls.subscribe(({ type, object }) => {
        if (object.metadata.name === ownObjects.catalogueTls && type !== "deleted") guarded(() => listener.onTls(tlsIn(object)));
      }),
      stores.authorities.subscribe(({ type, object }) => {
        if (object.metadata.name !== ownObjects.ca) return;
        listener.onAuthority(type === "deleted" ? null : (object.data?.[hostAuthorityEntry] ?? null));
      }),
    ];
  }

  /** Whether there is a key to sign tickets with now. */
  get canSign(): boolean {
    return ticketSigner(this.#ticketKeys, this.#now()) !== undefined;
  }

  /** The key to sign with now. Throws `Transient` `NoTicketKey`: ask `canSign` before taking a call. */
  signer(): { readonly kid: string; readonly key: KeyObject } {
    const signer = ticketSigner(this.#ticketKeys, this.#now());
    if (signer === undefined) throw new Transient("NoTicketKey", "the operator has made no ticket key that is in force now");
    return signer;
  }

  close(): void {
    for (const end of this.#ends) end();
  }

  #takeTicketKeys({ data }: SecretObject): void {
    this.#ticketKeys = readTicketKeys(decoded(data?.[ticketKeysEntry]));
  }
}

const tlsIn = ({ data, metadata }: SecretObject): SecureContextOptions => {
  const cert = decoded(data?.["tls.crt"]);
  const key = decoded(data?.["tls.key"]);
  if (cert === "" || key === "") throw new Invalid("TlsSecretMalformed", `the Secret ${metadata.name} has no tls.crt and tls.key`);
  return { cert, key };
};

const decoded = (base64: string | undefined): string => Buffer.from(base64 ?? "", "base64").toString("utf8");
