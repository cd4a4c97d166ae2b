/** `metav1.MicroTime`: `2026-11-30T21:17:05.123000Z`. `ms` since 1970. */
export const microTime = (ms: number): string => new Date(ms).toISOString().replace("Z", "000Z");
