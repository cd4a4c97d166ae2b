/** The shapes in which declarations are served. `neutral` is Ambit's own; the others are what that provider's API takes as it is. */
export const declarationFormats = ["neutral", "anthropic", "openai-chat", "openai-responses"] as const;
export type DeclarationFormat = (typeof declarationFormats)[number];
export type ProviderFormat = Exclude<DeclarationFormat, "neutral">;

export const isDeclarationFormat = (text: string): text is DeclarationFormat => (declarationFormats as readonly string[]).includes(text);
