package dev.tollgate.conformance;

import dev.tollgate.Limit;
import dev.tollgate.Request;
import dev.tollgate.Settings;
import dev.tollgate.Tollgate;
import dev.tollgate.servlet.LimitOptions;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The program that the conformance suite drives, as sdk/conformance/README.md describes it. */
public final class Main {
    /** Standard output belongs to the suite; what frameworks print goes to standard error. */
    static final PrintStream OUT = System.out;

    private Main() {}

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        var command = String.join(" ", args);
        switch (command) {
            case "client" -> new Calls(client()).answer();
            case "app servlet" -> ServletApp.serve(client(), options());
            case "app spring" -> SpringApp.serve();
            default -> {
                System.err.println("usage: conformance client | app servlet|spring");
                System.exit(2);
            }
        }
    }

    static void ready(int port) throws Exception {
        OUT.println("ready http://127.0.0.1:" + port);
        OUT.flush();
        while (System.in.read() >= 0) { } // ends when standard input does
        Runtime.getRuntime().halt(0);
    }

    private static Optional<String> variable(String name) {
        return Optional.ofNullable(System.getenv(name)).filter(text -> !text.isEmpty());
    }

    static Tollgate client() {
        var settings = Settings.fromEnvironment();
        var onError = variable("CONFORMANCE_ON_ERROR");
        if (onError.isPresent()) settings = settings.onError(Settings.OnError.parse(onError.get()));
        var fallback = variable("CONFORMANCE_FALLBACK");
        if (fallback.isPresent()) settings = settings.fallback(Limit.parse(fallback.get()));
        var timeout = variable("CONFORMANCE_TIMEOUT_MS");
        if (timeout.isPresent()) settings = settings.timeout(Duration.ofMillis(Long.parseLong(timeout.get())));
        return new Tollgate(settings);
    }

    static LimitOptions options() {
        return new LimitOptions()
                .identify(request -> Request.of().apiKey(LimitOptions.onlyHeader(request, "X-API-Key")))
                .skip(request -> request.getRequestURI().equals("/health"))
                .costs(request -> request.getRequestURI().startsWith("/api/complete/") ? Map.of("tokens", 100L) : null)
                .settle((request, result) -> {
                    var tokens = result.header().apply("X-Tokens");
                    return Map.of("tokens", tokens == null ? 0 : Long.parseLong(tokens));
                })
                .trustedProxies(variable("CONFORMANCE_TRUSTED_PROXIES").map(text -> List.of(text.split(","))).orElse(List.of()))
                .shadow(variable("CONFORMANCE_SHADOW").isPresent());
    }
}
