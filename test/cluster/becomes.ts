import { setTimeout as delay } from "node:timers/promises";

/** Whether `holds` comes true within the time. What it throws is thrown. */
export const becomes = async (holds: () => Promise<boolean>, withinMs: number): Promise<boolean> => {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) return false;
    await delay(100);
  }
  return true;
};
