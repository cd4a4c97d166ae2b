import type { DefinitionDigest, Reach } from "../api/definition.ts";
import type { Sha256Digest } from "../api/digest.ts";
import type { Subject, ToolGrantSpec } from "../api/generated/toolgrant.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import { componentName } from "../grants/granted-tool.ts";
import { reachWithin } from "../grants/reach.ts";

/** `namespace/grant`: what a declaration's `tool` says. */
export type CatalogueId = `${string}/${string}`;

/**
 * A grant that is live: judged by whoever feeds the state, never here.
 *
 * `components` are the code digests whose code *and* definition the grant approved, so a call goes to no other host. `definition` is what every one of them
 * says of the tool, and `fn` the same in full.
 */
export interface LiveGrant {
  readonly namespace: string;
  readonly name: string;
  readonly spec: ToolGrantSpec;
  readonly grant: Sha256Digest;
  readonly definition: DefinitionDigest;
  readonly components: readonly Sha256Digest[];
  readonly fn: ToolDefinition;
}

/**
 * A host that is ready for calls: `url` has no path (`http://127.0.0.1:40123`); `deadlineMs` is after how long it ends a call by itself. `tls` is there exactly where
 * the URL is of https.
 */
export interface Endpoint {
  readonly url: string;
  readonly tls?: EndpointTls;
  readonly podUid: string;
  readonly bootId: string;
  readonly component: Sha256Digest;
  readonly deadlineMs: number;
  /** What the host was made to touch; absent where none is there before every grant was judged by what it is to touch. */
  readonly reach?: Reach;
}

/** Who answers at an address, or nobody may: `servername` is a name that only the right start of the right pod has a certificate for, `ca` who signed it (PEM). */
export interface EndpointTls {
  readonly ca: string;
  readonly servername: string;
  readonly minVersion: "TLSv1.3";
}

/** Where a component's hosts are filed. */
export interface ComponentKey {
  readonly namespace: string;
  readonly workload: string;
  readonly component: string;
}

/** `namespace/workload/component`: one text for one component. */
export const componentKeyText = ({ namespace, workload, component }: ComponentKey): string => `${namespace}/${workload}/${component}`;

/**
 * One fact that is now otherwise. A grant replaces the one of its id; endpoints replace all that its component had; a namespace's `acceptsGrantsFrom` is the
 * text of its annotation `ambit.dev/accepts-grants-from`, null where it has none.
 */
export type CatalogueChange =
  | { readonly kind: "grant"; readonly grant: LiveGrant }
  | { readonly kind: "grant-withdrawn"; readonly id: CatalogueId }
  | { readonly kind: "endpoints"; readonly of: ComponentKey; readonly endpoints: readonly Endpoint[] }
  | { readonly kind: "namespace"; readonly name: string; readonly acceptsGrantsFrom: string | null };

/** Which subjects a change concerns: only their offers are computed anew. `everyone` when a namespace changed. */
export interface Touched {
  readonly subjects: ReadonlySet<SubjectKey>;
  readonly everyone: boolean;
}

/** `User:…` or `Group:…`; a ServiceAccount is the user `system:serviceaccount:<namespace>:<name>`, as the API server names it. */
export type SubjectKey = `User:${string}` | `Group:${string}`;

export const catalogueId = (grant: { readonly namespace: string; readonly name: string }): CatalogueId =>
  `${grant.namespace}/${grant.name}`;

export const serviceAccountUser = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`;

/** Null where the subject names nobody: a ServiceAccount without its namespace. */
export const subjectKey = (subject: Subject): SubjectKey | null => {
  switch (subject.kind) {
    case "ServiceAccount":
      return subject.namespace === undefined ? null : `User:${serviceAccountUser(subject.namespace, subject.name)}`;
    case "User":
      return `User:${subject.name}`;
    case "Group":
      return `Group:${subject.name}`;
  }
};

/**
 * What the catalogue knows: live grants, ready hosts, and which namespaces accept whose grants. Whoever watches the world feeds it with `apply`; one grant's
 * change costs what that grant touches, however many others there are.
 */
export class CatalogueState {
  readonly #grants = new Map<CatalogueId, LiveGrant>();
  readonly #bySubject = new Map<SubjectKey, Map<CatalogueId, LiveGrant>>();
  readonly #revisions = new Map<SubjectKey, number>();
  readonly #endpoints = new Map<string, readonly Endpoint[]>();
  readonly #namespaces = new Map<string, string>();
  /** Reading hosts takes long compared to a call's other gates. */
  readonly #withinReview = new WeakMap<LiveGrant, WeakMap<Reach, boolean>>();
  readonly #listeners = new Set<(touched: Touched) => void>();
  #revision = 0;
  #namespacesRevision = 0;

  /** Takes in all of `changes` before anybody hears of any. */
  apply(changes: readonly CatalogueChange[]): void {
    this.#revision++;
    const subjects = new Set<SubjectKey>();
    let everyone = false;
    for (const change of changes) {
      switch (change.kind) {
        case "grant":
          this.#withdraw(catalogueId(change.grant), subjects);
          this.#offer(change.grant, subjects);
          break;
        case "grant-withdrawn":
          this.#withdraw(change.id, subjects);
          break;
        case "endpoints":
          if (change.endpoints.length > 0) this.#endpoints.set(componentKeyText(change.of), [...change.endpoints]);
          else this.#endpoints.delete(componentKeyText(change.of));
          break;
        case "namespace":
          everyone = this.#setNamespace(change.name, change.acceptsGrantsFrom) || everyone;
          break;
      }
    }
    for (const key of subjects) {
      // Absent, read as 0, always means a subject without grants, so those need no memory.
      if (this.#bySubject.has(key)) this.#revisions.set(key, this.#revision);
      else this.#revisions.delete(key);
    }
    if (everyone) this.#namespacesRevision = this.#revision;
    if (subjects.size === 0 && !everyone) return;
    for (const listener of this.#listeners) listener({ subjects, everyone });
  }

  /** Calls `listener` after every change that may alter somebody's offers; returns what ends that. */
  subscribe(listener: (touched: Touched) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  grant(id: CatalogueId): LiveGrant | undefined {
    return this.#grants.get(id);
  }

  get size(): number {
    return this.#grants.size;
  }

  /** Grants that name any of these subjects, each once, in no order that means anything. */
  grantsNaming(subjects: readonly SubjectKey[]): LiveGrant[] {
    const found = new Map<CatalogueId, LiveGrant>();
    for (const subject of subjects) {
      for (const [id, grant] of this.#bySubject.get(subject) ?? []) found.set(id, grant);
    }
    return [...found.values()];
  }

  /** Differs whenever `grantsNaming(subjects)` or `namespaces` may differ; says nothing to another process. */
  revisionFor(subjects: readonly SubjectKey[]): string {
    return `${this.#namespacesRevision}:${subjects.map((subject) => this.#revisions.get(subject) ?? 0).join(",")}`;
  }

  /** Texts of the annotation `ambit.dev/accepts-grants-from`, by namespace; those without it are absent. */
  get namespaces(): ReadonlyMap<string, string> {
    return this.#namespaces;
  }

  /**
   * Ready hosts that run code the grant approved, and were made to touch no more than it did: a host of what the Workload says now may be known before the verdict on that is, and one of what it said before
   * may still be there.
   */
  endpointsOf(grant: LiveGrant): Endpoint[] {
    const { tool } = grant.spec;
    const key = { namespace: grant.namespace, workload: tool.workload, component: componentName(tool) };
    const filed = this.#endpoints.get(componentKeyText(key)) ?? [];
    return filed.filter((endpoint) => grant.components.includes(endpoint.component) && this.#isWithinReview(grant, endpoint));
  }

  #isWithinReview(grant: LiveGrant, { reach }: Endpoint): boolean {
    if (reach === undefined) return true;
    const reviewed = grant.spec.review?.reach;
    if (reviewed === undefined) return false;
    const known = this.#withinReview.get(grant) ?? new WeakMap<Reach, boolean>();
    this.#withinReview.set(grant, known);
    const isWithin = known.get(reach) ?? reachWithin(reach, reviewed).length === 0;
    known.set(reach, isWithin);
    return isWithin;
  }

  #offer(grant: LiveGrant, touched: Set<SubjectKey>): void {
    const id = catalogueId(grant);
    this.#grants.set(id, grant);
    for (const key of subjectKeys(grant)) {
      touched.add(key);
      const bucket = this.#bySubject.get(key);
      if (bucket) bucket.set(id, grant);
      else this.#bySubject.set(key, new Map([[id, grant]]));
    }
  }

  #withdraw(id: CatalogueId, touched: Set<SubjectKey>): void {
    const grant = this.#grants.get(id);
    if (!grant) return;
    this.#grants.delete(id);
    for (const key of subjectKeys(grant)) {
      touched.add(key);
      const bucket = this.#bySubject.get(key);
      bucket?.delete(id);
      if (bucket?.size === 0) this.#bySubject.delete(key);
    }
  }

  #setNamespace(name: string, accepts: string | null): boolean {
    if ((this.#namespaces.get(name) ?? null) === accepts) return false;
    if (accepts === null) this.#namespaces.delete(name);
    else this.#namespaces.set(name, accepts);
    return true;
  }
}

const subjectKeys = (grant: LiveGrant): Set<SubjectKey> =>
  new Set((grant.spec.subjects ?? []).map(subjectKey).filter((key) => key !== null));
