import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { Invalid, messageOf } from "../api/errors.ts";
import { type CallPolicy, readCallPolicy } from "../catalogue/call-policy.ts";

/** The policy in a file, as YAML or JSON. Throws `Invalid` with the file's name. */
export const callPolicyIn = async (file: string): Promise<CallPolicy> => {
  const text = await readFile(file, "utf8");
  try {
    return readCallPolicy(parse(text) ?? {});
  } catch (thrown) {
    const at = thrown instanceof Invalid && thrown.at ? ` at ${thrown.at}` : "";
    throw new Invalid("CallPolicyInvalid", `${file}${at}: ${messageOf(thrown)}`, undefined, { cause: thrown });
  }
};
