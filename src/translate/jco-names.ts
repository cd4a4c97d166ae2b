/**
 * How jco's generated JavaScript spells a kebab name, for record fields, flags and functions: `dark-blue` → `darkBlue`, `get-URL` → `getUrl`.
 * Names of enum, variant and result cases stay as they are.
 */
export const jcoName = (witName: string): string => {
  if (!witName.includes("-")) return witName.toLowerCase();
  const [first = "", ...rest] = witName.split("-");
  return first.toLowerCase() + rest.map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase()).join("");
};
