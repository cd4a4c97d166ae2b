/** One event of a stream of server-sent events. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** More than an event of the catalogue has. */
const longestEvent = 64 * 1024;

/**
 * The events of a response's body, as they come; comments are skipped. `onBytes` hears whenever something came, be it a comment. Throws `RangeError` on an event without end.
 */
export async function* serverEvents(body: AsyncIterable<Uint8Array>, onBytes: () => void): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    onBytes();
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop() ?? "";
    if (text.length > longestEvent) throw new RangeError(`an event has more than ${longestEvent} characters`);
    for (const block of blocks) {
      const event = eventIn(block);
      if (event) yield event;
    }
  }
}

const eventIn = (block: string): ServerEvent | null => {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ""] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  return data.length > 0 ? { event, data: data.join("\n") } : null;
};
