import { Invalid } from "../../api/errors.ts";
import type { CallContext } from "./call-context.ts";

/** Most random bytes that one call of the function gives; a guest's memory holds what it asks for, and ours holds it too. */
const mostBytes = 1024 * 1024;

const bytesOf = (context: CallContext, length: bigint): Uint8Array => {
  if (length > BigInt(mostBytes))
    throw new Invalid("RandomTooLong", `the component asked for ${length} random bytes at once; ${mostBytes} are the most`);
  const bytes = new Uint8Array(Number(length));
  context.options.random(bytes);
  return bytes;
};

const numberOf = (context: CallContext): bigint => {
  const bytes = bytesOf(context, 8n);
  return new DataView(bytes.buffer).getBigUint64(0);
};

/** The insecure interfaces are as unpredictable as the secure one: there is one source. */
export const randomOf = (context: CallContext) => ({
  secure: { getRandomBytes: (length: bigint) => bytesOf(context, length), getRandomU64: () => numberOf(context) },
  insecure: { getInsecureRandomBytes: (length: bigint) => bytesOf(context, length), getInsecureRandomU64: () => numberOf(context) },
  seed: { insecureSeed: (): [bigint, bigint] => [numberOf(context), numberOf(context)] },
});
