package dev.tollgate;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.tollgate.Breaker.Result;
import org.junit.jupiter.api.Test;

class BreakerTest {
    private static final long SECOND = 1_000_000_000L;

    private long now;
    private final Breaker breaker = new Breaker(() -> now);

    private void calls(int count, Result result) {
        for (var call = 0; call < count; call++) breaker.admit().report(result);
    }

    @Test
    void opensAfterFiveFailuresInARow() {
        calls(4, Result.FAILED);
        calls(1, Result.SUCCEEDED);
        calls(5, Result.FAILED);
        assertNull(breaker.admit());
    }

    @Test
    void letsOneCallPassAfterEachPauseWhichDoubles() {
        calls(5, Result.FAILED);
        now += SECOND;
        var probe = breaker.admit();
        assertNull(breaker.admit(), "one at a time");
        probe.report(Result.FAILED);
        now += 2 * SECOND - 1;
        assertNull(breaker.admit());
        now += 1;
        breaker.admit().report(Result.SUCCEEDED);
        assertNotNull(breaker.admit());
    }

    @Test
    void aProbeThatIsAbandonedMakesRoomForTheNext() {
        calls(5, Result.FAILED);
        now += SECOND;
        breaker.admit().report(Result.ABANDONED);
        assertNotNull(breaker.admit());
    }

    @Test
    void callsThatWereUnderWayDoNotProlongThePause() {
        var late = breaker.admit();
        calls(5, Result.FAILED);
        now += SECOND / 2;
        late.report(Result.FAILED);
        now += SECOND / 2;
        assertNotNull(breaker.admit());
    }
}
