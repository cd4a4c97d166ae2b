/**
 * A resource that no component of ours can ever hold, because nothing gives it out. A component may still import it, since toolchains import whole
 * interfaces; its methods cannot be reached and so need no body.
 */
export abstract class NeverMade {}
