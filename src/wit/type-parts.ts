import type { WitType } from "../api/wit.ts";

/** One type directly within another, and what it is there: `field "title"`, `item 2`. */
export interface TypePart {
  readonly role: string;
  readonly type: WitType;
}

/** The types directly within a type, in order. */
export const partsOf = (type: WitType): readonly TypePart[] => {
  switch (type.kind) {
    case "list":
    case "stream":
    case "future":
      return present("an element", type.element);
    case "map":
      return [
        { role: "a key", type: type.key },
        { role: "a value", type: type.value },
      ];
    case "tuple":
      return type.items.map((item, index) => ({ role: `item ${index}`, type: item }));
    case "option":
      return present("a value", type.some);
    case "result":
      return [...present("the ok value", type.ok), ...present("the error value", type.err)];
    case "record":
      return type.fields.map((field) => ({ role: `the field ${field.name}`, type: field.type }));
    case "variant":
      return type.cases.flatMap((one) => present(`the case ${one.name}`, one.type));
    default:
      return [];
  }
};

const present = (role: string, type: WitType | null): TypePart[] => (type ? [{ role, type }] : []);
