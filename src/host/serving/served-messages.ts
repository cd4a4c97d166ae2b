import type { MessagePort } from "node:worker_threads";

/** The head of a request as it goes to a worker; `headers` alternate names and values, one character a byte. */
export interface ServedHead {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly authority: string | null;
  readonly headers: readonly string[];
}

/** A request for an instance, with the port on which its body comes and its response goes. */
export interface ServedCall {
  readonly kind: "serve";
  readonly head: ServedHead;
  readonly port: MessagePort;
}

/** Bytes under way in one direction that the other side has not taken yet, as `costOf` counts them: beyond this the sender waits. */
export const windowBytes = 256 * 1024;

/** What a piece takes on its way besides its bytes: many small ones would take much more than they say. */
export const pieceBytes = 512;

export const costOf = (piece: Uint8Array): number => piece.length + pieceBytes;

/** From the thread that speaks HTTP. `taken` is what of the response has gone out, as `costOf` counts it. */
export type ToServed =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "end"; readonly trailers: readonly string[] }
  | { readonly kind: "taken"; readonly count: number }
  /** The client has gone, or its request broke off. */
  | { readonly kind: "gone" };

/** From the worker. `taken` is what of the request the guest has read, as `costOf` counts it. After `end` or `cut` nothing comes. */
export type FromServed =
  | { readonly kind: "head"; readonly status: number; readonly headers: readonly string[] }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "taken"; readonly count: number }
  | { readonly kind: "end"; readonly trailers: readonly string[] }
  /** The response will never be whole, or (before a head) there is none. */
  | { readonly kind: "cut"; readonly why: string };
