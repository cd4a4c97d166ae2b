import { LRUCache } from "lru-cache";
import { Invalid, Refused } from "../api/errors.ts";
import { isJsonObject, type JsonObject } from "../api/json.ts";
import { type ArgumentViolation, judgeCall, matchOffer } from "../grants/gates.ts";
import { checkArguments, normaliseArguments } from "../translate/arguments.ts";
import { compileSchema } from "../translate/schema-judge.ts";
import { type CallRequest, type Judge, type Judgement, judgedArguments } from "./admission.ts";
import { claimedLabels, shownLabels } from "./claimed-labels.ts";
import type { Offer } from "./offers.ts";
import type { LiveGrant } from "./state.ts";

/** Canonical bytes of one call's arguments: what a host takes. */
const mostArgumentBytes = 1024 * 1024;

/** Compiled schemas kept, of some tens of kilobytes each. */
const schemasKept = 1000;

type Check = (args: JsonObject) => ArgumentViolation | null;

/** Judges calls by the rules of `src/grants`: match, the reviewed schema and the tool's own types, labels, provenance, egress ceiling. */
export const callJudge = (): Judge => {
  const checks = new LRUCache<LiveGrant, Check>({ max: schemasKept });
  const checkOf = (grant: LiveGrant): Check => {
    const known = checks.get(grant);
    if (known) return known;
    const check = checkFor(grant);
    checks.set(grant, check);
    return check;
  };

  return (_caller, offers, request, now) => {
    const match = matchOffer(request.name, offers.byName);
    if (match.grant === null) {
      if (match.verdict.admitted) throw new Error("matching gave neither a grant nor a refusal");
      const { gate, code, reason } = match.verdict;
      return { verdict: "refused", offer: null, gate, code, message: reason, judged: null, labels: null };
    }
    const offer = match.grant;
    try {
      return judged(offer, request, checkOf(offer.grant), now);
    } catch (thrown) {
      if (thrown instanceof Invalid) return { verdict: "invalid", offer, gate: "schema", code: thrown.code, message: thrown.message };
      if (thrown instanceof Refused)
        return { verdict: "refused", offer, gate: "labels", code: thrown.code, message: thrown.message, judged: null, labels: null };
      throw thrown;
    }
  };
};

const judged = (offer: Offer, request: CallRequest, check: Check, now: number): Judgement => {
  const args = normaliseArguments(offer.grant.fn, argumentsIn(request));
  const labels = claimedLabels(request.labels, false);
  const bytes = judgedArguments(args);
  if (bytes.bytes.byteLength > mostArgumentBytes) {
    throw new Invalid(
      "ArgumentsTooLarge",
      `the arguments have ${bytes.bytes.byteLength} bytes, more than the ${mostArgumentBytes} allowed`,
      "",
    );
  }
  const verdict = judgeCall({ name: request.name, arguments: args, labels }, { spec: offer.grant.spec, check }, now);
  if (verdict.admitted) return { verdict: "admitted", offer, judged: bytes, labels: shownLabels(labels) };
  const { gate, code, reason: message } = verdict;
  if (verdict.kind === "validation") return { verdict: "invalid", offer, gate, code, message };
  return { verdict: "refused", offer, gate, code, message, judged: bytes, labels: shownLabels(labels) };
};

const argumentsIn = ({ arguments: given }: CallRequest): JsonObject => {
  if (given instanceof Invalid) throw given;
  if (isJsonObject(given)) return given;
  throw new Invalid("ArgumentsNotObject", "arguments must be a JSON object", "");
};

/** The reviewed schema first: it is what a model was told. The tool's own types may be narrower still. */
const checkFor = (grant: LiveGrant): Check => {
  const fits = compileSchema(grant.spec.declaration.parameters);
  return (args) => {
    const violation = fits(args);
    if (violation) return { at: violation.pointer, message: violation.message };
    try {
      checkArguments(grant.fn, args);
      return null;
    } catch (thrown) {
      if (thrown instanceof Invalid) return { at: thrown.at ?? "", message: thrown.message };
      throw thrown;
    }
  };
};
