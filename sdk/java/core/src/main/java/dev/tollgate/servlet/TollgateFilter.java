package dev.tollgate.servlet;

import dev.tollgate.ApiException;
import dev.tollgate.Decision;
import dev.tollgate.Json;
import dev.tollgate.Request;
import dev.tollgate.Slot;
import dev.tollgate.Tollgate;
import dev.tollgate.TollgateException;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.System.Logger;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Asks Tollgate before a servlet runs, and answers what may not pass. Map it to {@code /*}, before all filters that answer by themselves. */
public final class TollgateFilter implements Filter {
    private static final Logger LOG = System.getLogger("dev.tollgate");

    private final Tollgate tollgate;
    private final LimitOptions options;
    private final ClientAddress address;

    public TollgateFilter(Tollgate tollgate, LimitOptions options) {
        this.tollgate = tollgate;
        this.options = options;
        this.address = new ClientAddress(options.trustedProxies);
    }

    @Override
    public void doFilter(ServletRequest servletRequest, ServletResponse servletResponse, FilterChain chain) throws IOException, ServletException {
        if (!(servletRequest instanceof HttpServletRequest request) || !(servletResponse instanceof HttpServletResponse response)
                || options.skip.test(request)) {
            chain.doFilter(servletRequest, servletResponse);
            return;
        }
        if (options.endpoint == null && Endpoints.hasDotSegment(request) && !options.shadow) {
            write(request, response, badPath("path_dot_segment", "the path has a dot segment, which servers read differently"));
            return;
        }
        Decision decision;
        try {
            decision = ask(request);
        } catch (ApiException e) { // a malformed path: never passed on
            if (options.shadow) chain.doFilter(request, response);
            else write(request, response, badPath(e.code(), e.detail()));
            return;
        }
        options.onDecision.accept(request, decision);
        if (!decision.isAllowed() && !options.shadow) {
            refuse(request, response, decision);
            return;
        }
        if (!options.shadow) {
            decision.fields().forEach(field -> response.addHeader(field.name(), field.value()));
            delay(decision);
        }
        if (decision.isAllowed() && decision.reservation().isPresent()) pass(request, response, chain, decision);
        else chain.doFilter(request, response);
    }

    private Decision ask(HttpServletRequest request) {
        var fields = options.identify.apply(request);
        if (fields.get("ip") == null) fields = fields.ip(address.of(request));
        fields = fields.endpoint(options.endpoint == null ? Endpoints.of(request, options.caseInsensitivePaths) : options.endpoint.apply(request));
        if (options.cost != null) fields = fields.cost(options.cost.applyAsLong(request));
        var costs = options.costs.apply(request);
        if (costs == null) return tollgate.checkForUser(fields);
        Request metered = fields.costs(costs);
        return options.settle == null ? tollgate.checkForUser(metered) : tollgate.reserveForUser(metered);
    }

    /** Runs the handler and settles what it used, however it ends. */
    private void pass(HttpServletRequest request, HttpServletResponse response, FilterChain chain, Decision decision) throws IOException, ServletException {
        var settlement = new Settlement(request, response, decision);
        try {
            chain.doFilter(request, response);
        } catch (IOException | ServletException | RuntimeException | Error e) {
            settlement.failed();
            throw e;
        }
        if (request.isAsyncStarted()) request.getAsyncContext().addListener(settlement);
        else settlement.ended();
    }

    /** What is settled once the response is there. */
    private final class Settlement implements AsyncListener {
        private final HttpServletRequest request;
        private final HttpServletResponse response;
        private final Decision decision;
        private final AutoCloseable kept;
        private final AtomicBoolean open = new AtomicBoolean(true);

        Settlement(HttpServletRequest request, HttpServletResponse response, Decision decision) {
            this.request = request;
            this.response = response;
            this.decision = decision;
            this.kept = Slot.keep(tollgate, decision);
        }

        void ended() {
            settle(new LimitOptions.Result(response.getStatus(), response::getHeader));
        }

        void failed() {
            settle(new LimitOptions.Result(500, name -> null));
        }

        private void settle(LimitOptions.Result result) {
            if (!open.compareAndSet(true, false)) return;
            try {
                kept.close();
                var costs = options.settle.apply(request, result);
                if (costs != null) tollgate.settle(decision.reservation().orElseThrow(), costs); // without, the estimate stays charged
            } catch (TollgateException e) {
                LOG.log(Logger.Level.WARNING, "a reservation was not settled, its estimate stays charged: {0}", e.getMessage());
            } catch (Exception e) {
                LOG.log(Logger.Level.WARNING, "the costs of a response cannot be told", e);
            }
        }

        @Override
        public void onComplete(AsyncEvent event) {
            ended();
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            failed();
        }

        @Override
        public void onError(AsyncEvent event) {
            failed();
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            event.getAsyncContext().addListener(this);
        }
    }

    private void refuse(HttpServletRequest request, HttpServletResponse response, Decision decision) throws IOException {
        var refusal = decision.refusal();
        refusal.fields().forEach(field -> response.setHeader(field.name(), field.value()));
        if (!options.onDenied.apply(response, decision)) write(request, response, refusal);
    }

    private static void write(HttpServletRequest request, HttpServletResponse response, Decision.Answer answer) throws IOException {
        var body = answer.body().getBytes(StandardCharsets.UTF_8);
        response.setStatus(answer.status());
        response.setHeader("Content-Type", answer.contentType());
        response.setHeader("Cache-Control", "no-store");
        answer.fields().forEach(field -> response.setHeader(field.name(), field.value()));
        response.setContentLength(body.length);
        if (!request.getMethod().equals("HEAD")) response.getOutputStream().write(body);
    }

    private static Decision.Answer badPath(String code, String detail) {
        var document = new LinkedHashMap<String, Object>();
        document.put("type", "about:blank");
        document.put("title", "Bad request");
        document.put("status", 400);
        document.put("detail", detail);
        document.put("code", code);
        return new Decision.Answer(400, "application/problem+json", List.of(), Json.write(document));
    }

    /** Holds a request back for as long as a rule that queues says. */
    private static void delay(Decision decision) {
        try {
            Thread.sleep(decision.delay().toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
