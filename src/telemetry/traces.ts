import type { Tracer } from "@opentelemetry/api";
import type { Sampler } from "@opentelemetry/sdk-trace";
import { Invalid, messageOf } from "../api/errors.ts";
import { ambitVersion } from "../api/version.ts";

/** Where spans go. What a host tells of a call is of another service than who tells it. */
export interface Traces {
  readonly catalogue: Tracer;
  readonly host: Tracer;
  /** Sends what has ended, for at most some seconds, and no more after that. */
  close(): Promise<void>;
}

export interface TracesOptions {
  /** OpenTelemetry's variables, by their standard names: https://opentelemetry.io/docs/specs/otel/protocol/exporter/ */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** This process's, among all that tell of themselves: a pod's name. */
  readonly instance: string;
  /** Hears of spans that did not get there. */
  readonly report: (fault: unknown) => void;
}

/** Longest that a process waits for its last spans to be taken. */
const closingMs = 5_000;

/** As much as 512 calls have; what comes beyond while a collector is slow or away is dropped, and said. */
const queuedSpans = 4096;

/** Whether the environment names a collector, and nothing there says not to. */
export const wantsTraces = (env: TracesOptions["env"]): boolean =>
  Boolean(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT) &&
  env.OTEL_SDK_DISABLED?.toLowerCase() !== "true" &&
  env.OTEL_TRACES_EXPORTER !== "none";

/**
 * Starts exporting spans over OTLP/HTTP (JSON), as the environment says; null where it names no collector, and nothing is loaded then. Throws `Invalid` `TracesSettingInvalid`.
 */
export const startTraces = async ({ env, instance, report }: TracesOptions): Promise<Traces | null> => {
  if (!wantsTraces(env)) return null;
  const url = collectorIn(env);
  if (env.OTEL_TRACES_EXPORTER !== undefined && env.OTEL_TRACES_EXPORTER !== "otlp") {
    throw new Invalid("TracesSettingInvalid", `OTEL_TRACES_EXPORTER is ${env.OTEL_TRACES_EXPORTER}; there are otlp and none`);
  }
  const [{ diag, DiagLogLevel }, sdk, { OTLPTraceExporter }, { detectResources, envDetector, resourceFromAttributes }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);
  const tell = (message: string, ...details: unknown[]): void =>
    report(new Error([message, ...details.map((detail) => (typeof detail === "string" ? detail : messageOf(detail)))].join(" ")));
  const nothing = (): void => {};
  diag.setLogger(
    { error: tell, warn: tell, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const processor = new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }), maxQueueSize: queuedSpans });
  const sampler = samplerIn(env, sdk);
  const fromEnvironment = detectResources({ detectors: [envDetector] });
  const providerOf = (service: string) =>
    new sdk.TracerProvider({
      sampler,
      spanProcessors: [processor],
      resource: resourceFromAttributes({
        "service.namespace": "ambit",
        "service.version": ambitVersion,
        "service.instance.id": instance,
      })
        .merge(fromEnvironment)
        .merge(resourceFromAttributes({ "service.name": service })),
    });
  return {
    catalogue: providerOf(env.OTEL_SERVICE_NAME || "ambit-catalogue").getTracer("ambit", ambitVersion),
    host: providerOf("ambit-host").getTracer("ambit", ambitVersion),
    close: async () => {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, closingMs);
      await Promise.race([processor.shutdown().catch(report), late]);
      clearTimeout(timer);
    },
  };
};

/** Of all signals, as a folder; or of traces alone, exactly. Headers, certificates and the like the exporter reads of the process's environment by itself. */
const collectorIn = (env: TracesOptions["env"]): string => {
  const all = env.OTEL_EXPORTER_OTLP_ENDPOINT ?? "";
  const url = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || `${all.replace(/\/$/, "")}/v1/traces`;
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new Invalid("TracesSettingInvalid", `the collector ${JSON.stringify(url)} is no URL of http or https`);
};

/** The standard's samplers by their standard names; without one, what the caller asks for, and all that asks for nothing. */
const samplerIn = (env: TracesOptions["env"], sdk: typeof import("@opentelemetry/sdk-trace")): Sampler => {
  const name = env.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  const [, parentBased, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined) throw new Invalid("TracesSettingInvalid", `OTEL_TRACES_SAMPLER names no sampler: ${JSON.stringify(name)}`);
  const root = kind === "always_on" ? new sdk.AlwaysOnSampler() : kind === "always_off" ? new sdk.AlwaysOffSampler() : ratioIn(env, sdk);
  return parentBased ? new sdk.ParentBasedSampler({ root }) : root;
};

const ratioIn = (
  { OTEL_TRACES_SAMPLER_ARG: text = "1" }: TracesOptions["env"],
  sdk: typeof import("@opentelemetry/sdk-trace"),
): Sampler => {
  const ratio = Number(text);
  if (text.trim() === "" || !(ratio >= 0 && ratio <= 1)) {
    throw new Invalid("TracesSettingInvalid", `OTEL_TRACES_SAMPLER_ARG is a number from 0 to 1, not ${JSON.stringify(text)}`);
  }
  return new sdk.TraceIdRatioBasedSampler(ratio);
};
