/** How many bytes are asked for at once: what a hundred calls need. */
const poolBytes = 4096;

/** Random bytes, asked of `source` many at a time: each time has its price, whatever it gives. Every byte is given once, and is nowhere else then. */
export const pooledRandom = (source: (bytes: number) => Uint8Array): ((bytes: number) => Uint8Array) => {
  let pool: Uint8Array = new Uint8Array();
  return (bytes) => {
    if (bytes > poolBytes) return source(bytes);
    if (pool.length < bytes) pool = Uint8Array.from(source(poolBytes));
    const given = pool.slice(0, bytes);
    pool.fill(0, 0, bytes);
    pool = pool.subarray(bytes);
    return given;
  };
};
