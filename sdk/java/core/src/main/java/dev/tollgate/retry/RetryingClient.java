package dev.tollgate.retry;

import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The JDK's HTTP client with retries: {@code new RetryingClient(HttpClient.newHttpClient(), RetryOptions.defaults()).send(request)}. */
public final class RetryingClient {
    private final HttpClient client;
    private final Retrier retrier;

    public RetryingClient(HttpClient client, RetryOptions options) {
        this.client = client;
        this.retrier = new Retrier(options);
    }

    /** Sends a request whose body can be sent again, as those of {@code BodyPublishers.ofString} and {@code ofByteArray} can. */
    public HttpResponse<byte[]> send(HttpRequest request) throws IOException, InterruptedException {
        var keyed = request.headers().firstValue("Idempotency-Key").isPresent();
        return retrier.call(request.method(), keyed, () -> new Received(client.send(request, HttpResponse.BodyHandlers.ofByteArray()))).response();
    }

    private record Received(HttpResponse<byte[]> response) implements Retrier.Response {
        @Override
        public int status() {
            return response.statusCode();
        }

        @Override
        public List<String> fields(String name) {
            return response.headers().allValues(name);
        }

        @Override
        public boolean bodyHas(String text) {
            return new String(response.body(), StandardCharsets.UTF_8).contains(text);
        }
    }
}
