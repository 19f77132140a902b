import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, Tollgate } from "tollgate";
import { fakeFetch, json, refused } from "./fakes.js";

const HELD = { allowed: true, slot: "tgr_1", ttl_ms: 3_000, mode: "store" };

/** Each sleep ends when the test says so. */
class StepClock implements Clock {
  readonly slept: number[] = [];
  private wake: () => void = () => {};

  monotonicMs = (): number => 0;
  wallMs = (): number => 0;
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.slept.push(ms);
    return new Promise((resolve, reject) => {
      this.wake = resolve;
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  }

  async step(): Promise<void> {
    this.wake();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("a slot renews itself three times in its lifetime, and is released once", async () => {
  const clock = new StepClock();
  const { fetch, calls } = fakeFetch(json(HELD), json({ renewed: true }), json({ renewed: true }), json({ released: true }));
  const slot = await new Tollgate({ fetch, clock }).acquireSlot({ apiKey: "k" });
  await clock.step();
  await clock.step();
  assert.equal(await slot.release(), true);
  assert.equal(await slot.release(), false);
  await clock.step();
  assert.deepEqual(clock.slept, [1_000, 1_000, 1_000]);
  assert.deepEqual(calls.map(({ url }) => new URL(url).pathname), ["/v1/slots/acquire", "/v1/slots/renew", "/v1/slots/renew", "/v1/slots/release"]);
});

test("a slot that was lost is reported, and not renewed again", async () => {
  const clock = new StepClock();
  const codes: string[] = [];
  const { fetch, calls } = fakeFetch(json(HELD), json({ renewed: false }));
  await new Tollgate({ fetch, clock, log: false, onFailure: ({ code }) => codes.push(code) }).acquireSlot({ apiKey: "k" });
  await clock.step();
  await clock.step();
  assert.deepEqual(codes, ["slot_lost"]);
  assert.equal(calls.length, 2);
});

test("a slot is released when its block ends, also by an error", async () => {
  const { fetch, calls } = fakeFetch(json(HELD), json({ released: true }));
  const client = new Tollgate({ fetch, clock: new StepClock() });
  await assert.rejects(async () => {
    await using slot = await client.acquireSlot({ apiKey: "k" });
    assert.ok(slot.allowed);
    throw new Error("the work fails");
  }, /the work fails/);
  assert.equal(new URL(calls.at(-1)?.url ?? "").pathname, "/v1/slots/release");
});

test("without a server there is nothing to renew or to release", async () => {
  const clock = new StepClock();
  const slot = await new Tollgate({ fetch: fakeFetch(refused()).fetch, clock, log: false }).acquireSlot({ apiKey: "k" });
  assert.equal(slot.allowed, true);
  assert.equal(slot.slot, undefined);
  assert.equal(await slot.release(), false);
  assert.deepEqual(clock.slept, []);
});
