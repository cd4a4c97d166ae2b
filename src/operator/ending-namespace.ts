import type { OperatorStores } from "./context.ts";

/** Whether a namespace is on its way out: the API server takes nothing new there (403), and what is there goes with it. */
export const isEnding = ({ namespaces }: Pick<OperatorStores, "namespaces">, namespace: string | undefined): boolean =>
  namespace !== undefined && namespaces.get(namespace)?.metadata.deletionTimestamp !== undefined;
