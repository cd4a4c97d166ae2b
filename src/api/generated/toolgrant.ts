// Generated from crds/ by `npm run generate`. Do not edit.
import type { Condition } from "../condition.ts";
import type { Reach } from "../definition.ts";
import type { JsonObject, JsonValue } from "../json.ts";
import type { ObjectMeta } from "../object-meta.ts";

/**
 * Lets subjects call one tool, under the name and with the words that a person reviewed. Without a review, or when what was reviewed no longer holds, nobody sees it.
 */
export interface ToolGrant {
  readonly apiVersion: "ambit.dev/v1alpha1";
  readonly kind: "ToolGrant";
  readonly metadata: ObjectMeta;
  readonly spec: ToolGrantSpec;
  readonly status?: ToolGrantStatus;
}
/**
 * Which tool, what a model reads, who may call it and with what.
 */
export interface ToolGrantSpec {
  readonly tool: GrantedTool;
  readonly declaration: GrantedDeclaration;
  /**
   * Who may call it, as in RBAC. Absent or empty means nobody.
   *
   * @maxItems 64
   */
  readonly subjects?: readonly Subject[];
  /**
   * Whether a call may change anything. A tool that mutates takes no untrusted argument unless `fields` says which it takes, and a call whose end is not known is reported as in doubt.
   */
  readonly mutates: boolean;
  /**
   * The most sensitive information that the tool may be sent.
   */
  readonly egressCeiling: "Public" | "Internal" | "Confidential" | "Secret";
  /**
   * How sensitive what the tool answers is at least; `Internal` unless given. An answer is never less sensitive than what the tool was sent.
   */
  readonly outputSensitivity?: "Public" | "Internal" | "Confidential" | "Secret";
  readonly rateLimit?: RateLimit;
  readonly maxEgressBytes?: EgressBudget;
  /**
   * Where arguments must come from. Every rule must hold.
   *
   * @maxItems 64
   */
  readonly fields?: readonly FieldRule[];
  readonly review?: Review;
}
/**
 * What runs, in a Workload of the same namespace: a function of a component, a tool that a component lists itself, or a tool of an MCP server.
 */
export interface GrantedTool {
  /**
   * Name of the Workload.
   */
  readonly workload: string;
  /**
   * Name of the component in it.
   */
  readonly component?: string;
  /**
   * Name of the entry of its `mcpServers`.
   */
  readonly mcpServer?: string;
  /**
   * Full export id with its version, such as `example:github/issues@0.1.0`; absent for a function that the world exports by itself.
   */
  readonly interface?: string;
  /**
   * The function's name as in WIT, such as `list-issues`.
   */
  readonly function?: string;
  /**
   * The name that the component or the MCP server lists the tool under, byte for byte.
   */
  readonly tool?: string;
}
/**
 * What the model reads, byte for byte.
 */
export interface GrantedDeclaration {
  /**
   * The name that the model calls. An empty name marks a draft whose proposed name would not be unique or not valid; it cannot be approved.
   */
  readonly name: string;
  /**
   * What the tool does, for the model. An empty description marks a draft; it cannot be approved.
   */
  readonly description: string;
  /**
   * JSON Schema (2020-12) of the arguments. Calls must satisfy it and the function's own types, so it can only narrow them.
   */
  readonly parameters: JsonObject;
  /**
   * How long providers that honour it should cache the declarations up to this one.
   */
  readonly cache?: "5m" | "1h";
}
/**
 * One account, user or group.
 */
export interface Subject {
  /**
   * What `name` names.
   */
  readonly kind: "ServiceAccount" | "Group" | "User";
  /**
   * Name of the account, user or group, compared byte for byte.
   */
  readonly name: string;
  /**
   * Namespace of the ServiceAccount.
   */
  readonly namespace?: string;
}
/**
 * How often one caller may call the tool. Every call that passed the other gates counts, unless no host could be asked to run it.
 */
export interface RateLimit {
  /**
   * Calls of one caller within `window`.
   */
  readonly count: number;
  /**
   * The length of the window, in `s`, `m`, `h` or `d`, at most 31 days. It ends now, at any moment.
   */
  readonly window: string;
}
/**
 * How much one caller may send to the tool, whatever its sensitivity.
 */
export interface EgressBudget {
  /**
   * Bytes of arguments, as canonical JSON, of all calls of one caller within `window`; a number, or one with `Ki`, `Mi` or `Gi`.
   */
  readonly bytes: string;
  /**
   * The length of the window, in `s`, `m`, `h` or `d`, at most 31 days. It ends now, at any moment.
   */
  readonly window: string;
}
/**
 * What one part of the arguments must satisfy; exactly one of the four requirements is given.
 */
export interface FieldRule {
  /**
   * JSON Pointer (RFC 6901) into the arguments; the empty string is all of them.
   */
  readonly path: string;
  /**
   * The values allowed, compared as JSON.
   *
   * @minItems 1
   * @maxItems 256
   */
  readonly oneOf?: readonly JsonValue[];
  /**
   * The value must be trusted; `true` or absent.
   */
  readonly requireTrusted?: true;
  /**
   * Every source of the value must be listed; a value without a source is refused.
   *
   * @minItems 1
   * @maxItems 64
   */
  readonly allowedSources?: readonly string[];
  /**
   * The value may be what a model wrote; `true` or absent.
   */
  readonly acceptUntrusted?: true;
  /**
   * The most sensitive information that may be in this part.
   */
  readonly maxSensitivity?: "Public" | "Internal" | "Confidential" | "Secret";
}
/**
 * What a person approved. Absent means a draft. The grant is live exactly while what is true now matches all of it.
 */
export interface Review {
  /**
   * Digest of what the function says of itself, types and documentation.
   */
  readonly definition: string;
  /**
   * Digest of this spec without its review.
   */
  readonly grant: string;
  /**
   * What the tool could touch when it was approved. Less is fine later, more withholds the tool.
   */
  readonly reach: Reach;
  /**
   * The code: one sha256 of the component's bytes, two during a rollout, or `any` alone.
   *
   * @minItems 1
   * @maxItems 2
   */
  readonly component: readonly string[];
  /**
   * Who approved it, for information.
   */
  readonly reviewer?: string;
  /**
   * When, for information.
   */
  readonly time?: string;
  /**
   * Why, for information.
   */
  readonly note?: string;
}
/**
 * What was observed. Written by Ambit alone.
 */
export interface ToolGrantStatus {
  /**
   * The generation of the spec that this status is about.
   */
  readonly observedGeneration?: number;
  /**
   * Ready, Reconciling and Stalled as kstatus defines them, and more specific ones.
   *
   * @maxItems 16
   *
   * Items: One aspect of the state.
   */
  readonly conditions?: readonly Condition[];
  /**
   * Draft: no review. Active: offered to its subjects. Drifted: what was reviewed no longer holds. Withheld: it holds, but something else keeps it from being offered. Invalid: it cannot work as written.
   */
  readonly phase?: "Draft" | "Active" | "Drifted" | "Withheld" | "Invalid";
  readonly observed?: ObservedDefinition;
  /**
   * Code that the grant approves now, by the sha256 of the component's bytes. Calls go only to hosts that run one of these.
   *
   * @maxItems 16
   */
  readonly components?: readonly string[];
  /**
   * Where the code is that was observed, so that an operator that starts anew in the middle of a rollout finds all of it.
   *
   * @maxItems 16
   */
  readonly images?: readonly ToolGrantStatusImages[];
  /**
   * How what is true now differs from what was reviewed.
   *
   * @maxItems 100
   */
  readonly changes?: readonly ObservedChange[];
  /**
   * Providers that would reject the declaration, for which it is left out.
   *
   * @maxItems 32
   */
  readonly leftOut?: readonly ProviderRejection[];
  /**
   * Characters in the declaration that a reader may not see or may take for others.
   *
   * @maxItems 100
   */
  readonly hiddenCharacters?: readonly HiddenCharacterStatus[];
}
/**
 * What the function says of itself now.
 */
export interface ObservedDefinition {
  /**
   * Digest of the definition.
   */
  readonly digest: string;
  /**
   * The definition as canonical JSON; absent where it is longer than allowed here, and then the tool is not offered.
   */
  readonly text?: string;
  /**
   * The code that says so: sha256 of the component's bytes.
   */
  readonly component?: string;
  /**
   * What a review names for it, where that is not `component`: the sha256 of the component that an MCP server is, or `any` for a remote one.
   */
  readonly code?: string;
  /**
   * Where that code is, with the digest that the image was resolved to.
   */
  readonly image?: string;
  /**
   * The uid of the Workload that it was observed under, a slash, and a hash of what that runs and may reach.
   */
  readonly workload?: string;
  /**
   * What that code may touch now, in the words of `review.reach`.
   */
  readonly reach?: Reach;
}
/**
 * Code, and where it is.
 */
export interface ToolGrantStatusImages {
  /**
   * The sha256 of the component's bytes.
   */
  readonly component: string;
  /**
   * The image with the digest that it was resolved to.
   */
  readonly image: string;
}
/**
 * One difference.
 */
export interface ObservedChange {
  /**
   * Where, as a JSON Pointer that starts with the half it is in, such as `/definition/docs`.
   */
  readonly path: string;
  /**
   * What was reviewed; absent where there was nothing.
   */
  readonly before?: string;
  /**
   * What is true now; absent where there is nothing any more.
   */
  readonly after?: string;
}
/**
 * One provider and one of its rules.
 */
export interface ProviderRejection {
  /**
   * The format that it is left out of.
   */
  readonly provider: string;
  /**
   * The rule, in words.
   */
  readonly rule: string;
  /**
   * JSON Pointer into the declaration.
   */
  readonly where: string;
}
/**
 * One character.
 */
export interface HiddenCharacterStatus {
  /**
   * JSON Pointer into the declaration.
   */
  readonly path: string;
  /**
   * Such as `U+200B`.
   */
  readonly codePoint: string;
  /**
   * What it is called.
   */
  readonly name: string;
}
