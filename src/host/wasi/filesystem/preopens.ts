import { Stalled } from "../../../api/errors.ts";
import type { HostMount } from "../../../api/host.ts";
import type { CallContext } from "../call-context.ts";
import { Descriptor } from "./descriptor.ts";
import { type Folder, openFolder } from "./folder.ts";

/** `wasi:filesystem/preopens`: the mounts, opened when the guest first asks. */
export const preopensOf = (context: CallContext) => ({
  getDirectories: (): [Descriptor, string][] =>
    context.options.mounts.map((mount) => [context.hold(mounted(context, mount)), mount.mountPath]),
});

const mounted = (context: CallContext, mount: HostMount): Descriptor => {
  const folder = openMount(mount);
  return new Descriptor(context, {
    descriptor: folder.descriptor,
    path: folder.path,
    type: "directory",
    flags: { read: true, mutateDirectory: !mount.readOnly },
    isReadOnly: mount.readOnly,
  });
};

const openMount = (mount: HostMount): Folder => {
  try {
    // The folder itself is the operator's word: a link there is followed.
    return openFolder(`${mount.folder}/.`);
  } catch (cause) {
    throw new Stalled("VolumeUnusable", `the volume ${mount.name} cannot be opened: check that its folder exists and may be read`, {
      cause,
    });
  }
};
