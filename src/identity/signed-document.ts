import { createPublicKey, type KeyObject, sign } from "node:crypto";
import type {
  AddressTableDocument,
  AnnouncementDocument,
  CanaryDocument,
  CertificateDocument,
  HopDocument,
  KeySet,
  ListingRequestDocument,
  SignedDocument,
} from "../api/host.ts";

/** What a host takes under the root key's signature. */
export type RootDocument =
  | KeySet
  | AddressTableDocument
  | AnnouncementDocument
  | CertificateDocument
  | CanaryDocument
  | ListingRequestDocument
  | HopDocument;

/** The document under an Ed25519 private key: exactly the bytes of `payload` are signed. */
export const signDocument = (root: KeyObject, document: RootDocument): SignedDocument => {
  const payload = JSON.stringify(document);
  return { payload, signature: sign(null, Buffer.from(payload, "utf8"), root).toString("base64") };
};

/** A public key, or the public half of a private one, as hosts are told it: SPKI DER in base64. */
export const publicKeyText = (key: KeyObject): string =>
  (key.type === "private" ? createPublicKey(key) : key).export({ type: "spki", format: "der" }).toString("base64");
