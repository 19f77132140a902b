package dev.tollgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Servers that answer badly: a call ends in time, and is sent once. */
class TransportTest {
    private static final String HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

    /** A server that answers each connection with these bytes and holds it open; counts the requests. */
    private static final class Server implements AutoCloseable {
        final ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        final AtomicInteger requests = new AtomicInteger();
        /** Held: a socket that nothing refers to is closed. */
        final List<Socket> connections = new CopyOnWriteArrayList<>();

        Server(String answer) throws IOException {
            var thread = new Thread(() -> {
                while (!socket.isClosed()) {
                    try {
                        var connection = socket.accept();
                        connections.add(connection);
                        connection.getInputStream().read(new byte[65536]);
                        requests.incrementAndGet();
                        connection.getOutputStream().write(answer.getBytes(StandardCharsets.UTF_8));
                        connection.getOutputStream().flush();
                    } catch (IOException e) {
                        return; // closed
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        Transport transport(Duration timeout) {
            return new Transport(Settings.fromEnvironment().url("http://127.0.0.1:" + socket.getLocalPort()).timeout(timeout));
        }

        @Override
        public void close() throws IOException {
            socket.close();
            for (var connection : connections) connection.close();
        }
    }

    private static void endsInTime(String answer) throws IOException {
        try (var server = new Server(answer)) {
            var transport = server.transport(Duration.ofMillis(200));
            var error = assertTimeoutPreemptively(Duration.ofSeconds(20), () -> assertThrows(UnavailableException.class, () -> transport.send("POST", "/v1/check", "{}")));
            assertFalse(error.isNotSent(), error.getMessage());
            assertEquals(1, server.requests.get(), "what may have arrived is never sent again");
        }
    }

    @Test
    void aWholeAnswerIsRead() throws Exception {
        try (var server = new Server(HEAD + "Content-Length: 4\r\n\r\n{\"a\"")) {
            var answer = server.transport(Duration.ofSeconds(20)).send("POST", "/v1/check", "{}");
            assertEquals(200, answer.status());
            assertEquals("{\"a\"", answer.body());
        }
    }

    @Test
    void aBodyThatDoesNotEndIsGivenUp() throws Exception {
        endsInTime(HEAD + "Content-Length: 100\r\n\r\n{\"allowed\":");
    }

    @Test
    void aHeadThatDoesNotEndIsGivenUp() throws Exception {
        endsInTime(HEAD);
    }

    @Test
    void aBodyThatIsTooLargeIsRefused() throws Exception {
        try (var server = new Server(HEAD + "Content-Length: 2000000\r\n\r\n" + " ".repeat(2_000_000))) {
            var transport = server.transport(Duration.ofSeconds(20));
            var error = assertThrows(UnavailableException.class, () -> transport.send("POST", "/v1/check", "{}"));
            assertTrue(error.getMessage().contains("larger"), error.getMessage());
        }
    }

    @Test
    void noConnectionIsToldApart() throws Exception {
        var transport = new Transport(Settings.fromEnvironment().url("http://127.0.0.1:1").timeout(Duration.ofSeconds(20))); // no port of a server
        assertTrue(assertThrows(UnavailableException.class, () -> transport.send("POST", "/v1/check", "{}")).isNotSent());
    }
}
