import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

/** One request of a ServiceAccount and what it came to, as the API server noted it (`audit.k8s.io/v1`). */
export interface AuditedRequest {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly message?: string };
}

/** Each line of the node's audit log. */
export async function* auditedRequests(file: string): AsyncGenerator<AuditedRequest> {
  for await (const line of createInterface(createReadStream(file))) yield JSON.parse(line);
}

/** `patch configmaps agents/github: configmaps … is forbidden`. */
export const auditText = ({ verb, objectRef = {}, responseStatus = {} }: AuditedRequest): string => {
  const { resource = "?", subresource, namespace = "", name = "" } = objectRef;
  return `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`} ${namespace}/${name}: ${responseStatus.message ?? responseStatus.code}`;
};
