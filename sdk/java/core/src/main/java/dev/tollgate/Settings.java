package dev.tollgate;

import java.net.URI;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/** Settings of a client; {@link #fromEnvironment()} reads {@code TOLLGATE_URL} and {@code TOLLGATE_DATA_TOKEN}. */
public final class Settings {
    /** What a decision is while there is none of the server. */
    public enum OnError {
        /** Allows. */
        OPEN,
        /** Refuses with 503. */
        CLOSED,
        /** Asks the fallback limiter of this process. */
        LOCAL;

        public static OnError parse(String text) {
            return valueOf(text.toUpperCase(Locale.ROOT));
        }
    }

    private static final String DEFAULT_URL = "http://127.0.0.1:8080";

    final URI url;
    final String token;
    final Duration timeout;
    final Limit fallback;
    final int connections;
    final SSLContext tls;
    final Consumer<TollgateException> onUnavailable;
    private final OnError onError;

    private Settings(
            URI url, String token, Duration timeout, OnError onError, Limit fallback, int connections, SSLContext tls,
            Consumer<TollgateException> onUnavailable) {
        this.url = url;
        this.token = token;
        this.timeout = timeout;
        this.onError = onError;
        this.fallback = fallback;
        this.connections = connections;
        this.tls = tls;
        this.onUnavailable = onUnavailable;
    }

    /** The server and the token of the environment, 250 ms for a call, 64 connections, open while there is no answer. */
    public static Settings fromEnvironment() {
        var url = Optional.ofNullable(System.getenv("TOLLGATE_URL")).filter(text -> !text.isEmpty()).orElse(DEFAULT_URL);
        var token = Optional.ofNullable(System.getenv("TOLLGATE_DATA_TOKEN")).orElse("");
        return new Settings(URI.create(DEFAULT_URL), "", Duration.ofMillis(250), null, null, 64, null, cause -> { }).url(url).token(token);
    }

    public Settings url(String text) {
        var url = URI.create(text);
        var web = "http".equals(url.getScheme()) || "https".equals(url.getScheme());
        if (!web || url.getHost() == null || url.getUserInfo() != null || url.getQuery() != null || url.getFragment() != null) {
            throw new IllegalArgumentException("the URL is like http://127.0.0.1:8080 or https://limits.example.com");
        }
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    public Settings token(String token) {
        if (!token.chars().allMatch(c -> c > ' ' && c <= '~')) throw new IllegalArgumentException("the token has characters that no token has");
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    /** Of one call, connection included. */
    public Settings timeout(Duration timeout) {
        if (timeout.toMillis() < 1) throw new IllegalArgumentException("the timeout is at least a millisecond");
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    public Settings onError(OnError onError) {
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    /** The limit of this process while there is no answer. */
    public Settings fallback(Limit fallback) {
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    /** The most calls at once; more wait for their turn within their timeout. */
    public Settings connections(int connections) {
        if (connections < 1) throw new IllegalArgumentException("there is at least one connection");
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    /** For https with an authority of your own, or a client certificate. */
    public Settings tls(SSLContext tls) {
        return new Settings(url, token, timeout, onError, fallback, connections, tls, onUnavailable);
    }

    /** Is told the cause whenever there is no decision of the server. It must not block. */
    public Settings onUnavailable(Consumer<TollgateException> hook) {
        return new Settings(url, token, timeout, onError, fallback, connections, tls, hook);
    }

    /** Local where there is a fallback, else open, unless it was said. */
    OnError onError() {
        if (onError == OnError.LOCAL && fallback == null) throw new IllegalArgumentException("onError LOCAL needs a fallback limit");
        if (onError != null) return onError;
        return fallback == null ? OnError.OPEN : OnError.LOCAL;
    }
}
