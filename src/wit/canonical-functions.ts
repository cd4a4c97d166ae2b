import { type ByteReader, malformed, offsetText, unsupported } from "./byte-reader.ts";

type Immediate = "index" | "options" | "async" | "zero" | "result" | "core-type";

const index: Immediate = "index";
const options: Immediate = "options";

/**
 * What follows each opcode of the canonical section, except `lift` (0x00) and `lower` (0x01). All of these define core functions, which no interface
 * depends on: they are read only to find where the next one starts. (component-model, design/mvp/Binary.md, "canon")
 *
 * `stream.forward` and `future.forward` (0x2e, 0x2f) are left out as long as jco refuses every component that has them.
 */
const builtins: ReadonlyMap<number, readonly Immediate[]> = new Map<number, readonly Immediate[]>([
  [0x02, [index]], // resource.new
  [0x03, [index]], // resource.drop
  [0x04, [index]], // resource.rep
  [0x05, []], // task.cancel
  [0x06, ["async"]], // subtask.cancel
  [0x07, [index]], // resource.drop async, as older encoders wrote it
  [0x08, []], // backpressure.set, as older encoders wrote it
  [0x09, ["result", options]], // task.return
  [0x0a, ["core-type", index]], // context.get
  [0x0b, ["core-type", index]], // context.set
  [0x0c, ["zero"]], // thread.yield
  [0x0d, []], // subtask.drop
  [0x0e, [index]], // stream.new
  [0x0f, [index, options]], // stream.read
  [0x10, [index, options]], // stream.write
  [0x11, [index, "async"]], // stream.cancel-read
  [0x12, [index, "async"]], // stream.cancel-write
  [0x13, [index]], // stream.drop-readable
  [0x14, [index]], // stream.drop-writable
  [0x15, [index]], // future.new
  [0x16, [index, options]], // future.read
  [0x17, [index, options]], // future.write
  [0x18, [index, "async"]], // future.cancel-read
  [0x19, [index, "async"]], // future.cancel-write
  [0x1a, [index]], // future.drop-readable
  [0x1b, [index]], // future.drop-writable
  [0x1c, [options]], // error-context.new
  [0x1d, [options]], // error-context.debug-message
  [0x1e, []], // error-context.drop
  [0x1f, []], // waitable-set.new
  [0x20, ["zero", index]], // waitable-set.wait
  [0x21, ["zero", index]], // waitable-set.poll
  [0x22, []], // waitable-set.drop
  [0x23, []], // waitable.join
  [0x24, []], // backpressure.inc
  [0x25, []], // backpressure.dec
  [0x26, []], // thread.index
  [0x27, [index, index]], // thread.new-indirect
  [0x28, []], // thread.resume-later
  [0x29, ["zero"]], // thread.suspend
  [0x2a, ["zero"]], // thread.suspend-then-resume
  [0x2b, ["zero"]], // thread.yield-then-resume
  [0x2c, ["zero"]], // thread.suspend-then-promote
  [0x2d, ["zero"]], // thread.yield-then-promote
  [0x40, [index]], // thread.spawn-ref
  [0x41, [index, index]], // thread.spawn-indirect
  [0x42, []], // thread.available-parallelism
]);

/** Builtins that start, await or answer nothing: resources and error contexts. Every other one belongs to tasks, streams, futures or threads. */
const synchronous: ReadonlySet<number> = new Set([0x02, 0x03, 0x04, 0x1c, 0x1d, 0x1e]);

export interface LiftSyntax {
  readonly type: number;
  readonly isStackful: boolean;
}

/** What one entry of the canonical section is: a lift or something that defines a core function, and whether it is asynchronous. */
export interface CanonicalFunction {
  readonly lift: LiftSyntax | null;
  readonly isAsynchronous: boolean;
}

export const readCanonicalFunction = (reader: ByteReader): CanonicalFunction => {
  const start = reader.at;
  const opcode = reader.u8("a canonical function");
  if (opcode === 0x00 || opcode === 0x01) {
    reader.u8("the second byte of a canonical function");
    reader.u32("a function index");
    const options = readOptions(reader);
    const isAsynchronous = options.has(asyncOption) || options.has(callbackOption);
    if (opcode === 0x01) return { lift: null, isAsynchronous };
    const type = reader.u32("the type index of a lifted function");
    return { lift: { type, isStackful: options.has(asyncOption) && !options.has(callbackOption) }, isAsynchronous };
  }
  const immediates = builtins.get(opcode);
  if (!immediates) throw unsupported(`the component uses a canonical function that is not known here, opcode ${offsetText(opcode)}`, start);
  for (const immediate of immediates) skipImmediate(reader, immediate);
  return { lift: null, isAsynchronous: !synchronous.has(opcode) };
};

const skipImmediate = (reader: ByteReader, immediate: Immediate): void => {
  switch (immediate) {
    case "index":
      reader.u32("an index");
      return;
    case "options":
      readOptions(reader);
      return;
    case "async":
    case "zero":
    case "core-type":
      reader.u8("an immediate of a canonical function");
      return;
    case "result":
      if (reader.u8("a result list") === 0x00) reader.s33Index("a value type");
      else reader.u8("the number of results");
      return;
  }
};

/** There are ten options, each of which may be given once. */
const maxOptions = 10;

const asyncOption = 0x06;
const callbackOption = 0x07;

/** The options given, their indices skipped. */
const readOptions = (reader: ByteReader): Set<number> => {
  const options = new Set<number>();
  const start = reader.at;
  const count = reader.count("canonical options");
  if (count > maxOptions) throw malformed(`${count} canonical options, more than there are`, start);
  for (let i = 0; i < count; i++) {
    const start = reader.at;
    const option = reader.u8("a canonical option");
    if (option > 0x09) throw unsupported(`the component uses a canonical option that is not known here, ${offsetText(option)}`, start);
    if ((option >= 0x03 && option <= 0x05) || option === callbackOption || option === 0x08) reader.u32("an index");
    options.add(option);
  }
  return options;
};
