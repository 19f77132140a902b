/** For callers of other people's APIs: come back when told, no sooner, and not all at once. */
export { Acquirer, NoRoom } from "./acquire.js";
export { retryingFetch, type RetryFetchSettings } from "./fetch.js";
export type { Reply } from "./reply.js";
export { Retry, type RetriedCall, type RetrySettings, Throttled } from "./retry.js";
