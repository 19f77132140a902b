package dev.tollgate;

import java.lang.System.Logger;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

/**
 * A client of Tollgate. All threads share one; it connects with the first call.
 *
 * <pre>{@code
 * var tollgate = new Tollgate(Settings.fromEnvironment());
 * if (!tollgate.check(Request.of().userId("42").endpoint("POST /api/orders")).isAllowed()) { … }
 * }</pre>
 */
public final class Tollgate {
    private static final Logger LOG = System.getLogger("dev.tollgate");
    private static final long LOG_EVERY = 10_000_000_000L;

    private final Settings settings;
    private final Settings.OnError onError;
    private final Transport transport;
    private final Breaker breaker = new Breaker(System::nanoTime);
    private final FallbackLimiter fallback;
    private final AtomicLong logAt = new AtomicLong(System.nanoTime());

    public Tollgate(Settings settings) {
        this.settings = settings;
        this.onError = settings.onError();
        this.transport = new Transport(settings);
        this.fallback = settings.fallback == null ? null : new FallbackLimiter(settings.fallback, System::nanoTime);
    }

    /** Decides whether a request may pass. Throws {@link ApiException} for what a user sent malformed ({@link ApiException#isPath()}); everything else is a decision by policy. */
    public Decision check(Request request) {
        return decide("/v1/check", request);
    }

    /** The same with what a user should see: {@link Decision#fields()}, and a {@link Decision#refusal()} to answer with. */
    public Decision checkForUser(Request request) {
        return decide("/v1/check?status=429", request);
    }

    /** Decides about estimates; settle the reservation with the real amounts. */
    public Decision reserve(Request request) {
        return decide("/v1/reserve", request);
    }

    /** The same with what a user should see. */
    public Decision reserveForUser(Request request) {
        return decide("/v1/reserve?status=429", request);
    }

    /** A decision of a batch, or the error about a malformed request, which must not be passed on. */
    public record BatchResult(Decision decision, ApiException error) {}

    /** Decides requests in their order. */
    public List<BatchResult> checkBatch(List<Request> requests) {
        if (requests.isEmpty()) return List.of();
        List<?> items = null;
        TollgateException cause = null;
        try {
            Map<String, Object> body = Map.of("requests", requests.stream().map(Request::members).toList());
            if (post("/v1/check/batch", body).get("results") instanceof List<?> list && list.size() == requests.size()) items = list;
            else cause = UnavailableException.sent("the answer to a batch has another length", null);
        } catch (TollgateException e) {
            cause = e;
        }
        var results = new ArrayList<BatchResult>();
        for (int index = 0; index < requests.size(); index++) {
            results.add(batchResult(requests.get(index), items == null ? null : items.get(index), cause));
        }
        return results;
    }

    private BatchResult batchResult(Request request, Object item, TollgateException cause) {
        if (cause == null && item instanceof Map<?, ?> map) {
            var members = Json.object(Json.write(map));
            if (members.get("allowed") instanceof Boolean) return new BatchResult(new Decision(members, List.of(), null), null);
            cause = new ApiException(400, members);
        } else if (cause == null) {
            cause = UnavailableException.sent("an item of the answer is no decision", null);
        }
        if (cause instanceof ApiException problem && problem.isPath()) return new BatchResult(null, problem);
        return new BatchResult(withoutServer(request, cause), null);
    }

    /** Takes the next step of a reservation: the new receipt replaces the old one. Without an answer the old one stays good. */
    public Decision extend(String reservation, Map<String, Long> costs) {
        var members = post("/v1/extend", Map.of("reservation", reservation, "costs", costs));
        if (!(members.get("allowed") instanceof Boolean)) throw UnavailableException.sent("the answer is no decision", null);
        return new Decision(members, List.of(), null);
    }

    /** Settles a reservation with the real amounts; the answer is the server's. Doing it again changes nothing. */
    public Map<String, Object> settle(String reservation, Map<String, Long> costs) {
        return post("/v1/settle", Map.of("reservation", reservation, "costs", costs));
    }

    /** What a client, named by the fields of a request, has used of each rule, as the server writes it. */
    public Map<String, Object> usage(Request client) {
        var query = client.members().entrySet().stream()
                .filter(member -> member.getValue() instanceof String)
                .map(member -> encode(member.getKey()) + "=" + encode(member.getValue().toString()))
                .collect(Collectors.joining("&"));
        return read(call("GET", "/v1/usage?" + query, null));
    }

    /** Asks for a slot of the rules that count requests in flight. Close it when the work is done. */
    public Slot acquireSlot(Request request) {
        return new Slot(this, decide("/v1/slots/acquire", request));
    }

    /** Releases a slot by its receipt; a {@link Slot} does that itself. */
    public boolean releaseSlot(String slot) {
        return Boolean.TRUE.equals(post("/v1/slots/release", Map.of("slot", slot)).get("released"));
    }

    /** Renews a slot, or the slots of a reservation, by its receipt; a {@link Slot} does that itself. */
    public boolean renewSlot(String slot) {
        return Boolean.TRUE.equals(post("/v1/slots/renew", Map.of("slot", slot)).get("renewed"));
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private Decision decide(String path, Request request) {
        Bounds.check(request);
        try {
            return decision(call("POST", path, Json.write(request.members())));
        } catch (ApiException e) {
            if (e.isPath()) throw e;
            return withoutServer(request, e);
        } catch (TollgateException e) {
            return withoutServer(request, e);
        }
    }

    private static Decision decision(Transport.Answer answer) {
        var members = members(answer);
        var allowed = members.get("allowed");
        if (!(allowed instanceof Boolean) || (allowed.equals(true) && answer.status() != 200)) throw new ApiException(answer.status(), members);
        var fields = new ArrayList<Decision.Field>();
        answer.headers().map().forEach((name, values) -> values.forEach(value -> {
            if (isForUsers(name)) fields.add(new Decision.Field(name, value));
        }));
        return new Decision(members, fields, allowed.equals(true) ? null : refusal(answer, fields));
    }

    private static Decision.Answer refusal(Transport.Answer answer, List<Decision.Field> fields) {
        if (answer.status() == 200) { // no status was asked for, and the body is not for users
            var plain = "{\"type\":\"about:blank\",\"title\":\"Too many requests\",\"status\":429}";
            return new Decision.Answer(429, LocalDecisions.PROBLEM, fields, plain);
        }
        var all = new ArrayList<Decision.Field>();
        answer.headers().firstValue("retry-after").ifPresent(wait -> all.add(new Decision.Field("Retry-After", wait)));
        all.addAll(fields);
        var media = answer.headers().firstValue("content-type").orElse(LocalDecisions.PROBLEM);
        return new Decision.Answer(answer.status(), media, all, answer.body());
    }

    /** Header fields of a decision; nothing else of the server's answer reaches a user. */
    private static boolean isForUsers(String name) {
        var lower = name.toLowerCase(Locale.ROOT);
        return lower.startsWith("ratelimit") || lower.startsWith("x-ratelimit-") || lower.startsWith("x-rate-limit-");
    }

    private Map<String, Object> post(String path, Map<String, Object> body) {
        return read(call("POST", path, Json.write(body)));
    }

    private static Map<String, Object> read(Transport.Answer answer) {
        var members = members(answer);
        if (answer.status() != 200) throw new ApiException(answer.status(), members);
        return members;
    }

    private static Map<String, Object> members(Transport.Answer answer) {
        try {
            return Json.object(answer.body());
        } catch (IllegalArgumentException e) {
            if (answer.status() == 413) { // by a proxy
                throw new ApiException(413, Map.of("code", "body_too_large", "detail", "the request is longer than the server reads"));
            }
            throw UnavailableException.sent("an answer with status " + answer.status() + " cannot be read", e);
        }
    }

    /** Makes a call if the breaker admits one, and tells it what became of it. */
    private Transport.Answer call(String method, String path, String body) {
        var admission = breaker.admit();
        if (admission == null) throw UnavailableException.notSent("no call is made, because the last ones had no answer", null);
        var became = Breaker.Result.ABANDONED;
        try {
            var answer = transport.send(method, path, body);
            became = isFailure(answer) ? Breaker.Result.FAILED : Breaker.Result.SUCCEEDED;
            return answer;
        } catch (UnavailableException e) {
            if (!e.isBusy()) became = Breaker.Result.FAILED;
            throw e;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw UnavailableException.sent("the thread was interrupted", e);
        } finally {
            admission.report(became);
        }
    }

    /** True for answers that say nothing but that the server fails. A decision may have any status. */
    private static boolean isFailure(Transport.Answer answer) {
        if (answer.status() < 500) return false;
        try {
            return !(Json.object(answer.body()).get("allowed") instanceof Boolean);
        } catch (IllegalArgumentException e) {
            return true;
        }
    }

    private Decision withoutServer(Request request, TollgateException cause) {
        settings.onUnavailable.accept(cause);
        var now = System.nanoTime();
        var due = logAt.get();
        if (now - due >= 0 && logAt.compareAndSet(due, now + LOG_EVERY)) {
            LOG.log(Logger.Level.WARNING, "no decision from Tollgate, {0} applies: {1}", onError, cause.getMessage());
        }
        return switch (onError) {
            case OPEN -> LocalDecisions.open();
            case CLOSED -> LocalDecisions.closed();
            case LOCAL -> {
                var peek = Boolean.TRUE.equals(request.get("peek"));
                var outcome = fallback.decide(request.bucket(), request.units(), peek);
                yield LocalDecisions.fallback(settings.fallback, outcome, Instant.now());
            }
        };
    }
}
