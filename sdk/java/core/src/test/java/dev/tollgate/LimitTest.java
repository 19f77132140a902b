package dev.tollgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The limiter of this process against the vectors that all languages share. */
class LimitTest {
    private static final Path VECTORS = Path.of("../../conformance/gcra.json");

    @TestFactory
    Stream<DynamicTest> decidesAsTheSharedVectorsSay() throws IOException {
        var scenarios = items(Json.object(Files.readString(VECTORS)).get("scenarios"));
        assertFalse(scenarios.isEmpty(), "the table is empty");
        return scenarios.stream().map(scenario -> DynamicTest.dynamicTest((String) scenario.get("name"), () -> replay(scenario)));
    }

    private static void replay(Map<String, Object> scenario) {
        var send = members(scenario.get("send"));
        var given = members(send.get("limit"));
        var limit = Limit.of(number(given, "count"), Duration.ofNanos(number(given, "period_ns"))).withBurst(number(given, "burst"));
        var expected = items(members(scenario.get("expect")).get("results"));
        long fullAt = 0;
        var step = 0;
        for (var asked : items(send.get("steps"))) {
            var outcome = limit.take(fullAt, number(asked, "now_ns"), number(asked, "cost"));
            fullAt = outcome.fullAt();
            var wanted = expected.get(step++);
            var name = "step " + step;
            assertEquals(wanted.get("allowed"), outcome.allowed(), name);
            assertEquals(wanted.get("limit"), Long.toUnsignedString(outcome.limit()), name);
            assertEquals(wanted.get("remaining"), Long.toUnsignedString(outcome.remaining()), name);
            assertEquals(wanted.get("retry_after_ns"), outcome.never() ? null : Long.toUnsignedString(outcome.retryAfter()), name);
            assertEquals(wanted.get("reset_after_ns"), Long.toUnsignedString(outcome.resetAfter()), name);
        }
        assertEquals(expected.size(), step);
    }

    @Test
    void readsRequestsAndAWindow() {
        var limit = Limit.parse("90/3m");
        assertEquals(List.of(90L, 180_000_000_000L, 90L), List.of(limit.requests(), limit.windowNanos(), limit.capacity()));
        assertEquals(2_000_000_000L, limit.interval());
        for (var wrong : List.of("", "5", "5/", "/1m", "5/1d", "-5/1m", "5 / 1m", "5/1m ", "5/0s", "1e3/1m", "٥/1m")) {
            assertThrows(IllegalArgumentException.class, () -> Limit.parse(wrong), wrong);
        }
    }

    @Test
    void refusesWhatCannotBeCountedInNanoseconds() {
        assertThrows(IllegalArgumentException.class, () -> Limit.of(2_000_000_000L, Duration.ofSeconds(1)));
        assertThrows(IllegalArgumentException.class, () -> Limit.of(1, Duration.ofDays(365)).withBurst(1_000));
        assertEquals(false, Limit.of(0, Duration.ofSeconds(1)).take(0, 1, 1).allowed());
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> members(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> items(Object value) {
        return (List<Map<String, Object>>) value;
    }

    private static long number(Map<String, Object> members, String name) {
        return Long.parseUnsignedLong((String) members.get(name));
    }
}
