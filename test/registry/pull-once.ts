import { openContentCache } from "../../src/oci/content-cache.ts";
import { fetchComponent } from "../../src/oci/pull.ts";
import { createTransport } from "../../src/oci/transport.ts";

/** A process that pulls one image into a cache and prints the component's digest: `node pull-once.ts IMAGE CACHE`. */
const [image = "", cache = ""] = process.argv.slice(2);
const { digest } = await fetchComponent(image, ".", {
  transport: createTransport({ refusedAddress: () => null }),
  cache: openContentCache(cache),
});
process.stdout.write(`${digest}\n`);
