import { timingSafeEqual } from "node:crypto";

/** Whether a request shows one of the credentials. How long it takes tells nothing of them. */
export const isAccepted = (shown: string | readonly string[] | undefined, accepted: readonly string[]): boolean => {
  if (typeof shown !== "string") return false;
  const given = Buffer.from(shown, "utf8");
  let isOne = false;
  for (const credential of accepted) {
    const known = Buffer.from(credential, "utf8");
    if (given.length === known.length && timingSafeEqual(given, known)) isOne = true;
  }
  return isOne;
};
