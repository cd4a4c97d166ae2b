import type { KeyObject } from "node:crypto";
import type { ContentBlock } from "../api/content.ts";
import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import { AmbitError, type Invalid, messageOf } from "../api/errors.ts";
import type { HostReply } from "../api/host.ts";
import { canonicalJson, type JsonObject, type JsonValue } from "../api/json.ts";
import type { TicketClaims } from "../api/ticket.ts";
import { isUntyped, untypedInterface } from "../api/untyped.ts";
import type { DeclarationFormat } from "../declaration/formats.ts";
import type { Refusal } from "../grants/gates.ts";
import { type Label, resultLabel } from "../grants/labels.ts";
import { signTicket } from "../tickets/ticket.ts";
import type { Allowances } from "./allowance.ts";
import { failed, faultText, nothing, notRun, outcomeOf, type Ran, unavailableText, uncountedText, unknown } from "./call-end.ts";
import type { Caller } from "./caller.ts";
import { shownLabel } from "./claimed-labels.ts";
import type { Receipt } from "./counters.ts";
import type { Dispatch, Dispatched } from "./dispatch.ts";
import type { CallOutcome, Journal, JournalEntry } from "./journal.ts";
import type { Offer, Offers } from "./offers.ts";
import { outputJudge } from "./output-judge.ts";
import type { CatalogueState, Endpoint } from "./state.ts";

/** A call as a model made it: nothing of it is believed. */
export interface CallRequest {
  readonly name: string;
  /** `Invalid` where what the model wrote could not be read: the error of this call alone. */
  readonly arguments: JsonValue | Invalid;
  /** Labels by JSON pointer, as the caller claims them. */
  readonly labels: JsonValue | undefined;
  readonly session: string | null;
  /** The shape of declarations in an answer that has some; neutral by default. */
  readonly format?: DeclarationFormat;
  /** The caller's span that the call belongs to, where that came with the call and not with the request. */
  readonly traceparent?: string;
  /** Hears that every gate let the call through, before a host has it. */
  readonly onAdmitted?: () => void;
}

/**
 * What the gates together say of a call.
 *
 * - `admitted`: `judged` is what runs; `sent` are the labels of its parts.
 * - `refused`: `refusal` says by which gate, and whether the model may read why.
 * - `unjudged`: nobody could tell; nothing runs.
 */
export type Judgement =
  | {
      readonly verdict: "admitted";
      readonly offer: Offer;
      readonly judged: JudgedArguments;
      readonly labels: JsonObject | null;
      readonly sent: readonly Label[];
    }
  | {
      readonly verdict: "refused";
      readonly offer: Offer | null;
      readonly refusal: Refusal;
      readonly judged: JudgedArguments | null;
      readonly labels: JsonObject | null;
    }
  | {
      readonly verdict: "unjudged";
      readonly offer: Offer | null;
      readonly gate: string;
      readonly code: string;
      readonly reason: string;
      readonly text: string;
      readonly judged: JudgedArguments | null;
      readonly labels: JsonObject | null;
    };

/** Arguments after normalisation, in their canonical bytes: exactly these are judged, signed and run. */
export interface JudgedArguments {
  readonly bytes: Uint8Array;
  readonly digest: Sha256Digest;
}

export const judgedArguments = (value: JsonObject): JudgedArguments => {
  const bytes = Buffer.from(canonicalJson(value), "utf8");
  return { bytes, digest: sha256Of(bytes) };
};

/** Judges by all that needs no memory of other calls. */
export type Judge = (caller: Caller, offers: Offers, request: CallRequest) => Judgement;

/** What a caller is told. `text` is for the model. */
export interface CallAnswer {
  readonly outcome: CallOutcome;
  readonly text: string;
  /** Where the answer is more than one text; `text` then holds its texts. */
  readonly content?: readonly ContentBlock[];
  readonly structured?: JsonValue;
  /** Names of tools that a search found. */
  readonly found?: readonly string[];
  /** Of what the tool answered, all of it; absent where no tool did. */
  readonly label?: Label;
  /** When the call may be tried again, of one that came too soon. */
  readonly retryAfterMs?: number;
  /** Why, for operators: never sent to a caller who is none. */
  readonly reason?: { readonly call: string; readonly gate: string | null; readonly code: string; readonly message: string };
}

export interface AdmissionDeps {
  readonly state: CatalogueState;
  readonly judge: Judge;
  /** The caller's offers with the catalogue's own tool of the name that is called, if it has one. */
  readonly withOwnTools?: (offers: Offers, request: CallRequest) => Offers;
  readonly allowances: Allowances;
  /** The key that hosts were told of, asked for at each call, since keys rotate. */
  readonly signer: () => { readonly kid: string; readonly key: KeyObject };
  readonly dispatch: Dispatch;
  readonly journal: Journal;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds on a clock that never jumps. */
  readonly monotonic: () => number;
  readonly random: (bytes: number) => Uint8Array;
  /** Hears of faults of the catalogue itself. */
  readonly report: (fault: unknown) => void;
}

/** Long enough for a slow connection to a host; a host takes a ticket before it queues the call. */
const ticketLifetimeMs = 30_000;

/** Hosts that one call is offered to: a second only where nothing ran at the first. */
const maxAttempts = 2;

/** Judges a call, has a host run it, and journals what came of it: the only way from a request to a host. */
export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #judgeOutput = outputJudge();
  readonly #underWay = new Map<string, number>();

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  async call(caller: Caller, offers: Offers, request: CallRequest): Promise<CallAnswer> {
    const { monotonic, now, journal, random, withOwnTools } = this.#deps;
    const started = monotonic();
    const id = Buffer.from(random(12)).toString("base64url");
    const { judgement, receipt } = await this.#admit(caller, withOwnTools?.(offers, request) ?? offers, request);
    if (judgement.verdict === "admitted") request.onAdmitted?.();
    const ran = judgement.verdict === "admitted" ? await this.#tryRun(judgement.offer, judgement.judged) : notRun(judgement);
    if (!ran.wasSent && receipt.length > 0) await this.#giveBack(receipt);
    const label =
      judgement.verdict === "admitted" && ran.reply
        ? resultLabel(judgement.offer.id, judgement.offer.grant.spec.outputSensitivity, judgement.sent)
        : null;
    const { judged, labels } = judgement;
    const { grant } = judgement.offer ?? {};
    const entry: JournalEntry = {
      time: new Date(now()).toISOString(),
      event: "call",
      id,
      subject: caller.user,
      session: request.session,
      name: request.name.slice(0, 128),
      tool: judgement.offer?.id ?? null,
      workload: grant?.spec.tool.workload ?? null,
      grant: grant?.grant ?? null,
      definition: grant?.definition ?? null,
      component: ran.endpoint?.component ?? null,
      pod: ran.endpoint?.podUid ?? null,
      arguments: judged?.digest ?? null,
      argumentBytes: judged?.bytes.byteLength ?? null,
      labels,
      resultLabel: label && shownLabel(label),
      gate: gateOf(judgement),
      outcome: ran.outcome,
      code: ran.code,
      reason: ran.reason,
      attempts: ran.attempts,
      resultBytes: ran.outcome === "ok" || ran.outcome === "tool-error" ? Buffer.byteLength(ran.text, "utf8") : null,
      use: useIn(ran.reply),
      durations: {
        totalMs: rounded(monotonic() - started),
        hostMs: ran.hostMs === null ? null : rounded(ran.hostMs),
        queueMs: ran.reply?.stats.queueMs ?? null,
        runMs: ran.reply?.stats.runMs ?? null,
      },
    };
    journal(entry);
    const { outcome, text, structured, code, reason, retryAfterMs } = ran;
    return {
      outcome,
      text,
      ...(ran.content !== undefined && { content: ran.content }),
      ...(structured !== undefined && { structured }),
      ...(ran.found && { found: ran.found }),
      ...(label && { label }),
      ...(retryAfterMs !== null && { retryAfterMs }),
      ...(code !== null && { reason: { call: id, gate: entry.gate, code, message: reason ?? "" } }),
    };
  }

  /** Judges, and takes of the caller's limits what the call needs. A refusal of what was sent to a tool counts against how many there may be. */
  async #admit(caller: Caller, offers: Offers, request: CallRequest): Promise<{ judgement: Judgement; receipt: Receipt }> {
    const judgement = this.#judge(caller, offers, request);
    const { offer, judged, labels } = judgement;
    const by = { subject: caller.user, session: request.session };
    const { allowances, report } = this.#deps;
    try {
      if (judgement.verdict === "admitted") {
        const allowed = await allowances.take(by, judgement.offer, judgement.judged.bytes.byteLength);
        if (allowed.refusal === null) return { judgement, receipt: allowed.receipt };
        return { judgement: { verdict: "refused", offer, refusal: allowed.refusal, judged, labels }, receipt: [] };
      }
      if (judgement.verdict === "refused" && offer !== null && judgement.refusal.kind === "policy") await allowances.deny(by, offer);
    } catch (fault) {
      report(fault);
      if (judgement.verdict !== "admitted") return { judgement, receipt: [] };
      const code = fault instanceof AmbitError ? fault.code : "Internal";
      return {
        judgement: { verdict: "unjudged", gate: "rate", code, reason: messageOf(fault), text: uncountedText, offer, judged, labels },
        receipt: [],
      };
    }
    return { judgement, receipt: [] };
  }

  /** A fault in judging admits nothing. */
  #judge(caller: Caller, offers: Offers, request: CallRequest): Judgement {
    try {
      return this.#deps.judge(caller, offers, request);
    } catch (fault) {
      this.#deps.report(fault);
      const nobody = { offer: null, judged: null, labels: null };
      return { verdict: "unjudged", gate: "fault", code: "Internal", reason: faultText, text: faultText, ...nobody };
    }
  }

  /** What can't be given back stays used. */
  async #giveBack(receipt: Receipt): Promise<void> {
    try {
      await this.#deps.allowances.giveBack(receipt);
    } catch (fault) {
      this.#deps.report(fault);
    }
  }

  /** A fault once the call was admitted leaves open whether a host has it. */
  async #tryRun(offer: Offer, judged: JudgedArguments): Promise<Ran> {
    try {
      if (offer.answer) return { ...nothing, outcome: "ok", code: null, reason: null, ...offer.answer(judged.bytes) };
      return await this.#run(offer, judged);
    } catch (fault) {
      this.#deps.report(fault);
      return { ...unknown(offer.grant.spec.mutates, "Internal", messageOf(fault), faultText), wasSent: true };
    }
  }

  /** Offers the call to a host that runs what was approved, and to a second one at most, where nothing ran at the first. */
  async #run(offer: Offer, judged: JudgedArguments): Promise<Ran> {
    const started = this.#deps.monotonic();
    const tried: Endpoint[] = [];
    let wasSent = false;
    let last: Ran = failed("NoReadyHost", "no host that runs approved code is ready", unavailableText);
    while (tried.length < maxAttempts) {
      const endpoint = this.#choose(offer, tried);
      if (!endpoint) break;
      tried.push(endpoint);
      const dispatched = this.#judgeOutput(offer.grant, await this.#send(offer, endpoint, judged));
      const { again, ...ran } = outcomeOf(dispatched, offer.grant.spec.mutates);
      last = { ...ran, endpoint };
      wasSent ||= dispatched.kind !== "unreachable";
      if (!again) break;
    }
    return { ...last, wasSent, attempts: tried.length, hostMs: tried.length > 0 ? this.#deps.monotonic() - started : null };
  }

  async #send(offer: Offer, endpoint: Endpoint, judged: JudgedArguments): Promise<Dispatched> {
    const { signer, dispatch, now, random } = this.#deps;
    const { kid, key } = signer();
    const { grant } = offer;
    const iat = now();
    const claims: TicketClaims = {
      v: 1,
      kid,
      body: judged.digest,
      interface: isUntyped(grant.fn) ? untypedInterface : grant.fn.interface,
      function: grant.fn.name,
      definition: grant.definition,
      component: endpoint.component,
      grant: grant.grant,
      pod: endpoint.podUid,
      boot: endpoint.bootId,
      iat,
      exp: iat + ticketLifetimeMs,
      nonce: Buffer.from(random(16)).toString("base64url"),
    };
    this.#underWay.set(endpoint.url, (this.#underWay.get(endpoint.url) ?? 0) + 1);
    try {
      return await dispatch(endpoint, signTicket(key, claims), judged.bytes);
    } finally {
      const left = (this.#underWay.get(endpoint.url) ?? 1) - 1;
      if (left > 0) this.#underWay.set(endpoint.url, left);
      else this.#underWay.delete(endpoint.url);
    }
  }

  /** The one with the fewest calls of ours under way; among equals any, so that replicas of the catalogue do not all take the first. */
  #choose(offer: Offer, tried: readonly Endpoint[]): Endpoint | undefined {
    const left = this.#deps.state.endpointsOf(offer.grant).filter((endpoint) => !tried.some((other) => isSame(endpoint, other)));
    if (left.length < 2) return left[0];
    const load = (endpoint: Endpoint) => this.#underWay.get(endpoint.url) ?? 0;
    const least = Math.min(...left.map(load));
    const free = left.filter((endpoint) => load(endpoint) === least);
    return free[(this.#deps.random(1)[0] ?? 0) % free.length];
  }
}

const isSame = (a: Endpoint, b: Endpoint): boolean => a.podUid === b.podUid && a.bootId === b.bootId;

const gateOf = (judgement: Judgement): string | null => {
  switch (judgement.verdict) {
    case "admitted":
      return null;
    case "refused":
      return judgement.refusal.gate;
    case "unjudged":
      return judgement.gate;
  }
};

const useIn = (reply: HostReply | null): JournalEntry["use"] => {
  if (reply?.stats.use === undefined) return null;
  const { exchanges: _, ...counts } = reply.stats.use;
  return counts;
};

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;
