import assert from "node:assert/strict";
import { test } from "node:test";
import { FallbackLimiter } from "tollgate";
import { FakeClock } from "./fakes.js";

test("a limit is per client, and comes back one by one", () => {
  const clock = new FakeClock();
  const limiter = new FallbackLimiter("2/1m", clock);
  const take = (apiKey: string): boolean => limiter.decide({ apiKey }).allowed;
  assert.deepEqual([take("a"), take("a"), take("a"), take("b")], [true, true, false, true]);
  clock.now += 29_999;
  assert.equal(take("a"), false);
  clock.now += 1;
  assert.deepEqual([take("a"), take("a")], [true, false]);
});

test("a kind of identity is not another one's value", () => {
  const limiter = new FallbackLimiter("1/1m", new FakeClock());
  assert.ok(limiter.decide({ apiKey: "x" }).allowed);
  assert.ok(limiter.decide({ userId: "x" }).allowed);
  assert.ok(limiter.decide({ ip: "x" }).allowed);
  assert.ok(limiter.decide({}).allowed);
  assert.ok(!limiter.decide({}).allowed);
});

test("peeking and costs", () => {
  const limiter = new FallbackLimiter("3/1m", new FakeClock());
  assert.equal(limiter.decide({ apiKey: "a", peek: true }).remaining, 2);
  assert.equal(limiter.decide({ apiKey: "a", cost: 3 }).remaining, 0);
  assert.deepEqual({ ...limiter.decide({ apiKey: "a", cost: 4 }) }.never, true);
});

test("full: a key is dropped only when its bucket equals an unused one, and new keys share one", () => {
  const clock = new FakeClock();
  const limiter = new FallbackLimiter("1/1m", clock, 2);
  const take = (apiKey: string): boolean => limiter.decide({ apiKey }).allowed;
  assert.deepEqual([take("a"), take("b"), take("c"), take("d")], [true, true, true, false]);
  assert.deepEqual([take("a"), take("b")], [false, false]);
  clock.now += 60_000;
  assert.deepEqual([take("e"), take("f"), take("g")], [true, true, true]);
});
