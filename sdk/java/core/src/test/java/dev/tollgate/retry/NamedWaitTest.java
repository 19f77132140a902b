package dev.tollgate.retry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** How long header fields say to wait. */
class NamedWaitTest {
    private static final Instant NOW = Instant.parse("2026-11-20T12:00:00Z");

    /** Seconds, or null without a time. */
    private static Long wait(String... fields) {
        Map<String, List<String>> headers = new LinkedHashMap<>();
        for (var index = 0; index < fields.length; index += 2) headers.put(fields[index], List.of(fields[index + 1]));
        return NamedWait.of(new Fields(headers), NOW).map(Duration::toSeconds).orElse(null);
    }

    record Fields(Map<String, List<String>> headers) implements Retrier.Response {
        @Override
        public int status() {
            return 429;
        }

        @Override
        public List<String> fields(String name) {
            return Optional.ofNullable(headers.get(name)).orElse(List.of());
        }

        @Override
        public boolean bodyHas(String text) {
            return false;
        }
    }

    @Test
    void retryAfterIsSecondsOrADate() {
        assertEquals(7L, wait("Retry-After", "7"));
        assertEquals(7L, wait("Retry-After", " 007 "));
        assertEquals(90L, wait("Retry-After", "Fri, 20 Nov 2026 12:01:30 GMT"));
        assertEquals(null, wait("Retry-After", "Fri, 20 Nov 2026 11:59:30 GMT"), "has passed");
        for (var wrong : List.of("", "-1", "1.5", "soon", "1 minute", "2026-11-20T12:01:30Z", "٧")) assertEquals(null, wait("Retry-After", wrong), wrong);
    }

    @Test
    void aFieldThatCannotBeReadIsAsGoodAsNone() {
        assertEquals(4L, wait("Retry-After", "soon", "RateLimit-Reset", "4"));
        assertEquals(9L, wait("Retry-After", "9", "RateLimit-Reset", "4"), "the first that can be read counts");
        assertEquals(null, wait("Retry-After", "0", "RateLimit-Reset", "4"), "now is no wait, and was said");
    }

    @Test
    void draft11HasAPolicyForEachLimit() {
        assertEquals(30L, wait("RateLimit", "\"burst\";r=0;t=30, \"day\";r=12;t=3600"), "of those with nothing left");
        assertEquals(40L, wait("RateLimit", "\"a\";r=0;t=30,\"b\";r=0;t=40"), "the longest");
        assertEquals(3600L, wait("RateLimit", "\"burst\";r=1;t=30, \"day\";r=12;t=3600"), "of all, if none is used up");
        assertEquals(5L, wait("RateLimit", "\"a,;r=0;t=99\\\"\";r=0;t=5"), "a name may have anything in it");
        assertEquals(50L, wait("RateLimit", "limit=10, remaining=0, reset=50"), "draft 07");
    }

    @Test
    void theResetOfOthersIsSecondsOrAMoment() {
        assertEquals(61L, wait("X-RateLimit-Reset", "61"));
        assertEquals(61L, wait("X-RateLimit-Reset", String.valueOf(NOW.getEpochSecond() + 61)));
        assertEquals(61L, wait("X-RateLimit-Reset", String.valueOf(NOW.toEpochMilli() + 61_000)));
    }

    @Test
    void hostileFieldsCostNothing() {
        assertEquals(Duration.ofDays(36_500).toSeconds(), wait("Retry-After", "9".repeat(30)));
        assertTimeoutPreemptively(Duration.ofSeconds(10), () -> {
            for (var hostile : List.of("\"" + "\\\"".repeat(4000), "a;".repeat(4000), "a;b=\"".repeat(1500), " ".repeat(8000) + "x", "a".repeat(9000))) {
                // A search from every character took a second for three of these.
                for (var again = 0; again < 100; again++) assertEquals(null, wait("RateLimit", hostile));
            }
        });
    }
}
