/**
 * The shapes in which declarations are served. `neutral` is Ambit's own; the others are what a provider's API, or an MCP client, takes as it is.
 */
export const declarationFormats = ["neutral", "anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mcp"] as const;
export type DeclarationFormat = (typeof declarationFormats)[number];

/** The formats with rules of their own, made by somebody else. */
export type ProviderFormat = Exclude<DeclarationFormat, "neutral">;
export const providerFormats = declarationFormats.filter((format) => format !== "neutral");

/** The formats in which a model's calls can be answered. MCP has an endpoint of its own for that. */
export type TurnFormat = Exclude<ProviderFormat, "mcp">;

export const isDeclarationFormat = (text: string): text is DeclarationFormat => (declarationFormats as readonly string[]).includes(text);

export const isTurnFormat = (format: DeclarationFormat): format is TurnFormat => format !== "neutral" && format !== "mcp";
