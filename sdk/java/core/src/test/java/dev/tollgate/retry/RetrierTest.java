package dev.tollgate.retry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** When calls are repeated, on a clock that only waits move. */
class RetrierTest {
    private Instant now = Instant.parse("2026-11-20T12:00:00Z");
    private final List<Long> waits = new ArrayList<>();

    private record Reply(int status, Map<String, List<String>> headers, String body) implements Retrier.Response {
        static Reply of(int status, String... field) {
            return new Reply(status, field.length == 0 ? Map.of() : Map.of(field[0], List.of(field[1])), "");
        }

        @Override
        public List<String> fields(String name) {
            return headers.getOrDefault(name, List.of());
        }

        @Override
        public boolean bodyHas(String text) {
            return body.contains(text);
        }
    }

    private Retrier retrier(RetryOptions options, double draw) {
        return new Retrier(options, () -> now, wait -> {
            waits.add(wait.toMillis());
            now = now.plus(wait);
        }, () -> draw);
    }

    /** The status that the caller gets of these replies. */
    private static int call(Retrier retrier, String method, boolean keyed, Reply... replies) throws IOException, InterruptedException {
        Iterator<Reply> next = List.of(replies).iterator();
        return retrier.call(method, keyed, next::next).status();
    }

    @Test
    void waitsAsLongAsItIsToldAndUpToATenthMore() throws Exception {
        assertEquals(200, call(retrier(RetryOptions.defaults(), 0.5), "GET", false, Reply.of(429, "Retry-After", "20"), Reply.of(200)));
        assertEquals(List.of(21_000L), waits);
    }

    @Test
    void doublesWithFullJitterWhereNothingIsTold() throws Exception {
        var options = RetryOptions.defaults().attempts(4);
        assertEquals(503, call(retrier(options, 0.25), "GET", false, Reply.of(503), Reply.of(503), Reply.of(503), Reply.of(503)));
        assertEquals(List.of(25L, 50L, 100L), waits);
    }

    @Test
    void equalJitterIsAroundTheWait() throws Exception {
        var options = new RetryOptions(3, Duration.ofMillis(100), Duration.ofMillis(150), Duration.ofMinutes(1), true, false);
        call(retrier(options, 0.5), "GET", false, Reply.of(503), Reply.of(503), Reply.of(200));
        assertEquals(List.of(100L, 150L), waits);
    }

    @Test
    void whatIsNotSafeIsSentOnce() throws Exception {
        assertEquals(503, call(retrier(RetryOptions.defaults(), 1), "POST", false, Reply.of(503)));
        assertEquals(200, call(retrier(RetryOptions.defaults(), 1), "POST", true, Reply.of(503), Reply.of(200)));
        assertEquals(200, call(retrier(RetryOptions.defaults(), 1), "POST", false, Reply.of(429), Reply.of(200)), "429: nothing was done");
        assertEquals(500, call(retrier(RetryOptions.defaults(), 1), "GET", false, Reply.of(500)), "which says nothing of later");
    }

    @Test
    void othersWordsForLater() throws Exception {
        assertEquals(200, call(retrier(RetryOptions.defaults(), 0), "GET", false, Reply.of(403, "X-RateLimit-Remaining", " 0 "), Reply.of(200)));
        assertEquals(403, call(retrier(RetryOptions.defaults(), 0), "GET", false, Reply.of(403, "X-RateLimit-Remaining", "3")));
        var throttled = new Reply(400, Map.of(), "{\"__type\":\"ThrottlingException\"}");
        assertEquals(200, call(retrier(RetryOptions.defaults(), 0), "GET", false, throttled, Reply.of(200)));
    }

    @Test
    void aWaitBeyondTheDeadlineIsNotWaited() throws Exception {
        assertEquals(429, call(retrier(RetryOptions.defaults(), 0), "GET", false, Reply.of(429, "Retry-After", "61")));
        assertEquals(List.of(), waits);
    }

    @Test
    void theBudgetLeavesOneRetryASecond() throws Exception {
        var retrier = retrier(RetryOptions.defaults().attempts(2), 0);
        // A hundred at first; each call earns one and each retry takes ten: nothing is left after eleven.
        for (var call = 0; call < 11; call++) assertEquals(200, call(retrier, "GET", false, Reply.of(503), Reply.of(200)));
        assertEquals(503, call(retrier, "GET", false, Reply.of(503)));
        now = now.plusSeconds(1);
        assertEquals(200, call(retrier, "GET", false, Reply.of(503), Reply.of(200)));
        assertEquals(503, call(retrier, "GET", false, Reply.of(503)));
    }

    @Test
    void throttlesItselfWhenHardlyAnythingIsAccepted() throws Exception {
        var retrier = retrier(RetryOptions.defaults().attempts(1).adaptive(true), 0.5);
        assertEquals(503, call(retrier, "GET", false, Reply.of(503)));
        assertEquals(503, call(retrier, "GET", false, Reply.of(503)), "1 of 2 is not above a half");
        assertThrows(ThrottledException.class, () -> call(retrier, "GET", false));
        now = now.plusSeconds(121);
        assertEquals(200, call(retrier, "GET", false, Reply.of(200)), "two minutes later it is forgotten");
    }
}
