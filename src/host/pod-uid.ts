/** Environment variable that tells a host in a pod which pod it is in. */
export const podUidVariable = "AMBIT_POD_UID";
