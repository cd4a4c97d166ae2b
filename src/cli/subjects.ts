import { Invalid } from "../api/errors.ts";
import type { Subject } from "../api/generated/toolgrant.ts";

const serviceAccount = /^([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\/([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)$/;

/** `ServiceAccount:namespace/name`, `Group:name` or `User:name`, the kind in any case. Throws `Invalid` `SubjectInvalid`. */
export const parseSubject = (text: string): Subject => {
  const at = text.indexOf(":");
  const kind = text.slice(0, Math.max(at, 0)).toLowerCase();
  const name = text.slice(at + 1);
  if (kind === "serviceaccount") {
    const [, namespace, account] = serviceAccount.exec(name) ?? [];
    if (namespace && account) return { kind: "ServiceAccount", namespace, name: account };
  }
  if (kind === "group" && name !== "") return { kind: "Group", name };
  if (kind === "user" && name !== "") return { kind: "User", name };
  throw new Invalid("SubjectInvalid", `a subject is ServiceAccount:namespace/name, Group:name or User:name, not ${JSON.stringify(text)}`);
};
