package dev.tollgate;

import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/** Decisions without the server: by policy, or of the fallback limiter as the server would write them for a rule of that name. */
final class LocalDecisions {
    static final String PROBLEM = "application/problem+json";

    private static final String RULE = "fallback";

    private LocalDecisions() {}

    static Decision open() {
        return new Decision(members(true, null, null, null, null, null, null, "open"), List.of(), null);
    }

    static Decision closed() {
        var document = new LinkedHashMap<String, Object>();
        document.put("type", "about:blank");
        document.put("title", "Service unavailable");
        document.put("status", 503);
        document.put("detail", "The rate limiter cannot be reached.");
        document.put("error", "limiter_unavailable");
        document.put("error_code", "limiter_unavailable");
        var refusal = new Decision.Answer(503, PROBLEM, List.of(new Decision.Field("Retry-After", "1")), Json.write(document));
        return new Decision(members(false, null, null, null, 1L, 1000L, null, "closed"), List.of(), refusal);
    }

    static Decision fallback(Limit limit, Limit.Outcome outcome, Instant wall) {
        var nanos = Math.addExact(Math.multiplyExact(wall.getEpochSecond(), 1_000_000_000L), wall.getNano());
        var resetAt = ceil(nanos + outcome.resetAfter(), 1_000_000_000L);
        var waits = !outcome.allowed() && !outcome.never();
        var seconds = waits ? Math.max(1, ceil(outcome.retryAfter(), 1_000_000_000L)) : null;
        var millis = waits ? Math.max(1, ceil(outcome.retryAfter(), 1_000_000L)) : null;
        var members = members(outcome.allowed(), outcome.limit(), outcome.remaining(), resetAt, seconds, millis, RULE, "fallback");
        if (outcome.never()) members.put("never", true);
        var fields = fields(limit, outcome, resetAt);
        return new Decision(members, fields, outcome.allowed() ? null : refusal(members, fields, seconds));
    }

    private static Map<String, Object> members(
            boolean allowed, Long limit, Long remaining, Long resetAt, Long retryAfter, Long retryAfterMillis, String rule, String mode) {
        var members = new LinkedHashMap<String, Object>();
        members.put("allowed", allowed);
        members.put("limit", limit);
        members.put("remaining", remaining);
        members.put("reset_at", resetAt);
        members.put("retry_after", retryAfter);
        members.put("retry_after_ms", retryAfterMillis);
        members.put("rule", rule);
        members.put("mode", mode);
        return members;
    }

    private static List<Decision.Field> fields(Limit limit, Limit.Outcome outcome, long resetAt) {
        var policy = "\"" + RULE + "\";q=" + limit.requests() + ";w=" + ceil(limit.windowNanos(), 1_000_000_000L);
        if (outcome.limit() != limit.requests()) policy += ";tollgate-burst=" + outcome.limit();
        var state = "\"" + RULE + "\";r=" + outcome.remaining();
        if (outcome.nextUnit() > 0) state += ";t=" + ceil(outcome.nextUnit(), 1_000_000_000L);
        return List.of(
                new Decision.Field("X-RateLimit-Limit", Long.toString(outcome.limit())),
                new Decision.Field("X-RateLimit-Remaining", Long.toString(outcome.remaining())),
                new Decision.Field("X-RateLimit-Reset", Long.toString(resetAt)),
                new Decision.Field("X-RateLimit-Resource", RULE),
                new Decision.Field("RateLimit-Policy", policy),
                new Decision.Field("RateLimit", state));
    }

    private static Decision.Answer refusal(Map<String, Object> members, List<Decision.Field> fields, Long seconds) {
        var never = seconds == null;
        var document = new LinkedHashMap<String, Object>();
        document.put("type", "https://iana.org/assignments/http-problem-types#quota-exceeded");
        document.put("title", "Quota exceeded");
        document.put("status", 429);
        document.put("detail", never
                ? "The request costs more than the rule '" + RULE + "' ever allows at once."
                : "The limit of the rule '" + RULE + "' is reached.");
        document.put("violated-policies", List.of(RULE));
        document.put("error", "rate_limited");
        document.put("message", never
                ? "This request can never pass: its cost exceeds the limit."
                : "Too many requests. Retry after " + seconds + "s.");
        document.put("error_code", never ? "cost_too_high" : "rate_limited");
        for (var name : List.of("allowed", "limit", "remaining", "reset_at", "retry_after", "retry_after_ms")) document.put(name, members.get(name));
        if (never) document.put("never", true);
        document.put("rule", RULE);
        var all = new ArrayList<Decision.Field>();
        if (!never) {
            // As the server: up to a tenth is added, so that callers do not come back together.
            all.add(new Decision.Field("Retry-After", Long.toString(seconds + ThreadLocalRandom.current().nextLong(seconds / 10 + 1))));
        }
        all.addAll(fields);
        return new Decision.Answer(429, PROBLEM, all, Json.write(document));
    }

    private static long ceil(long numerator, long denominator) {
        return (numerator + denominator - 1) / denominator;
    }
}
