/** Of this program: what `package.json` says. */
export const ambitVersion = "0.1.0";
