/**
 * Thrown by an implementation of a WIT function to return its `err` case. The transpiled component looks for an own property `payload`; anything that is
 * an `Error` without one ends the instance instead. It is no `Error` itself: guests cause these by the thousand and a stack would cost more than the call.
 */
export class GuestError<Payload> {
  readonly payload: Payload;

  constructor(payload: Payload) {
    this.payload = payload;
  }
}

/** Thrown through the guest's frames when it asks to exit; whoever runs the call tells it from a trap. */
export class ComponentExit extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the component exited with status ${status}`);
    this.name = "ComponentExit";
    this.status = status;
  }
}
