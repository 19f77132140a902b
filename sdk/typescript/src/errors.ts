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
    /** The field of the request that is wrong, if it is one. */
    readonly field?: string,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }

  /**
   * A text that the application's caller sent is malformed, or longer than the server reads: the path, the method, or a value that
   * identifies the caller. Nothing that a retry or another server would change: answer 400, and never pass such a request on.
   */
  get malformedEndpoint(): boolean {
    if (this.status === 413) return true;
    if (this.status !== 400) return false;
    return this.field === "endpoint" || this.code.startsWith("path_") || ["bad_method", "value_too_long", "bad_text"].includes(this.code);
  }

  /** The server is in trouble, as opposed to an answer about this one request. */
  get serverFailed(): boolean {
    return this.status === undefined || this.status >= 500 || this.code === "unreadable";
  }
}
