/**
 * What was used in a window that slides, in buckets of a sixtieth of its length: amounts by bucket, which is the time divided by `bucketMs`. A bucket counts until all
 * of it has left the window, so that in no window more is used than is allowed, and what was used is free again at most a bucket later than it might be.
 *
 *   { 29671: 4, 29672: 1 }   of a window of an hour: four in one minute, one in the next
 */
export type UsedBuckets = Map<number, number>;

const bucketsPerWindow = 60;

export const bucketMs = (windowMs: number): number => Math.ceil(windowMs / bucketsPerWindow);

/** `now` is milliseconds since any fixed moment. */
export const bucketAt = (windowMs: number, now: number): number => Math.floor(now / bucketMs(windowMs));

/** What counts of it now. Buckets that have left are removed. */
export const usedNow = (used: UsedBuckets, windowMs: number, now: number): number => {
  const oldest = oldestBucket(windowMs, now);
  let sum = 0;
  for (const [bucket, amount] of used) {
    if (bucket < oldest) used.delete(bucket);
    else sum += amount;
  }
  return sum;
};

/** In how many milliseconds no more than `atMost` will count of what counts now; the length of the window where that will never be. */
export const freeAgainMs = (used: UsedBuckets, windowMs: number, now: number, atMost: number): number => {
  let left = usedNow(used, windowMs, now);
  const buckets = [...used].sort(([a], [b]) => a - b);
  for (const [bucket, amount] of buckets) {
    if (left <= atMost) break;
    left -= amount;
    if (left <= atMost) return (bucket + 1) * bucketMs(windowMs) + windowMs - now;
  }
  return left <= atMost ? 0 : windowMs;
};

/** The first bucket of which a part is within the window that ends now. */
const oldestBucket = (windowMs: number, now: number): number => Math.floor((now - windowMs) / bucketMs(windowMs));
