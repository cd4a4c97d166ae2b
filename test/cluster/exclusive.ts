import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";

/** SQLite's code for a database that another connection has locked. */
const busy = 5;

/**
 * Runs `work` while no other process does under the same path; `waiting` is called once if there is one. The lock is the operating system's, on a file
 * through SQLite (Node has no other file locks), so it goes with the process that held it however that ended.
 */
export const exclusively = async <T>(path: string, waiting: () => void, work: () => Promise<T>): Promise<T> => {
  mkdirSync(dirname(path), { recursive: true });
  const database = new DatabaseSync(path);
  try {
    for (let told = false; !tryLock(database); told = true) {
      if (!told) waiting();
      await delay(200);
    }
    return await work();
  } finally {
    database.close();
  }
};

const tryLock = (database: DatabaseSync): boolean => {
  try {
    database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE");
    return true;
  } catch (thrown) {
    if (thrown instanceof Error && "errcode" in thrown && thrown.errcode === busy) return false;
    throw thrown;
  }
};
