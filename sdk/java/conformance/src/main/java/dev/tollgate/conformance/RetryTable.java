package dev.tollgate.conformance;

import dev.tollgate.retry.Retrier;
import dev.tollgate.retry.RetryOptions;
import dev.tollgate.retry.ThrottledException;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A table of responses, on a clock that only waits and attempts move. */
final class RetryTable {
    private final Map<String, Object> line;
    private final List<Object> responses;
    private final List<Object> random;
    private final Retrier retrier;
    private Instant now;
    private int draws;
    private int next;
    private List<Object> waits = new ArrayList<>();
    private final List<Object> keys = new ArrayList<>();

    RetryTable(Map<String, Object> line) {
        this.line = line;
        this.now = Instant.ofEpochMilli(number(line, "now_ms", 0));
        this.responses = Calls.list(line.getOrDefault("responses", List.of()));
        this.random = Calls.list(line.getOrDefault("random", List.of(0L)));
        Map<String, Object> given = Calls.object(line.getOrDefault("options", Map.of()));
        var options = new RetryOptions(
                (int) number(given, "attempts", 3),
                Duration.ofMillis(number(given, "base_ms", 100)),
                Duration.ofMillis(number(given, "cap_ms", 20_000)),
                Duration.ofMillis(number(given, "deadline_ms", 60_000)),
                "equal".equals(given.get("jitter")),
                Boolean.TRUE.equals(given.get("adaptive")));
        this.retrier = new Retrier(options, () -> now, this::sleep, this::draw);
    }

    private static long number(Map<String, Object> members, String name, long otherwise) {
        return members.get(name) instanceof Number number ? number.longValue() : otherwise;
    }

    Object run() throws IOException, InterruptedException {
        var calls = number(line, "calls", 0);
        var results = new ArrayList<Object>();
        for (long call = 0; call < Math.max(1, calls); call++) {
            if (call > 0) now = now.plusMillis(number(line, "every_ms", 0));
            results.add(once());
        }
        return calls == 0 ? results.get(0) : Map.of("calls", results);
    }

    private Object once() throws IOException, InterruptedException {
        waits = new ArrayList<>();
        var key = line.get("idempotency_key");
        int status;
        try {
            status = retrier.call(line.getOrDefault("method", "GET").toString(), key != null, () -> respond(key)).status();
        } catch (ThrottledException e) {
            status = 0;
        }
        var result = new LinkedHashMap<String, Object>();
        result.put("waits_ms", waits);
        result.put("status", status);
        if (key != null) result.put("keys", keys);
        return result;
    }

    private Given respond(Object key) throws IOException {
        if (next >= responses.size()) throw new IOException("the table has no more responses");
        if (key != null) keys.add(key);
        var given = new Given(Calls.object(responses.get(next++)));
        now = now.plusMillis(number(given.members, "took_ms", 0));
        return given;
    }

    private void sleep(Duration wait) {
        waits.add(wait.toMillis());
        now = now.plus(wait);
    }

    private double draw() {
        var draw = random.get(Math.min(draws++, random.size() - 1));
        return ((Number) draw).doubleValue();
    }

    private record Given(Map<String, Object> members) implements Retrier.Response {
        @Override
        public int status() {
            return (int) number(members, "status", 200);
        }

        @Override
        public List<String> fields(String name) {
            var headers = Calls.object(members.getOrDefault("headers", Map.of()));
            return headers.entrySet().stream().filter(field -> field.getKey().equalsIgnoreCase(name)).map(field -> field.getValue().toString()).toList();
        }

        @Override
        public boolean bodyHas(String text) {
            return members.getOrDefault("body", "").toString().contains(text);
        }
    }
}
