import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isPdf, pictureIn } from "../../../src/translate/picture.ts";

/** Smallest files that image programs read, and beginnings of larger ones. */
const pictures: Record<string, { base64: string; picture: string | null }> = {
  "a PNG of one pixel": {
    base64: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    picture: "png 1 1",
  },
  "a GIF of one pixel": { base64: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", picture: "gif 1 1" },
  "a lossy WebP": { base64: "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA", picture: "webp 1 1" },
  "a lossless WebP": { base64: "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==", picture: "webp 1 1" },
  "an extended WebP": {
    base64: Buffer.concat([
      Buffer.from("RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0", "latin1"),
      Buffer.from([0, 0, 0, 0, 0x3f, 0x1f, 0, 0xff, 0, 0]),
    ]).toString("base64"),
    picture: "webp 8000 256",
  },
  "a JPEG with metadata before its size": {
    base64: Buffer.from([
      0xff, 0xd8, 0xff, 0xe1, 0, 6, 1, 2, 3, 4, 0xff, 0xff, 0xc4, 0, 3, 9, 0xff, 0xc2, 0, 11, 8, 0x01, 0x02, 0x03, 0x04, 1, 1,
    ]).toString("base64"),
    picture: "jpeg 772 258",
  },
  "a JPEG that ends before its size": { base64: Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff, 1, 2]).toString("base64"), picture: null },
  "a PNG that ends before its size": { base64: "iVBORw0KGgoAAAANSUhEUg==", picture: null },
  "a PNG of no width": {
    base64: Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\x01", "latin1").toString("base64"),
    picture: null,
  },
  "an SVG": { base64: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>").toString("base64"), picture: null },
  nothing: { base64: "", picture: null },
};

describe("a picture's kind and size are read from its bytes:", () => {
  for (const [name, { base64, picture }] of Object.entries(pictures)) {
    it(name, () => {
      const found = pictureIn(base64);
      assert.equal(found && `${found.format} ${found.width} ${found.height}`, picture);
    });
  }
  it("whatever follows a beginning, nothing but a picture or null comes of it", () => {
    const beginnings = fc.constantFrom(
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
      "\xff\xd8\xff",
      "GIF89a",
      "RIFF\0\0\0\0WEBPVP8L",
      "RIFF\0\0\0\0WEBPVP8X",
    );
    fc.assert(
      fc.property(beginnings, fc.uint8Array({ maxLength: 64 }), (beginning, rest) => {
        const found = pictureIn(Buffer.concat([Buffer.from(beginning, "latin1"), rest]).toString("base64"));
        assert.ok(found === null || (found.width > 0 && found.height > 0));
      }),
      { numRuns: 500 },
    );
  });
  it("a PDF is one by how it begins", () => {
    assert.ok(isPdf(Buffer.from("%PDF-1.7\n").toString("base64")));
    assert.ok(!isPdf(Buffer.from("%PS").toString("base64")));
  });
});
