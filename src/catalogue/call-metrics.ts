import { type MetricsRegistry, secondBuckets } from "../kube/metrics.ts";
import type { Dispatch } from "./dispatch.ts";
import type { Journal, JournalEntry } from "./journal.ts";

/** Grants, and Workloads, that are counted under their own names; the rest are counted together. A catalogue may hold ten thousand, and each has several series. */
const namedGrants = 1_000;
const namedWorkloads = 200;

/** Codes are ours and hosts'; a host that is not itself any more could make them up. */
const namedCodes = 100;

const other = "other";

/** Counts every decision about a call once it is journalled: the entry is the one record, and this what is summed up from it. Nothing a caller wrote becomes a label. */
export const countedJournal = (metrics: MetricsRegistry, journal: Journal): Journal => {
  const calls = callMetrics(metrics);
  const tools = toolMetrics(metrics);
  const codeName = bounded(namedCodes);
  const grantName = bounded(namedGrants);
  const workloadName = bounded(namedWorkloads);
  return (entry) => {
    journal(entry);
    const { outcome, gate, code, tool, workload, durations } = entry;
    calls.decided.add({ outcome, gate: gate ?? "", code: code === null ? "" : codeName(code) });
    calls.seconds.observe({ outcome }, durations.totalMs / 1000);
    if (tool !== null) {
      const [namespace = other, grant = other] = grantName(tool).split("/");
      calls.ofGrants.add({ namespace, grant, outcome });
      const [workloads = other, name = other] = workloadName(`${tool.split("/")[0]}/${workload}`).split("/");
      countRun(tools, { namespace: workloads, workload: name }, entry);
    }
  };
};

const callMetrics = (metrics: MetricsRegistry) => ({
  decided: metrics.counter({
    name: "ambit_calls_total",
    help: "Calls, by what came of them, the gate that decided against them (none where all admitted them) and the reason's code.",
    labels: ["outcome", "gate", "code"],
  }),
  seconds: metrics.histogram({
    name: "ambit_call_duration_seconds",
    help: "From a call's arrival at the gates to its answer.",
    labels: ["outcome"],
    buckets: secondBuckets,
  }),
  ofGrants: metrics.counter({
    name: "ambit_tool_calls_total",
    help: `Calls of tools that were offered, by grant; those of the first ${namedGrants} by name.`,
    labels: ["namespace", "grant", "outcome"],
  }),
});

const ofTool = ["namespace", "workload"] as const;

type OfTool = Readonly<Record<(typeof ofTool)[number], string>>;

type ToolMetrics = ReturnType<typeof toolMetrics>;

const toolMetrics = (metrics: MetricsRegistry) => ({
  attempts: metrics.counter({
    name: "ambit_host_attempts_total",
    help: "Tickets made: calls offered to hosts, and offered to a second one.",
    labels: ofTool,
  }),
  queueSeconds: metrics.histogram({
    name: "ambit_host_queue_seconds",
    help: "How long calls waited in a host for a worker, as the host said.",
    labels: ofTool,
    buckets: secondBuckets,
  }),
  runSeconds: metrics.histogram({
    name: "ambit_host_run_seconds",
    help: "How long a tool's code ran, as its host said.",
    labels: ofTool,
    buckets: secondBuckets,
  }),
  bytes: metrics.counter({
    name: "ambit_call_bytes_total",
    help: "Canonical bytes of arguments that were sent, and bytes of results' texts.",
    labels: [...ofTool, "direction"],
  }),
  requests: metrics.counter({
    name: "ambit_tool_requests_total",
    help: "Requests that tools made of other hosts, as their hosts said; denied are those that were not granted.",
    labels: [...ofTool, "result"],
  }),
  networkBytes: metrics.counter({
    name: "ambit_tool_network_bytes_total",
    help: "Bytes of those requests' bodies, and of their answers'.",
    labels: [...ofTool, "direction"],
  }),
  writtenBytes: metrics.counter({
    name: "ambit_tool_written_bytes_total",
    help: "Bytes that tools wrote to files, as their hosts said.",
    labels: ofTool,
  }),
});

const countRun = (tools: ToolMetrics, of: OfTool, { attempts, argumentBytes, resultBytes, use, durations }: JournalEntry): void => {
  const { queueMs, runMs } = durations;
  if (attempts > 0) tools.attempts.add(of, attempts);
  if (queueMs !== null) tools.queueSeconds.observe(of, queueMs / 1000);
  if (runMs !== null) tools.runSeconds.observe(of, runMs / 1000);
  if (attempts > 0 && argumentBytes !== null) tools.bytes.add({ ...of, direction: "arguments" }, argumentBytes);
  if (resultBytes !== null) tools.bytes.add({ ...of, direction: "result" }, resultBytes);
  if (use === null) return;
  const { requests, deniedRequests, sentBytes, receivedBytes, writtenFileBytes } = use;
  if (requests > deniedRequests) tools.requests.add({ ...of, result: "sent" }, requests - deniedRequests);
  if (deniedRequests > 0) tools.requests.add({ ...of, result: "denied" }, deniedRequests);
  if (sentBytes > 0) tools.networkBytes.add({ ...of, direction: "sent" }, sentBytes);
  if (receivedBytes > 0) tools.networkBytes.add({ ...of, direction: "received" }, receivedBytes);
  if (writtenFileBytes > 0) tools.writtenBytes.add(of, writtenFileBytes);
};

/** The name itself while there are few, then `other`. */
const bounded = (most: number): ((name: string) => string) => {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= most) return other;
    known.add(name);
    return name;
  };
};

/** Counts the calls that hosts have at the moment. */
export const countedDispatch = (metrics: MetricsRegistry, dispatch: Dispatch): Dispatch => {
  let now = 0;
  const underWay = metrics.gauge({
    name: "ambit_calls_in_flight",
    help: "Calls that hosts have now.",
    labels: [],
    collect: () => underWay.set({}, now),
  });
  return async (endpoint, ticket, body) => {
    now++;
    try {
      return await dispatch(endpoint, ticket, body);
    } finally {
      now--;
    }
  };
};
