import { LRUCache } from "lru-cache";
import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonObject } from "../api/json.ts";
import { isUntyped, type ToolDefinition } from "../api/untyped.ts";
import { type ArgumentViolation, judgeCall, matchOffer, type Refusal } from "../grants/gates.ts";
import { leafLabels } from "../grants/labels.ts";
import { checkArguments, normaliseArguments } from "../translate/arguments.ts";
import { compileSchema } from "../translate/schema-judge.ts";
import { type CallRequest, type Judge, type Judgement, judgedArguments } from "./admission.ts";
import { type CallPolicy, defaultCallPolicy } from "./call-policy.ts";
import type { Caller } from "./caller.ts";
import { claimedLabels, shownLabels } from "./claimed-labels.ts";
import type { Offer } from "./offers.ts";
import type { LiveGrant } from "./state.ts";

/** Canonical bytes of one call's arguments: what a host takes. */
const mostArgumentBytes = 1024 * 1024;

/** Compiled schemas kept, of some tens of kilobytes each. */
const schemasKept = 1000;

type Check = (args: JsonObject) => ArgumentViolation | null;

/** Judges calls by the rules of `src/grants`: match, the reviewed schema and the tool's own types, labels, provenance, egress ceiling. */
export const callJudge = (policy: CallPolicy = defaultCallPolicy): Judge => {
  const checks = new LRUCache<LiveGrant, Check>({ max: schemasKept });
  const checkOf = (grant: LiveGrant): Check => {
    const known = checks.get(grant);
    if (known) return known;
    const check = checkFor(grant);
    checks.set(grant, check);
    return check;
  };

  return (caller, offers, request) => {
    const match = matchOffer(request.name, offers.byName);
    if (match.grant === null) return { verdict: "refused", offer: null, refusal: match.verdict, judged: null, labels: null };
    const offer = match.grant;
    try {
      return judged(policy, caller, offer, request, checkOf(offer.grant));
    } catch (thrown) {
      if (!(thrown instanceof Invalid)) throw thrown;
      const { code, message, at = "" } = thrown;
      const refusal: Refusal = { admitted: false, gate: "schema", kind: "validation", code, reason: message, at };
      return { verdict: "refused", offer, refusal, judged: null, labels: null };
    }
  };
};

const judged = (policy: CallPolicy, caller: Caller, offer: Offer, request: CallRequest, check: Check): Judgement => {
  const given = argumentsIn(request);
  const args = normalised(offer.grant.fn, given);
  const { labels, refusal: labelRefusal } = claimedLabels(request.labels, given, policy.isLabeler(caller));
  const bytes = judgedArguments(args);
  if (bytes.bytes.byteLength > mostArgumentBytes) {
    throw new Invalid(
      "ArgumentsTooLarge",
      `the arguments have ${bytes.bytes.byteLength} bytes, more than the ${mostArgumentBytes} allowed`,
      "",
    );
  }
  const call = { name: request.name, arguments: args, labels, labelRefusal, callerCeiling: policy.ceilingOf(caller) };
  const verdict = judgeCall(call, { spec: offer.grant.spec, check });
  const shown = shownLabels(labels);
  if (!verdict.admitted) return { verdict: "refused", offer, refusal: verdict, judged: bytes, labels: shown };
  return { verdict: "admitted", offer, judged: bytes, labels: shown, sent: leafLabels(args, labels) };
};

const argumentsIn = ({ arguments: given }: CallRequest): JsonObject => {
  if (given instanceof Invalid) throw given;
  if (isJsonObject(given)) return given;
  throw new Invalid("ArgumentsNotObject", "arguments must be a JSON object", "");
};

/** What an untyped tool takes goes to it as it is: only its far side knows what its nulls mean. */
const normalised = (tool: ToolDefinition, args: JsonObject): JsonObject => (isUntyped(tool) ? args : normaliseArguments(tool, args));

/** The reviewed schema first: it is what a model was told. The tool's own types may be narrower still. */
const checkFor = ({ spec, fn }: LiveGrant): Check => {
  const fits = compileSchema(spec.declaration.parameters);
  return (args) => {
    const violation = fits(args);
    if (violation) return { at: violation.pointer, message: violation.message };
    if (isUntyped(fn)) return null;
    try {
      checkArguments(fn, args);
      return null;
    } catch (thrown) {
      if (thrown instanceof Invalid) return { at: thrown.at ?? "", message: thrown.message };
      throw thrown;
    }
  };
};
