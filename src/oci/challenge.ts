/** One `WWW-Authenticate` challenge (RFC 9110, section 11.6.1): scheme in lower case, parameter names in lower case. */
export interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Longest header read; what is beyond is not looked at. */
const maxLength = 4096;

const space = /[ \t,]*/y;
const word = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const parameter = /([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/y;

/** The challenges of a header, as far as they can be read: a registry that writes nonsense is one that asks for nothing we know. */
export const parseChallenges = (header: string): readonly Challenge[] => {
  const text = header.slice(0, maxLength);
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  for (let at = end(space, text, 0) ?? 0; at < text.length; ) {
    const afterParameter = end(parameter, text, at);
    if (afterParameter !== null) {
      const [, name = "", quoted, bare = ""] = execAt(parameter, text, at) ?? [];
      challenges.at(-1)?.parameters.set(name.toLowerCase(), quoted === undefined ? bare : quoted.replace(/\\(.)/g, "$1"));
      at = end(space, text, afterParameter) ?? afterParameter;
      continue;
    }
    const afterWord = end(word, text, at);
    if (afterWord === null) break;
    challenges.push({ scheme: text.slice(at, afterWord).toLowerCase(), parameters: new Map() });
    at = end(space, text, afterWord) ?? afterWord;
  }
  return challenges;
};

const execAt = (pattern: RegExp, text: string, at: number): RegExpExecArray | null => {
  pattern.lastIndex = at;
  return pattern.exec(text);
};

const end = (pattern: RegExp, text: string, at: number): number | null => {
  const match = execAt(pattern, text, at);
  return match === null ? null : at + match[0].length;
};
