package dev.tollgate.servlet;

import dev.tollgate.Decision;
import dev.tollgate.Request;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;

/** What the filter asks about, and what it does with the answer. Without any, requests are limited by the address of the connection. */
public final class LimitOptions {
    /** What became of a request. */
    public record Result(int status, Function<String, String> header) {}

    Function<HttpServletRequest, Request> identify = request -> Request.of();
    Predicate<HttpServletRequest> skip = request -> false;
    ToLongFunction<HttpServletRequest> cost;
    Function<HttpServletRequest, Map<String, Long>> costs = request -> null;
    BiFunction<HttpServletRequest, Result, Map<String, Long>> settle;
    Function<HttpServletRequest, String> endpoint;
    BiConsumer<HttpServletRequest, Decision> onDecision = (request, decision) -> { };
    BiFunction<HttpServletResponse, Decision, Boolean> onDenied = (response, decision) -> false;
    List<String> trustedProxies = List.of();
    boolean caseInsensitivePaths;
    boolean shadow;

    /** Further fields of the request to ask about. Only what the application has verified belongs there. */
    public LimitOptions identify(Function<HttpServletRequest, Request> identify) {
        this.identify = identify;
        return this;
    }

    /** Requests that are not asked about. */
    public LimitOptions skip(Predicate<HttpServletRequest> skip) {
        this.skip = skip;
        return this;
    }

    /** 1 if not said. */
    public LimitOptions cost(ToLongFunction<HttpServletRequest> cost) {
        this.cost = cost;
        return this;
    }

    /** Amounts of further meters; null for requests that have none. */
    public LimitOptions costs(Function<HttpServletRequest, Map<String, Long>> costs) {
        this.costs = costs;
        return this;
    }

    /** The real amounts once the response is there. Requests with costs are then reserved before the handler runs, and settled after it, also if it fails. */
    public LimitOptions settle(BiFunction<HttpServletRequest, Result, Map<String, Long>> settle) {
        this.settle = settle;
        return this;
    }

    /** Replaces {@code METHOD /path}. */
    public LimitOptions endpoint(Function<HttpServletRequest, String> endpoint) {
        this.endpoint = endpoint;
        return this;
    }

    /** Is told every decision. */
    public LimitOptions onDecision(BiConsumer<HttpServletRequest, Decision> hook) {
        this.onDecision = hook;
        return this;
    }

    /** Answers in place of the server's refusal, if it returns true. Header fields of the decision are set. */
    public LimitOptions onDenied(BiFunction<HttpServletResponse, Decision, Boolean> answer) {
        this.onDenied = answer;
        return this;
    }

    /** Networks whose X-Forwarded-For counts, such as {@code 10.0.0.0/8}. */
    public LimitOptions trustedProxies(List<String> networks) {
        this.trustedProxies = List.copyOf(networks);
        return this;
    }

    /** For routers that fold case. Write rules in lower case. */
    public LimitOptions caseInsensitivePaths(boolean fold) {
        this.caseInsensitivePaths = fold;
        return this;
    }

    /** Asks and reports, but passes everything on. */
    public LimitOptions shadow(boolean shadow) {
        this.shadow = shadow;
        return this;
    }

    /** The value of a field if there is exactly one of that name, and no comma in it: two could be read in two ways. Else null. */
    public static String onlyHeader(HttpServletRequest request, String name) {
        var values = Collections.list(request.getHeaders(name));
        return values.size() == 1 && values.get(0).indexOf(',') < 0 ? values.get(0).strip() : null;
    }
}
