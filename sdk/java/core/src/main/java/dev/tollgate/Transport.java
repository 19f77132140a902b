package dev.tollgate;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Calls over a bounded number of connections of the JDK's client. It follows no redirects. */
final class Transport {
    private static final int BODY_MAX = 1 << 20;

    record Answer(int status, HttpHeaders headers, String body) {}

    private final HttpClient client;
    private final String base;
    private final String token;
    private final long timeoutNanos;
    private final Semaphore permits;

    Transport(Settings settings) {
        var builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER);
        if (settings.tls != null) builder.sslContext(settings.tls);
        this.client = builder.connectTimeout(settings.timeout).build();
        this.base = settings.url.toString().replaceAll("/+$", "");
        this.token = settings.token;
        this.timeoutNanos = settings.timeout.toNanos();
        this.permits = new Semaphore(settings.connections, true);
    }

    /** Makes one call. One that got no connection is sent once more; one that may have arrived never is. */
    Answer send(String method, String path, String body) throws InterruptedException {
        var deadline = System.nanoTime() + timeoutNanos;
        if (!permits.tryAcquire(timeoutNanos, TimeUnit.NANOSECONDS)) throw UnavailableException.busy();
        try {
            try {
                return attempt(method, path, body, deadline);
            } catch (UnavailableException e) {
                if (!e.isNotSent() || deadline - System.nanoTime() <= 0) throw e;
                return attempt(method, path, body, deadline);
            }
        } finally {
            permits.release();
        }
    }

    private Answer attempt(String method, String path, String body, long deadline) throws InterruptedException {
        var left = deadline - System.nanoTime();
        if (left < 1_000_000) throw UnavailableException.busy();
        try {
            // Not sendAsync, which hands every answer over to another thread and so costs twice as much.
            var response = client.send(request(method, path, body, left), info -> new BoundedBody(deadline));
            return new Answer(response.statusCode(), response.headers(), response.body());
        } catch (ConnectException | HttpConnectTimeoutException e) {
            throw UnavailableException.notSent("no connection: " + e, e);
        } catch (HttpTimeoutException e) {
            throw UnavailableException.sent("no answer in time", e);
        } catch (IOException e) {
            throw UnavailableException.sent("no answer: " + e, e);
        }
    }

    private HttpRequest request(String method, String path, String body, long left) {
        var publisher = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        var request = HttpRequest.newBuilder(URI.create(base + path))
                .method(method, publisher)
                .timeout(Duration.ofNanos(left))
                .setHeader("User-Agent", "tollgate-java")
                .setHeader("Content-Type", "application/json")
                // The server charges nothing after the caller has left.
                .setHeader("Request-Timeout", Math.max(1, left / 1_000_000) + "ms");
        if (!token.isEmpty()) request.setHeader("Authorization", "Bearer " + token);
        return request.build();
    }

    /** A body of at most a mebibyte, as text. The timeout of the JDK ends with the header, so that this one has its own. */
    private static final class BoundedBody implements HttpResponse.BodySubscriber<String> {
        private final long deadline;
        private final CompletableFuture<String> body = new CompletableFuture<>();
        private final List<byte[]> parts = new ArrayList<>();
        private Flow.Subscription subscription;
        private int length;

        BoundedBody(long deadline) {
            this.deadline = deadline;
        }

        @Override
        public CompletionStage<String> getBody() {
            var left = Math.max(1, deadline - System.nanoTime());
            return body.orTimeout(left, TimeUnit.NANOSECONDS).exceptionally(cause -> {
                if (!(cause instanceof TimeoutException)) throw new CompletionException(cause);
                subscription.cancel(); // closes the connection
                throw new CompletionException(new HttpTimeoutException("no answer in time"));
            });
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            subscription.request(1);
        }

        @Override
        public void onNext(List<ByteBuffer> buffers) {
            for (var buffer : buffers) {
                length += buffer.remaining();
                if (length > BODY_MAX) {
                    subscription.cancel();
                    body.completeExceptionally(new IOException("the body is larger than " + BODY_MAX + " bytes"));
                    return;
                }
                var part = new byte[buffer.remaining()];
                buffer.get(part);
                parts.add(part);
            }
            subscription.request(1);
        }

        @Override
        public void onError(Throwable cause) {
            body.completeExceptionally(cause);
        }

        @Override
        public void onComplete() {
            var whole = ByteBuffer.allocate(length);
            parts.forEach(whole::put);
            body.complete(new String(whole.array(), StandardCharsets.UTF_8));
        }
    }
}
