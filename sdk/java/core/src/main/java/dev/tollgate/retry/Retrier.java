package dev.tollgate.retry;

import java.io.IOException;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.DoubleSupplier;

/**
 * Repeats calls to one limited API that are told "later", when it is safe and not too often. It knows no HTTP client: {@link RetryingClient} is the
 * one of the JDK with it. Its budget is that of all its calls.
 */
public final class Retrier {
    private static final Set<String> IDEMPOTENT = Set.of("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE");

    /** What the decision to repeat is made by. */
    public interface Response {
        int status();

        /** All values of a header field. */
        List<String> fields(String name);

        /** Whether the body names an exception of throttling; asked for 400 alone. */
        boolean bodyHas(String text);
    }

    /** One attempt. */
    public interface Attempt<R extends Response> {
        R make() throws IOException, InterruptedException;
    }

    /** Waits; tests replace it. */
    public interface Sleeper {
        void sleep(Duration wait) throws InterruptedException;
    }

    private final RetryOptions options;
    private final InstantSource clock;
    private final Sleeper sleeper;
    private final DoubleSupplier random;
    private final Budget budget;
    private final Adaptive adaptive;

    public Retrier(RetryOptions options) {
        this(options, InstantSource.system(), wait -> Thread.sleep(wait.toMillis(), wait.toNanosPart() % 1_000_000), () -> ThreadLocalRandom.current().nextDouble());
    }

    /** With a clock and dice of your own, for tests. */
    public Retrier(RetryOptions options, InstantSource clock, Sleeper sleeper, DoubleSupplier random) {
        this.options = options;
        this.clock = clock;
        this.sleeper = sleeper;
        this.random = random;
        this.budget = new Budget(clock);
        this.adaptive = options.adaptive() ? new Adaptive(clock, random) : null;
    }

    /** Makes a call of a method, and repeats it. {@code keyed} says that it has an Idempotency-Key, the same for all attempts. */
    public <R extends Response> R call(String method, boolean keyed, Attempt<R> attempt) throws IOException, InterruptedException {
        var start = clock.instant();
        budget.earn();
        for (int number = 1; ; number++) {
            if (adaptive != null && adaptive.refuses()) throw new ThrottledException();
            var response = attempt.make();
            var later = saysLater(response);
            if (adaptive != null && !later) adaptive.accepted();
            var safe = IDEMPOTENT.contains(method) || keyed || response.status() == 429; // 429 is an answer before anything was done
            if (!later || number >= options.attempts() || !safe) return response;
            var wait = wait(number, response);
            var late = Duration.between(start, clock.instant()).plus(wait).compareTo(options.deadline()) > 0;
            if (late || !budget.spend()) return response;
            sleeper.sleep(wait);
        }
    }

    /** True if the same call may succeed later. */
    private static boolean saysLater(Response response) {
        return switch (response.status()) {
            case 429, 503 -> true;
            case 403 -> response.fields("X-RateLimit-Remaining").stream().anyMatch(value -> value.strip().equals("0"));
            case 400 -> response.bodyHas("ThrottlingException");
            default -> false;
        };
    }

    private Duration wait(int attempt, Response response) {
        var draw = random.getAsDouble();
        var named = NamedWait.of(response, clock.instant());
        if (named.isPresent()) {
            var tenth = (long) (draw * named.get().toMillis() / 10);
            return named.get().plusMillis(tenth);
        }
        var doubled = options.base().toMillis() * Math.pow(2, attempt - 1);
        var backoff = Math.min(doubled, options.cap().toMillis());
        return Duration.ofMillis((long) (backoff * (options.equalJitter() ? 0.5 + draw : draw)));
    }
}
