"""The fallback limiter, the breaker and the pacer, on a fake clock."""

from __future__ import annotations

import unittest
from typing import List

from tollgate import Limit, Pacer
from tollgate.breaker import Breaker
from tollgate.fallback import FallbackLimiter

SECOND = 10**9


class FakeClock:
    def __init__(self) -> None:
        self.now_ns = 1000 * SECOND
        self.waits: List[float] = []

    def __call__(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_ns += int(seconds * SECOND)


class FallbackTest(unittest.TestCase):
    def test_five_a_minute_is_five_at_once_and_one_every_twelve_seconds(self) -> None:
        clock = FakeClock()
        limiter = FallbackLimiter(Limit.parse("5/1m"), clock)
        self.assertEqual([limiter.decide("a").allowed for _ in range(6)], [True] * 5 + [False])
        self.assertEqual(limiter.decide("a").retry_after_ns, 12 * SECOND)
        clock.now_ns += 12 * SECOND
        self.assertEqual([limiter.decide("a").allowed for _ in range(2)], [True, False])
        self.assertTrue(limiter.decide("b").allowed)

    def test_a_peek_takes_nothing(self) -> None:
        limiter = FallbackLimiter(Limit.parse("1/1m"), FakeClock())
        self.assertTrue(all(limiter.decide("a", peek=True).allowed for _ in range(3)))
        self.assertEqual(len(limiter), 0)

    def test_a_flood_of_keys_is_bounded_and_frees_no_key(self) -> None:
        clock = FakeClock()
        limiter = FallbackLimiter(Limit.parse("1/1m"), clock, keys_max=100)
        self.assertTrue(limiter.decide("victim").allowed)
        allowed = sum(limiter.decide(f"flood {number}").allowed for number in range(10_000))
        self.assertEqual(allowed, 100, "99 buckets of their own, and the one that the others share")
        self.assertLessEqual(len(limiter), 101)
        self.assertFalse(limiter.decide("victim").allowed)
        clock.now_ns += 60 * SECOND
        self.assertTrue(limiter.decide("later").allowed)
        self.assertLessEqual(len(limiter), 2, "what equals an unused bucket is dropped")

    def test_wrong_limits_are_refused(self) -> None:
        for text in ("5", "5/m", "-5/1m", "5/1", "5/0s", "1.5/1m", " 5/1m", "99999999999999/1s"):
            with self.subTest(text), self.assertRaises(ValueError):
                Limit.parse(text)


class BreakerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = FakeClock()
        self.breaker = Breaker(self.clock)

    def fail(self) -> bool:  # type: ignore[override]
        permit = self.breaker.admit()
        if permit is not None:
            permit.failure()
        return permit is not None

    def test_it_opens_after_five_failures_and_doubles_its_pause(self) -> None:
        self.assertEqual([self.fail() for _ in range(7)], [True] * 5 + [False] * 2)
        for pause in (1, 2, 4, 8, 16, 30, 30):
            self.clock.now_ns += pause * SECOND - 1
            self.assertFalse(self.fail(), pause)
            self.clock.now_ns += 1
            self.assertTrue(self.fail(), pause)
            self.assertFalse(self.fail(), pause)

    def test_one_call_tries_and_its_success_closes_it(self) -> None:
        for _ in range(5):
            self.fail()
        self.clock.now_ns += SECOND
        probe = self.breaker.admit()
        assert probe is not None
        self.assertIsNone(self.breaker.admit())
        probe.success()
        self.assertEqual([self.fail() for _ in range(6)], [True] * 5 + [False])

    def test_calls_that_were_under_way_do_not_prolong_the_pause(self) -> None:
        permits = [self.breaker.admit() for _ in range(8)]
        for permit in permits[:5]:
            assert permit is not None
            permit.failure()
        self.clock.now_ns += SECOND // 2
        for permit in permits[5:]:
            assert permit is not None
            permit.failure()
        self.clock.now_ns += SECOND // 2
        self.assertIsNotNone(self.breaker.admit())


class PacerTest(unittest.TestCase):
    def test_callers_wait_in_their_order(self) -> None:
        clock = FakeClock()
        pacer = Pacer("2/1s", clock=clock, sleep=clock.sleep)
        self.assertTrue(all(pacer.acquire() for _ in range(4)))
        self.assertEqual(clock.waits, [0.5, 0.5])

    def test_who_would_wait_for_too_long_takes_nothing(self) -> None:
        clock = FakeClock()
        pacer = Pacer("1/1s", clock=clock, sleep=clock.sleep)
        self.assertTrue(pacer.acquire())
        self.assertFalse(pacer.acquire(timeout=0.5))
        self.assertTrue(pacer.acquire(timeout=1.0))
        with self.assertRaises(ValueError):
            pacer.acquire(2)
