import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import type { InterfaceDocs, WitDocs } from "../../../src/wit/docs.ts";
import { parseWitDocs } from "../../../src/wit/parse-wit-docs.ts";
import type { OracleDocs, OracleFunction, OracleTypeDef, OracleWit } from "./oracle.ts";

const fixtures = new URL("../../fixtures/wit/", import.meta.url);
const folder = (name: string): { path: string; text: string }[] =>
  readdirSync(new URL(`${name}/`, fixtures), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".wit"))
    .map((path) => ({ path: `${name}/${path}`, text: readFileSync(new URL(`${name}/${path}`, fixtures), "utf8") }));

const one = (text: string): WitDocs => parseWitDocs([{ path: "tool.wit", text }]);
const interfaceOf = (docs: WitDocs, packageId: string, name: string): InterfaceDocs => {
  const found = docs.packages.get(packageId)?.interfaces.get(name);
  assert.ok(found, `no docs of ${name} in ${packageId}, only of ${[...docs.packages.keys()].join(", ")}`);
  return found;
};

/** What the oracle found, by the same keys as ours: only what has docs. */
const oracleDocs = (wit: OracleWit): Record<string, string> => {
  const found: Record<string, string> = {};
  const note = (key: string, docs: OracleDocs | undefined): void => {
    if (docs) found[key] = docs.contents;
  };
  const noteFunctions = (place: string, functions: readonly OracleFunction[]): void => {
    for (const fn of functions) if (!fn.name.startsWith("[")) note(`${place}.${fn.name}`, fn.docs);
  };
  const noteTypes = (place: string, types: readonly OracleTypeDef[]): void => {
    for (const type of types) {
      note(`${place}.${type.name}`, type.docs);
      const members = type.kind.record?.fields ?? type.kind.variant?.cases ?? type.kind.enum?.cases ?? type.kind.flags?.flags ?? [];
      for (const member of members) note(`${place}.${type.name}.${member.name}`, member.docs);
    }
  };
  const typesOf = (owner: { interface?: number; world?: number }): OracleTypeDef[] =>
    wit.types.filter((type) => type.name && type.owner && Object.entries(owner).every(([key, id]) => type.owner?.[key as "world"] === id));
  for (const [id, face] of wit.interfaces.entries()) {
    if (face.name === null) continue;
    const place = `${wit.packages[face.package]?.name} ${face.name}`;
    note(place, face.docs);
    noteFunctions(place, Object.values(face.functions));
    noteTypes(place, typesOf({ interface: id }));
  }
  for (const [id, world] of wit.worlds.entries()) {
    const place = `${wit.packages[world.package]?.name} world ${world.name}`;
    note(place, world.docs);
    noteFunctions(
      place,
      Object.values(world.exports).flatMap((item) => item.function ?? []),
    );
    noteTypes(place, typesOf({ world: id }));
    for (const [name, item] of Object.entries(world.exports)) {
      const face = item.interface && wit.interfaces[item.interface.id];
      if (!face || face.name !== null) continue;
      note(`${place} ${name}`, face.docs);
      noteFunctions(`${place} ${name}`, Object.values(face.functions));
      noteTypes(`${place} ${name}`, typesOf({ interface: item.interface?.id ?? -1 }));
    }
  }
  return found;
};

const ourDocs = (docs: WitDocs): Record<string, string> => {
  const found: Record<string, string> = {};
  const note = (key: string, text: string): void => {
    if (text !== "") found[key] = text;
  };
  const noteInterface = (place: string, face: InterfaceDocs): void => {
    note(place, face.docs);
    for (const [name, text] of face.functions) note(`${place}.${name}`, text);
    for (const [name, type] of face.types) {
      note(`${place}.${name}`, type.docs);
      for (const [member, text] of type.members) note(`${place}.${name}.${member}`, text);
    }
  };
  for (const [id, content] of docs.packages) {
    for (const [name, face] of content.interfaces) noteInterface(`${id} ${name}`, face);
    for (const [name, world] of content.worlds) {
      noteInterface(`${id} world ${name}`, world);
      for (const [inline, face] of world.interfaces) noteInterface(`${id} world ${name} ${inline}`, face);
    }
  }
  return found;
};

test("docs of a folder with several packages are those that wasm-tools finds", () => {
  const golden = readFileSync(new URL("../../golden/wit/wide-docs.json", import.meta.url), "utf8");
  const expected = oracleDocs(JSON.parse(golden) as OracleWit);
  assert.ok(Object.keys(expected).length > 25, "the golden file has docs to compare");
  assert.deepEqual(ourDocs(parseWitDocs(folder("wide"))), expected);
});

const comments: Record<string, { before: string; docs: string }> = {
  "lines keep what is indented more than the others": { before: "/// One.\n///\n///     code\n/// Two.", docs: "One.\n\n    code\nTwo." },
  "a block without stars": { before: "/** One.\n    Two. */", docs: "One.\nTwo." },
  "a block with stars": { before: "/**\n * One.\n *\n * - Two.\n */", docs: "One.\n\n- Two." },
  "an ordinary comment is no doc": { before: "// TODO: rename", docs: "" },
  "an ordinary block is no doc": { before: "/* internal */", docs: "" },
  "a ruler is no doc": { before: "////////////", docs: "" },
  "docs before an attribute": { before: "/// One.\n@since(version = 0.2.0)", docs: "One." },
  "ordinary comments between docs": { before: "/// One.\n// not this\n/// Two.", docs: "One.\nTwo." },
  "carriage returns go": { before: "/// One.\r\n/// Two.\r", docs: "One.\nTwo." },
};

for (const [name, { before, docs }] of Object.entries(comments)) {
  test(`doc comments: ${name}`, () => {
    const found = interfaceOf(one(`package a:b;\ninterface i {\n${before}\n  f: func();\n}`), "a:b", "i");
    assert.equal(found.functions.get("f") ?? "", docs);
  });
}

test("comments before a closing brace belong to nothing", () => {
  const docs = one("package a:b; interface i { f: func(); /// Lost.\n } interface j { g: func(); }");
  assert.deepEqual(ourDocs(docs), {});
});

test("nested packages have their own docs", () => {
  const docs = one(
    "package a:b@1.0.0;\ninterface i { /// Outer.\n f: func(); }\npackage c:d@2.0.0 { interface i { /// Inner.\n f: func(); } }\npackage e:f { }",
  );
  assert.equal(interfaceOf(docs, "a:b@1.0.0", "i").functions.get("f"), "Outer.");
  assert.equal(interfaceOf(docs, "c:d@2.0.0", "i").functions.get("f"), "Inner.");
});

test("files of one folder are one package, files in deps are one each", () => {
  const docs = parseWitDocs([
    { path: "wit/a.wit", text: "package a:b;" },
    { path: "wit/i.wit", text: "interface i { /// I.\n f: func(); }" },
    { path: "wit/deps/x.wit", text: "package x:x; interface i { /// X.\n f: func(); }" },
    { path: "wit/deps/y/y.wit", text: "package y:y@0.1.0; interface i { /// Y.\n f: func(); }" },
    { path: "wit/deps/z.wit", text: "package z:z; interface i { /// Z.\n f: func(); }" },
  ]);
  for (const [id, text] of Object.entries({ "a:b": "I.", "x:x": "X.", "y:y@0.1.0": "Y.", "z:z": "Z." })) {
    assert.equal(interfaceOf(docs, id, "i").functions.get("f"), text);
  }
});

test("an escaped name is the name without its escape", () => {
  const docs = one("package a:b; interface i { /// Uses.\n %use: func(%type: string); record r { /// The list.\n %list: u8 } }");
  assert.equal(interfaceOf(docs, "a:b", "i").functions.get("use"), "Uses.");
  assert.equal(interfaceOf(docs, "a:b", "i").types.get("r")?.members.get("list"), "The list.");
});

test("names like __proto__ are names, were a tool to let them through", () => {
  assert.throws(() => one("package a:b; interface i { __proto__: func(); }"), { code: "WitSyntax" });
});

test("worlds that include each other in a circle end", () => {
  const docs = one("package a:b; world x { include y; /// X.\n export f: func(); } world y { include x; /// Y.\n export g: func(); }");
  assert.deepEqual([...(docs.packages.get("a:b")?.worlds.get("x")?.functions ?? [])].sort(), [
    ["f", "X."],
    ["g", "Y."],
  ]);
});

test("what a world includes is documented under the name it gets there", () => {
  const included = "package c:d@1.0.0 { world base { /// Says.\n export say: func(); /// Hums.\n export hum: func(); } }";
  const docs = one(`package a:b; world w { include c:d/base@1.0.0 with { say as tell } } ${included}`);
  assert.deepEqual(
    [...(docs.packages.get("a:b")?.worlds.get("w")?.functions ?? [])],
    [
      ["tell", "Says."],
      ["hum", "Hums."],
    ],
  );
});

test("worlds that include others by the thousand are refused", () => {
  const functions = Array.from({ length: 1000 }, (_, i) => `/// F.\n export f${i}: func();`).join("\n");
  const includes = "include big;\n".repeat(1000);
  assert.throws(() => one(`package a:b; world big { ${functions} } world w { ${includes} }`), { code: "WitTooLarge" });
});

const mistakes: Record<string, { text: string; code: string; at: string; message: RegExp }> = {
  "a missing brace": {
    text: "package a:b;\ninterface i {\n  f: func();\n",
    code: "WitSyntax",
    at: "tool.wit:4:1",
    message: /a name, the text ends/,
  },
  "a missing package": { text: "interface i { }", code: "WitWithoutPackage", at: "tool.wit", message: /package name:space/ },
  "a wrong keyword": { text: "package a:b;\ninterfaces i { }", code: "WitSyntax", at: "tool.wit:2:1", message: /found "interfaces i/ },
  "an open comment": { text: "package a:b;\n/* never", code: "WitSyntax", at: "tool.wit:2:1", message: /not closed/ },
  "two headers": { text: "package a:b;\npackage a:c;", code: "WitSyntax", at: "tool.wit:2:13", message: /one package header/ },
  "brackets that close what is not open": {
    text: "package a:b;\ninterface i { f: func()>; }",
    code: "WitSyntax",
    at: "tool.wit:2:24",
    message: /";"/,
  },
};

for (const [name, { text, code, at, message }] of Object.entries(mistakes)) {
  test(`${name} in WIT text is reported where it is`, () => {
    assert.throws(
      () => one(text),
      (error) => {
        assert.ok(error instanceof Invalid);
        assert.equal(error.code, code);
        assert.equal(error.at, at);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test("text beyond the limit is refused before it is read", () => {
  assert.throws(() => one(`package a:b;${" ".repeat(5_000_000)}`), { code: "WitTooLarge" });
});

test("text made to be slow is read in one pass", () => {
  const docs = one(
    `package a:b; interface i { ${"/// x\n/* ".repeat(20_000)}${"*/".repeat(20_000)} f: func(${"a: list<".repeat(100)}u8${">".repeat(100)}); }`,
  );
  assert.equal(interfaceOf(docs, "a:b", "i").functions.get("f"), "x");
});
