/** A call that failed: no connection, no answer in time, or an answer that is an error. */
export class TollgateError extends Error {
  override readonly name = "TollgateError";

  constructor(
    /** The stable code of the server's problem document, or `unreachable`, `timeout`, `unreadable`, `circuit_open`. */
    readonly code: string,
    message: string,
    /** The status of the answer, if there was one. */
    readonly status?: number,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }

  /** The caller's path or method is malformed: nothing that a retry or another server would change. */
  get malformedEndpoint(): boolean {
    return this.status === 400 && (this.code.startsWith("path_") || this.code === "bad_method");
  }

  /** The server is in trouble, as opposed to an answer about this one request. */
  get serverFailed(): boolean {
    return this.status === undefined || this.status >= 500 || this.code === "unreadable";
  }
}
