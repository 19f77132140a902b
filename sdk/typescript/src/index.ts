/** A client of Tollgate: checks, reservations, slots, usage; decides by itself when the server is away. */
export { Tollgate, type ClientSettings } from "./client.js";
export { TollgateError } from "./errors.js";
export { type FallbackLimit, FallbackLimiter } from "./fallback.js";
export { decideGcra, gcraLimit, type GcraLimit, type GcraOutcome } from "./gcra.js";
export { Slot } from "./slot.js";
export { type Clock, systemClock } from "./clock.js";
export type {
  CheckRequest,
  ClientIdentity,
  Decision,
  Mode,
  OnError,
  Reservation,
  RuleOutcome,
  Settlement,
  Usage,
} from "./types.js";
