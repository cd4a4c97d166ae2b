const levels = 10_000;

/** A component with a list of a list of a list, ten thousand deep. Made, since the text is long and says nothing. */
export const nestedTypesText = (): string => {
  const types = Array.from({ length: levels }, (_, level) => `(type (list ${level === 0 ? "u8" : level - 1}))`);
  return `(component ${types.join("\n")}
  (core module $m
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
    (func (export "take") (param i32 i32)))
  (core instance $i (instantiate $m))
  (func (export "take") (param "value" ${levels - 1})
    (canon lift (core func $i "take") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))`;
};
