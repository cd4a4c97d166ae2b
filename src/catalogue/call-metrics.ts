import { type Labels, type MetricsRegistry, secondBuckets } from "../kube/metrics.ts";
import type { Dispatch } from "./dispatch.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import type { CatalogueId } from "./state.ts";

/** Grants, and Workloads, that are counted under their own names; the rest are counted together. A catalogue may hold ten thousand, and each has several series. */
const namedGrants = 1_000;
const namedWorkloads = 200;

/** Codes are ours and hosts'; a host that is not itself any more could make them up. */
const namedCodes = 100;

const other = "other";

/** Counts every decision about a call as it is journalled, and passes it on: the entry is the one record, and this what is summed up from it. Nothing a caller wrote becomes a label. */
export const countedJournal = (metrics: MetricsRegistry, journal: Journal): Journal => {
  const decided = metrics.counter({
    name: "ambit_calls_total",
    help: "Calls, by what came of them, the gate that decided against them (none where all admitted them) and the reason's code.",
    labels: ["outcome", "gate", "code"],
  });
  const seconds = metrics.histogram({
    name: "ambit_call_duration_seconds",
    help: "From a call's arrival at the gates to its answer.",
    labels: ["outcome"],
    buckets: secondBuckets,
  });
  const ofGrants = metrics.counter({
    name: "ambit_tool_calls_total",
    help: `Calls of tools that were offered, by grant; those of the first ${namedGrants} by name.`,
    labels: ["namespace", "grant", "outcome"],
  });
  const attempts = metrics.counter({
    name: "ambit_host_attempts_total",
    help: "Tickets made: calls offered to hosts, and offered to a second one.",
    labels: ["namespace", "workload"],
  });
  const hostLabels = ["namespace", "workload"];
  const queueSeconds = metrics.histogram({
    name: "ambit_host_queue_seconds",
    help: "How long calls waited in a host for a worker, as the host said.",
    labels: hostLabels,
    buckets: secondBuckets,
  });
  const runSeconds = metrics.histogram({
    name: "ambit_host_run_seconds",
    help: "How long a tool's code ran, as its host said.",
    labels: hostLabels,
    buckets: secondBuckets,
  });
  const bytes = metrics.counter({
    name: "ambit_call_bytes_total",
    help: "Canonical bytes of arguments that were judged, and of results' texts.",
    labels: ["namespace", "workload", "direction"],
  });
  const requests = metrics.counter({
    name: "ambit_tool_requests_total",
    help: "Requests that tools made of other hosts, as their hosts said; denied are those that were not granted.",
    labels: ["namespace", "workload", "result"],
  });
  const reached = metrics.counter({
    name: "ambit_tool_network_bytes_total",
    help: "Bytes of those requests' bodies, and of their answers'.",
    labels: ["namespace", "workload", "direction"],
  });
  const written = metrics.counter({
    name: "ambit_tool_written_bytes_total",
    help: "Bytes that tools wrote to files, as their hosts said.",
    labels: hostLabels,
  });
  const grantName = bounded(namedGrants);
  const workloadName = bounded(namedWorkloads);
  const codeName = bounded(namedCodes);

  return (entry) => {
    const { outcome, gate, code, durations } = entry;
    decided.add({ outcome, gate: gate ?? "", code: code === null ? "" : codeName(code) });
    seconds.observe({ outcome }, durations.totalMs / 1000);
    if (entry.tool !== null) {
      const [namespace = other, grant = other] = grantName(entry.tool).split("/");
      ofGrants.add({ namespace, grant, outcome });
      countHost(entry, entry.tool);
    }
    journal(entry);
  };

  function countHost(
    { workload, attempts: made, argumentBytes, resultBytes, use, durations: { queueMs, runMs } }: JournalEntry,
    tool: CatalogueId,
  ): void {
    const [namespace = other, name = other] = workloadName(`${tool.split("/")[0]}/${workload}`).split("/");
    const labels = { namespace, workload: name };
    if (made > 0) attempts.add(labels, made);
    if (queueMs !== null) queueSeconds.observe(labels, queueMs / 1000);
    if (runMs !== null) runSeconds.observe(labels, runMs / 1000);
    if (made > 0 && argumentBytes !== null) bytes.add({ ...labels, direction: "arguments" }, argumentBytes);
    if (resultBytes !== null) bytes.add({ ...labels, direction: "result" }, resultBytes);
    if (use !== null) countUse(labels, use);
  }

  function countUse(labels: Labels, use: NonNullable<JournalEntry["use"]>): void {
    const { requests: made, deniedRequests, sentBytes, receivedBytes, writtenFileBytes } = use;
    if (made > deniedRequests) requests.add({ ...labels, result: "sent" }, made - deniedRequests);
    if (deniedRequests > 0) requests.add({ ...labels, result: "denied" }, deniedRequests);
    if (sentBytes > 0) reached.add({ ...labels, direction: "sent" }, sentBytes);
    if (receivedBytes > 0) reached.add({ ...labels, direction: "received" }, receivedBytes);
    if (writtenFileBytes > 0) written.add(labels, writtenFileBytes);
  }
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
