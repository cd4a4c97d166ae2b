export const openApiText = "{}";
