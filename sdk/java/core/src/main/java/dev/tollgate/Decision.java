package dev.tollgate;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Whether a request may pass. */
public final class Decision {
    private static final Duration DELAY_MAX = Duration.ofHours(1);

    /** A field of a header. */
    public record Field(String name, String value) {}

    /** A response for the user of the application. */
    public record Answer(int status, String contentType, List<Field> fields, String body) {}

    private final Map<String, Object> members;
    private final List<Field> fields;
    private final Answer refusal;

    Decision(Map<String, Object> members, List<Field> fields, Answer refusal) {
        this.members = members;
        this.fields = fields;
        this.refusal = refusal;
    }

    public boolean isAllowed() {
        return Boolean.TRUE.equals(members.get("allowed"));
    }

    /** What decided: as the server says, or {@code open}, {@code closed} or {@code fallback} without it. */
    public String mode() {
        return text("mode").orElse("store");
    }

    public Optional<String> rule() {
        return text("rule");
    }

    public Optional<Long> limit() {
        return number("limit");
    }

    public Optional<Long> remaining() {
        return number("remaining");
    }

    /** Waiting this long is enough; empty if the request is allowed, or if no waiting helps. */
    public Optional<Duration> retryAfter() {
        return number("retry_after_ms").map(Duration::ofMillis);
    }

    /** True if waiting does not help: the cost exceeds the limit. */
    public boolean isNever() {
        return Boolean.TRUE.equals(members.get("never"));
    }

    /** How long a rule that queues holds the request back. */
    public Duration delay() {
        var delay = Duration.ofMillis(Math.max(0, number("delay_ms").orElse(0L)));
        return delay.compareTo(DELAY_MAX) > 0 ? DELAY_MAX : delay;
    }

    public Optional<String> reservation() {
        return text("reservation");
    }

    public Optional<String> slot() {
        return text("slot");
    }

    Optional<Long> ttlMillis() {
        return number("ttl_ms").filter(ttl -> ttl > 0);
    }

    /** All members, as the server spells them. */
    public Map<String, Object> members() {
        return members;
    }

    /** Header fields for the user, if the server was asked for them. */
    public List<Field> fields() {
        return fields;
    }

    /** What to answer the user if the request may not pass, if the server was asked for it. */
    public Answer refusal() {
        return refusal;
    }

    private Optional<String> text(String name) {
        return members.get(name) instanceof String text ? Optional.of(text) : Optional.empty();
    }

    private Optional<Long> number(String name) {
        return members.get(name) instanceof Long number ? Optional.of(number) : Optional.empty();
    }
}
