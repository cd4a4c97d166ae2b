/** A letter of another alphabet, or another form of a Latin one, that a reader takes for the ASCII letter `looksLike`. */
export interface LookAlike {
  readonly index: number;
  readonly character: string;
  readonly looksLike: string;
  readonly script: string;
}

/** Letters drawn alike in common fonts, after Unicode's confusables (UTS 39), pairwise: the letter and what it looks like. */
const pairs: Readonly<Record<string, string>> = {
  CYRILLIC: "аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwӏlкkпnгrтtмmвbнhАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSԌGԚQԜWҮYӀI",
  GREEK: "αaοoρpνvιiκkυuτtΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϲcϳj",
  ARMENIAN: "օoսuհhոnցgզqՕOՍUՏS",
  CHEROKEE: "ᎪAᏴBᏟCᎠDᎬEᏀGᎻHᎥiᎫJᏦKᏞLᎷMᏢPᏒRᏚSᎢTᏙVᎳWᏃZ",
  LATIN: "ɑaɡgıiɩiʟLɴNʀRꞵB",
};

const table: ReadonlyMap<string, { readonly looksLike: string; readonly script: string }> = new Map(
  Object.entries(pairs).flatMap(([script, letters]) => {
    const characters = [...letters];
    return characters.flatMap((character, i) =>
      i % 2 === 0 ? [[character, { looksLike: characters[i + 1] ?? "", script }] as const] : [],
    );
  }),
);

/** Fullwidth, mathematical, circled and other forms that compatibility normalisation turns into an ASCII letter or digit. */
const compatibilityForm = (character: string): string | null => {
  if (character.charCodeAt(0) < 0x80) return null;
  const plain = character.normalize("NFKC");
  return /^[A-Za-z0-9]$/.test(plain) && /[\p{L}\p{Nd}\p{So}]/u.test(character) ? plain : null;
};

const word = /[\p{L}\p{M}\p{Nd}\p{So}_]+/gu;

/**
 * Look-alikes in words where they deceive: a word that also has ASCII letters or digits, or one made of look-alikes alone within a text that is mostly ASCII.
 * A text written in Cyrillic or Greek is not reported for being that.
 */
export const lookAlikes = (text: string): LookAlike[] => {
  const mostlyAscii = count(text, /[A-Za-z]/g) > count(text, /[^\P{L}A-Za-z]/gu);
  return [...text.matchAll(word)].flatMap((match) => inWord(match[0], match.index, mostlyAscii));
};

const inWord = (letters: string, start: number, mostlyAscii: boolean): LookAlike[] => {
  const found: LookAlike[] = [];
  let index = start;
  let others = 0;
  for (const character of letters) {
    const known = table.get(character);
    const looksLike = known?.looksLike ?? compatibilityForm(character);
    if (looksLike) found.push({ index, character, looksLike, script: known?.script ?? "COMPATIBILITY FORM OF A" });
    else if (character.charCodeAt(0) >= 0x80) others++;
    index += character.length;
  }
  const isMixed = /[A-Za-z0-9]/.test(letters);
  const isForm = found.every(({ script }) => script.startsWith("COMPATIBILITY"));
  return isForm || isMixed || (others === 0 && mostlyAscii) ? found : [];
};

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
