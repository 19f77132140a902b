import { createInterface } from "node:readline";
import { decideGcra, gcraLimit, type Slot, Tollgate, TollgateError } from "tollgate";
import { toCamel, toSnake } from "./names.js";
import { retried } from "./retry.js";
import { clientSettings } from "./settings.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Line = any;

const client = new Tollgate(clientSettings);
const slots = new Map<string, Slot>();

const CALLS: Record<string, (line: Line) => unknown> = {
  check: (line) => client.check(toCamel(line.request)),
  check_batch: async (line) => {
    const results = await client.checkBatch(line.requests.map(toCamel));
    return { results: results.map((result) => (result instanceof TollgateError ? { error: result.code } : result)) };
  },
  reserve: (line) => client.reserve(toCamel(line.request)),
  extend: (line) => client.extend(line.reservation, line.costs),
  settle: (line) => client.settle(line.reservation, line.costs),
  acquire_slot: async (line) => {
    const slot = await client.acquireSlot(toCamel(line.request));
    if (slot.slot !== undefined) slots.set(slot.slot, slot);
    return slot.decision;
  },
  release_slot: async (line) => ({ released: (await slots.get(line.slot)?.release()) ?? false }),
  usage: (line) => client.usage(toCamel(line.client)),
  gcra: (line) => gcra(line.limit, line.steps),
  retry: retried,
};

export async function answerLines(): Promise<void> {
  for await (const text of createInterface({ input: process.stdin })) {
    const line: Line = JSON.parse(text);
    try {
      const call = CALLS[line.call];
      if (call === undefined) throw new Error(`no such call: ${line.call}`);
      console.log(JSON.stringify(toSnake(await call(line))));
    } catch (error) {
      if (!(error instanceof TollgateError)) throw error;
      console.log(JSON.stringify({ error: ["timeout", "circuit_open"].includes(error.code) ? "unreachable" : error.code }));
    }
  }
}

function gcra(limit: Line, steps: Line[]): object {
  const bucket = gcraLimit(BigInt(limit.count), BigInt(limit.period_ns), BigInt(limit.burst));
  let arrival: bigint | undefined;
  const results = steps.map((step) => {
    const outcome = decideGcra(bucket, arrival, BigInt(step.now_ns), BigInt(step.cost));
    arrival = outcome.arrivalNs;
    return {
      allowed: outcome.allowed,
      limit: `${bucket.burst}`,
      remaining: `${outcome.remaining}`,
      retry_after_ns: outcome.retryAfterNs === null ? null : `${outcome.retryAfterNs}`,
      reset_after_ns: `${outcome.resetAfterNs}`,
    };
  });
  return { results };
}
