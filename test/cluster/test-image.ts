/** The name of Ambit's image on the clusters that are tested; it is not pulled (`imagePullPolicy: Never`). */
export const testImage = "localhost/ambit:test";
