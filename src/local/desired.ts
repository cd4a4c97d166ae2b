import type { Sha256Digest } from "../api/digest.ts";
import type { GrantedTool, ToolGrant } from "../api/generated/toolgrant.ts";
import type { Workload } from "../api/generated/workload.ts";
import type { HostLimits } from "../api/host.ts";
import { canonicalJson, type JsonObject } from "../api/json.ts";
import type { ComponentKey, LiveGrant } from "../catalogue/state.ts";
import { componentName, findTool, grantedTool, missingComponentText, toolText } from "../grants/granted-tool.ts";
import { type Judgement, judgeGrant, type Observed } from "../grants/judge.ts";
import {
  componentOfTool,
  type GivenSource,
  givenSources,
  type SandboxedComponent,
  sandboxedComponents,
} from "../grants/sandboxed-component.ts";
import { hostLimits } from "../manifests/quantities.ts";
import type { Written } from "../manifests/read.ts";
import { type ComponentFault, type ComponentSeen, seenComponent, type WorkloadObservation } from "./observe.ts";

/** One sandbox that should run: everything but where it listens and where its folders are on this machine. */
export interface DesiredHost {
  readonly key: ComponentKey;
  readonly component: Sha256Digest;
  readonly bytes: () => Promise<Uint8Array>;
  readonly allowedHosts: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly DesiredMount[];
  /** Secrets and ConfigMaps, in the order in which later ones win. */
  readonly sources: readonly GivenSource[];
  readonly limits: HostLimits;
  readonly callsPerInstance: number;
  /** Whether its host is to be asked for tools that it lists itself. */
  readonly listsTools: boolean;
  /** Whether it is an MCP server, which takes the requests of its bridge and no calls. */
  readonly serves: boolean;
  /** Of a bridge to a component: where that is, and which code it was decided for. */
  readonly hop: DesiredHop | null;
  /** Equal exactly where a running host need not be replaced. */
  readonly fingerprint: string;
}

export interface DesiredHop {
  readonly authority: string;
  readonly server: ComponentKey;
  readonly code: Sha256Digest | "any" | null;
}

export interface DesiredMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** Null for an ephemeral volume. */
  readonly claim: string | null;
}

export interface JudgedGrant {
  readonly written: Written<"ToolGrant", ToolGrant>;
  readonly judgement: Judgement;
}

/** A tool that is offered by a component and that no grant names. */
export interface UngrantedTool {
  readonly key: ComponentKey;
  readonly tool: GrantedTool;
}

export interface WorkloadReport {
  readonly key: ComponentKey;
  readonly digest: Sha256Digest | null;
  readonly fault: ComponentFault | null;
  readonly offered: number;
  readonly notOffered: ComponentSeen["notOffered"];
  readonly unmatchedExclusions: readonly string[];
}

export interface Plan {
  readonly hosts: readonly DesiredHost[];
  readonly grants: readonly JudgedGrant[];
  readonly ungranted: readonly UngrantedTool[];
  readonly components: readonly WorkloadReport[];
}

export interface DecideInput {
  readonly workloads: readonly WorkloadObservation[];
  readonly grants: readonly Written<"ToolGrant", ToolGrant>[];
  readonly assertUsableSchema?: (schema: JsonObject) => void;
}

/** What should be, from what was gathered: which sandboxes run, and what each grant is worth. Pure. */
export const decide = ({ workloads, grants, assertUsableSchema }: DecideInput): Plan => {
  const byKey = new Map(workloads.map((observed) => [workloadName(observed.written.object), observed]));
  const judged = grants.map((written) => ({
    written,
    judgement: judgeGrant({
      grant: written.object,
      observed: observedFor(written.object, byKey),
      ...(assertUsableSchema ? { assertUsableSchema } : {}),
    }),
  }));
  const named = new Set(grants.map(({ object }) => toolName(object.metadata.namespace ?? "default", object.spec.tool)));
  return {
    grants: judged,
    hosts: workloads.flatMap(desiredHosts),
    ungranted: workloads.flatMap((observed) => ungrantedTools(observed, named)),
    components: workloads.flatMap(reportsOf),
  };
};

/** What the catalogue is told of a grant that is live; null for one that is not. `alsoFor` is added to the subjects of a grant that has any. */
export const liveGrant = ({ written, judgement }: JudgedGrant, alsoFor: NonNullable<LiveGrant["spec"]["subjects"]>): LiveGrant | null => {
  const { fn, definition } = judgement;
  if (judgement.phase !== "Active" || !fn || !definition) return null;
  const { metadata, spec } = written.object;
  const subjects = spec.subjects ?? [];
  return {
    namespace: metadata.namespace ?? "default",
    name: metadata.name,
    spec: { ...spec, subjects: subjects.length > 0 ? [...subjects, ...alsoFor] : [] },
    grant: judgement.grant,
    definition,
    components: judgement.components,
    fn,
  };
};

const workloadName = ({ metadata }: Workload): string => `${metadata.namespace ?? "default"}/${metadata.name}`;

const toolName = (namespace: string, tool: GrantedTool): string => `${namespace} ${toolText(tool)}`;

const observedFor = (grant: ToolGrant, workloads: ReadonlyMap<string, WorkloadObservation>): Observed => {
  const { tool } = grant.spec;
  const { workload } = tool;
  const absent = (code: string, message: string): Observed => ({ codes: [], absent: { code, message } });
  const found = workloads.get(`${grant.metadata.namespace ?? "default"}/${workload}`);
  if (!found) return absent("WorkloadMissing", `there is no Workload ${workload} in namespace ${grant.metadata.namespace ?? "default"}`);
  if (found.written.object.spec.suspend) return absent("Suspended", `the Workload ${workload} is suspended`);
  const component = componentOfTool(found.written.object.spec, tool);
  const observation = component && found.components.get(component.name);
  if (!observation) return absent("ComponentMissing", missingComponentText(tool));
  const name = componentName(tool);
  if ("fault" in observation) return absent(observation.fault.code, `${workload}/${name}: ${observation.fault.message}`);
  const { seen } = observation;
  if (tool.tool !== undefined && seen.listing === "awaited") return absent("NotListed", `${workload}/${name} has not told its tools yet`);
  const { digest, code, reach } = seen;
  return { codes: [{ digest, ...(code && { code }), reach, ...findTool(seen, tool) }] };
};

const desiredHosts = ({ written, components }: WorkloadObservation): DesiredHost[] => {
  const { object } = written;
  if (object.spec.suspend) return [];
  return sandboxedComponents(object.spec).flatMap((component) => {
    const seen = seenComponent(components.get(component.name));
    const isWanted = seen !== null && (seen.offered.length > 0 || seen.listing !== "none" || component.serves !== undefined);
    return isWanted ? [desiredHost(object, component, seen)] : [];
  });
};

const desiredHost = (workload: Workload, component: SandboxedComponent, seen: ComponentSeen): DesiredHost => {
  const { allowedHosts = [], environment, volumeMounts = [] } = component.localResources ?? {};
  const volumes = workload.spec.volumes ?? [];
  const desired = {
    key: keyOf(workload, component.name),
    component: seen.digest,
    allowedHosts,
    environment: environment?.config ?? {},
    sources: givenSources(component),
    mounts: volumeMounts.map(({ name, mountPath, readOnly }) => ({
      name,
      mountPath,
      readOnly: readOnly !== false,
      claim: volumes.find((volume) => volume.name === name)?.persistentVolumeClaim?.claimName ?? null,
    })),
    limits: hostLimits(component.limits ?? {}),
    callsPerInstance: component.reuse?.calls ?? 1,
    serves: component.serves !== undefined,
    // With other code behind it a bridge is another host: what it knew of the server is of the code before.
    hop:
      component.bridge?.kind === "component"
        ? { authority: component.bridge.component, server: keyOf(workload, component.bridge.component), code: seen.code ?? null }
        : null,
  };
  return {
    ...desired,
    bytes: seen.bytes,
    listsTools: seen.listing !== "none",
    fingerprint: canonicalJson(desired as unknown as JsonObject),
  };
};

const ungrantedTools = ({ written, components }: WorkloadObservation, named: ReadonlySet<string>): UngrantedTool[] => {
  const { object } = written;
  if (object.spec.draftGrants === false) return [];
  return sandboxedComponents(object.spec).flatMap((component) => {
    const key = keyOf(object, component.name);
    const offered = seenComponent(components.get(component.name))?.offered ?? [];
    return offered
      .map((tool) => grantedTool(key.workload, component, tool))
      .filter((tool) => !named.has(toolName(key.namespace, tool)))
      .map((tool) => ({ key, tool }));
  });
};

const reportsOf = ({ written, components }: WorkloadObservation): WorkloadReport[] =>
  sandboxedComponents(written.object.spec).map((component) => {
    const observation = components.get(component.name);
    const seen = seenComponent(observation);
    return {
      key: keyOf(written.object, component.name),
      digest: seen?.digest ?? null,
      fault: observation && "fault" in observation ? observation.fault : null,
      offered: seen?.offered.length ?? 0,
      notOffered: seen?.notOffered ?? [],
      unmatchedExclusions: seen?.unmatchedExclusions ?? [],
    };
  });

const keyOf = (workload: Workload, component: string): ComponentKey => ({
  namespace: workload.metadata.namespace ?? "default",
  workload: workload.metadata.name,
  component,
});
