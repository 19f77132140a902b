package dev.tollgate.conformance;

import dev.tollgate.ApiException;
import dev.tollgate.Decision;
import dev.tollgate.Json;
import dev.tollgate.Limit;
import dev.tollgate.Request;
import dev.tollgate.Slot;
import dev.tollgate.Tollgate;
import dev.tollgate.TollgateException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Answers lines of JSON. */
final class Calls {
    private final Tollgate client;
    private final Map<String, Slot> slots = new HashMap<>();

    Calls(Tollgate client) {
        this.client = client;
    }

    void answer() throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = lines.readLine()) != null) {
            Object answer;
            try {
                answer = call(Json.object(line));
            } catch (ApiException e) {
                answer = Map.of("error", e.code());
            } catch (TollgateException e) {
                answer = Map.of("error", "unreachable");
            }
            Main.OUT.write((Json.write(answer) + "\n").getBytes(StandardCharsets.UTF_8));
            Main.OUT.flush();
        }
    }

    private Object call(Map<String, Object> line) throws IOException, InterruptedException {
        return switch ((String) line.get("call")) {
            case "check" -> client.check(request(line, "request")).members();
            case "check_batch" -> batch(line);
            case "reserve" -> client.reserve(request(line, "request")).members();
            case "extend" -> client.extend((String) line.get("reservation"), costs(line)).members();
            case "settle" -> client.settle((String) line.get("reservation"), costs(line));
            case "usage" -> client.usage(request(line, "client"));
            case "acquire_slot" -> acquire(request(line, "request"));
            case "release_slot" -> release((String) line.get("slot"));
            case "gcra" -> gcra(line);
            case "retry" -> new RetryTable(line).run();
            default -> throw new IllegalArgumentException("unknown call " + line.get("call"));
        };
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    private static Request request(Map<String, Object> line, String name) {
        return Request.of(object(line.get(name)));
    }

    private static Map<String, Long> costs(Map<String, Object> line) {
        var costs = new LinkedHashMap<String, Long>();
        object(line.get("costs")).forEach((meter, amount) -> costs.put(meter, (Long) amount));
        return costs;
    }

    private Object batch(Map<String, Object> line) {
        var requests = list(line.get("requests")).stream().map(item -> Request.of(object(item))).toList();
        var results = new ArrayList<Object>();
        for (var result : client.checkBatch(requests)) {
            results.add(result.error() == null ? result.decision().members() : Map.of("error", result.error().code()));
        }
        return Map.of("results", results);
    }

    private Object acquire(Request request) {
        var slot = client.acquireSlot(request);
        Decision decision = slot.decision();
        decision.slot().ifPresent(receipt -> slots.put(receipt, slot));
        return decision.members();
    }

    private Object release(String receipt) {
        var slot = slots.remove(receipt);
        if (slot == null) return Map.of("released", client.releaseSlot(receipt));
        slot.close();
        return Map.of("released", slot.isReleased());
    }

    private static Object gcra(Map<String, Object> line) {
        var given = object(line.get("limit"));
        var period = Duration.ofNanos(unsigned(given.get("period_ns")));
        var limit = Limit.of(unsigned(given.get("count")), period).withBurst(unsigned(given.get("burst")));
        var results = new ArrayList<Object>();
        long fullAt = 0;
        for (var item : list(line.get("steps"))) {
            var step = object(item);
            var outcome = limit.take(fullAt, unsigned(step.get("now_ns")), unsigned(step.get("cost")));
            fullAt = outcome.fullAt();
            var result = new LinkedHashMap<String, Object>();
            result.put("allowed", outcome.allowed());
            result.put("limit", Long.toUnsignedString(outcome.limit()));
            result.put("remaining", Long.toUnsignedString(outcome.remaining()));
            result.put("retry_after_ns", outcome.never() ? null : Long.toUnsignedString(outcome.retryAfter()));
            result.put("reset_after_ns", Long.toUnsignedString(outcome.resetAfter()));
            results.add(result);
        }
        return Map.of("results", results);
    }

    private static long unsigned(Object text) {
        return Long.parseUnsignedLong((String) text);
    }
}
