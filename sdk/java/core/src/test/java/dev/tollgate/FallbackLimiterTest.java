package dev.tollgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Buckets of this process, on a clock that the test moves. */
class FallbackLimiterTest {
    private static final long SECOND = 1_000_000_000L;

    private long now = -7 * SECOND; // System.nanoTime may be negative
    private final FallbackLimiter limiter = new FallbackLimiter(Limit.parse("2/2s"), () -> now);

    private boolean passes(String key) {
        return limiter.decide(key, 1, false).allowed();
    }

    @Test
    void everyKeyHasABucketThatRefills() {
        assertTrue(passes("ann") && passes("ann"));
        assertFalse(passes("ann"));
        assertTrue(passes("bob"), "another key has room of its own");
        assertEquals(SECOND, limiter.decide("ann", 1, false).retryAfter());
        now += SECOND;
        assertTrue(passes("ann"));
        assertFalse(passes("ann"));
    }

    @Test
    void aPeekTakesNothing() {
        for (var count = 0; count < 5; count++) assertTrue(limiter.decide("ann", 1, true).allowed());
        assertEquals(1, limiter.decide("ann", 1, false).remaining());
    }

    @Test
    void whatNeverFitsIsToldApart() {
        var outcome = limiter.decide("ann", 3, false);
        assertTrue(outcome.never() && !outcome.allowed());
        assertTrue(passes("ann"), "and was charged nothing");
    }

    @Test
    void aClockThatStepsBackMakesNoCallerWaitForLongerThanOneBucket() {
        assertTrue(passes("ann") && passes("ann"));
        now -= 3_600 * SECOND;
        assertTrue(limiter.decide("ann", 1, false).retryAfter() <= 2 * SECOND);
    }

    @Test
    void aFloodOfKeysSharesABucketAndLetsNoKeyPassForFree() {
        for (var key = 0; key < FallbackLimiter.KEYS_MAX; key++) assertTrue(passes("flood-" + key));
        assertTrue(passes("new-1") && passes("new-2"), "the shared bucket has as much room as any");
        assertFalse(passes("new-3"), "which all new keys share");
        assertTrue(passes("flood-7"), "a key that has a bucket keeps it");
        now += 2 * SECOND;
        assertTrue(passes("new-3") && passes("new-4") && passes("new-5"), "full buckets made room");
    }
}
