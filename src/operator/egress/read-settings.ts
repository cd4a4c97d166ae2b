import { isIP } from "node:net";
import { Ajv2020 } from "ajv/dist/2020.js";
import { Invalid } from "../../api/errors.ts";
import { parseRange } from "../../egress/address.ts";
import { parseAllowedHost } from "../../egress/allowed-host.ts";
import { defaultEgressSettings, type EgressSettings } from "./settings.ts";

const ranges = { type: "array", maxItems: 256, items: { type: "string", maxLength: 64 } } as const;
const byNamespace = {
  type: "object",
  maxProperties: 10_000,
  additionalProperties: { type: "array", maxItems: 256, items: { type: "string", maxLength: 300 } },
} as const;
const duration = { type: "string", pattern: "^[0-9]{1,7}(ms|s|m)$" } as const;
const prefix = (longest: number) => ({ type: "integer", minimum: 0, maximum: longest }) as const;

/** docs/egress.md has a line on each. */
const schema = {
  type: "object",
  additionalProperties: false,
  properties: {
    privateRanges: ranges,
    refusedRanges: ranges,
    widestRange: { type: "object", additionalProperties: false, properties: { ipv4: prefix(32), ipv6: prefix(128) } },
    clusterDomain: { type: "string", pattern: "^[a-z0-9.-]{1,200}$" },
    serviceNamespaces: byNamespace,
    hostsByNamespace: byNamespace,
    nameServers: { type: "array", maxItems: 8, items: { type: "string", maxLength: 64 } },
    ttlFloor: duration,
    ttlCeiling: duration,
    drain: duration,
    settle: duration,
    narrowAfter: duration,
    addressesPerName: { type: "integer", minimum: 1, maximum: 1000 },
    addressesPerComponent: { type: "integer", minimum: 1, maximum: 10_000 },
  },
} as const;

/** A file of an installation, as JSON or YAML gives it: the properties of the schema above, all optional. */
interface WrittenSettings {
  readonly privateRanges?: readonly string[];
  readonly refusedRanges?: readonly string[];
  readonly widestRange?: { readonly ipv4?: number; readonly ipv6?: number };
  readonly clusterDomain?: string;
  readonly serviceNamespaces?: Readonly<Record<string, readonly string[]>>;
  readonly hostsByNamespace?: Readonly<Record<string, readonly string[]>>;
  readonly nameServers?: readonly string[];
  readonly ttlFloor?: string;
  readonly ttlCeiling?: string;
  readonly drain?: string;
  readonly settle?: string;
  readonly narrowAfter?: string;
  readonly addressesPerName?: number;
  readonly addressesPerComponent?: number;
}

/**
 * What an installation decides about egress, over the defaults. An operator that can't read it must not start: it would open what was to be closed. Throws `Invalid`
 * (`EgressSettingsInvalid`, at a JSON pointer; `AddressRangeInvalid`, `AllowedHostInvalid`).
 */
export const readEgressSettings = (written: unknown, ambitNamespace: string): EgressSettings => {
  const validate = new Ajv2020({ strict: true }).compile<WrittenSettings>(schema);
  if (!validate(written)) {
    const [fault] = validate.errors ?? [];
    const extra = fault?.params.additionalProperty === undefined ? "" : ` (${String(fault.params.additionalProperty)})`;
    throw invalid(fault?.instancePath ?? "", `${fault?.message ?? "it is not as expected"}${extra}`);
  }
  for (const range of [...(written.privateRanges ?? []), ...(written.refusedRanges ?? [])]) parseRange(range);
  for (const hosts of Object.values(written.hostsByNamespace ?? {})) for (const host of hosts) parseAllowedHost(host, { allowAny: true });
  for (const [index, server] of (written.nameServers ?? []).entries()) assertServer(server, `/nameServers/${index}`);
  const { rules, names, converge, routeLimit } = defaultEgressSettings;
  const settings: EgressSettings = {
    rules: {
      addresses: { privateRanges: written.privateRanges ?? [], refusedRanges: written.refusedRanges ?? [] },
      widestRange: { ...rules.widestRange, ...written.widestRange },
      clusterDomain: written.clusterDomain ?? rules.clusterDomain,
      ambitNamespace,
      serviceNamespaces: written.serviceNamespaces ?? {},
      hostsByNamespace: written.hostsByNamespace ?? {},
    },
    names: {
      ...names,
      ttlFloorMs: milliseconds(written.ttlFloor, names.ttlFloorMs),
      ttlCeilingMs: milliseconds(written.ttlCeiling, names.ttlCeilingMs),
      drainMs: milliseconds(written.drain, names.drainMs),
      addressLimit: written.addressesPerName ?? names.addressLimit,
    },
    converge: {
      settleMs: milliseconds(written.settle, converge.settleMs),
      narrowAfterMs: milliseconds(written.narrowAfter, converge.narrowAfterMs),
    },
    routeLimit: written.addressesPerComponent ?? routeLimit,
    nameServers: written.nameServers ?? [],
  };
  if (settings.names.ttlFloorMs > settings.names.ttlCeilingMs) throw invalid("/ttlFloor", "it is above ttlCeiling");
  return settings;
};

const assertServer = (server: string, at: string): void => {
  const [, address = server] = /^\[?([^\]]+?)\]?:[0-9]{1,5}$/.exec(isIP(server) === 6 ? `[${server}]:53` : server) ?? [];
  if (isIP(address) === 0) throw invalid(at, `${JSON.stringify(server)} is not an IP address, perhaps with a port`);
};

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

const milliseconds = (text: string | undefined, otherwise: number): number => {
  const [, digits, unit = ""] = /^([0-9]+)(ms|s|m)$/.exec(text ?? "") ?? [];
  return digits === undefined ? otherwise : Number(digits) * (units[unit] ?? 1);
};

const invalid = (at: string, why: string): Invalid =>
  new Invalid("EgressSettingsInvalid", `the egress settings cannot be used: ${at === "" ? "" : `${at}: `}${why}`, at);
